import { resolve } from 'node:path';
import { readCcache } from '../../../clients/credentials/ccache.ts';
import { dueAt, inspectFile, outcomeOf } from '../../../clients/credentials/credential-file.ts';
import { exposure, fileVersion, readSecretFile, replaceBy } from '../../../clients/credentials/files.ts';
import { runTool } from '../../../clients/credentials/tool.ts';
import { isoTime } from '../../../util/clock.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import type { KerberosConfig } from './schema.ts';

const hour = 3_600_000;

/** One Kerberos credential cache, kept fresh by kinit. */
export class KerberosManager implements CredentialManager {
  readonly #config: KerberosConfig;
  readonly #clock: Context['clock'];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #path: string;
  /** The keytab, or the file with the password. */
  readonly #login: string;

  constructor(
    config: KerberosConfig,
    { clock, configDir }: Pick<Context, 'clock' | 'configDir'>,
    environment: Readonly<Record<string, string>>,
  ) {
    this.#config = config;
    this.#clock = clock;
    this.#environment = environment;
    this.#path = resolve(configDir, config.ccache);
    this.#login = resolve(configDir, config.keytab ?? config.passwordFile ?? '');
  }

  async inspect(): Promise<readonly CredentialState[]> {
    const state = await inspectFile(this.#path);
    if (state.kind === 'broken') return [state];
    const login = await readSecretFile(this.#login).catch(() => undefined);
    const exposed = login && exposure(this.#login, login, process.geteuid?.());
    return [exposed === undefined ? state : { ...state, warnings: [...state.warnings, exposed] }];
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const outcome = await outcomeOf(this.#path, async () => {
      if (!force && !(await this.#isDue())) return 'unchanged';
      const input = await this.#input();
      const make = (temporary: string) => this.#run(temporary, input, signal);
      const check = (bytes: Buffer) => {
        this.#check(bytes);
      };
      await replaceBy(this.#path, this.#clock, make, check);
      return 'renewed';
    });
    return [outcome];
  }

  async fingerprint(): Promise<string> {
    return `${await fileVersion(this.#login)}, ${await fileVersion(this.#path)}`;
  }

  async #isDue(): Promise<boolean> {
    const state = await inspectFile(this.#path);
    if (state.kind === 'broken' || state.facts.kind !== 'kerberos') return true;
    if (!this.#isOurs(state.facts.subject)) return true;
    const { renewBelow, lifetime } = this.#config;
    const due = dueAt(state.facts, { left: renewBelow * hour, lifetime: lifetime * hour }) ?? 0;
    return this.#clock.now() >= due;
  }

  /**
   * The password, for its input. The manager only checks that a keytab exists, to report a missing one in its own
   * words.
   */
  async #input(): Promise<string | undefined> {
    const { bytes } = await readSecretFile(this.#login);
    if (this.#config.keytab !== undefined) return undefined;
    const [password = ''] = bytes.toString('utf8').split(/\r?\n/);
    if (password !== '') return `${password}\n`;
    const message = `${this.#login} has no password in its first line`;
    throw new ThresherError('credential-wrong', message, { file: this.#login });
  }

  async #run(temporary: string, input: string | undefined, signal: AbortSignal): Promise<void> {
    const { renewCommand, lifetime, renewableLifetime, principal, timeLimit } = this.#config;
    const [command = '', ...first] = renewCommand.split(/\s+/).filter((word) => word !== '');
    const args = [
      ...[...first, '-c', `FILE:${temporary}`, '-l', `${lifetime}h`],
      ...(renewableLifetime === 0 ? [] : ['-r', `${renewableLifetime}h`]),
      ...(input === undefined ? ['-k', '-t', this.#login] : []),
      principal,
    ];
    await runTool({
      command,
      args,
      environment: this.#environment,
      timeLimit: timeLimit * 1000,
      clock: this.#clock,
      signal,
      ...(input !== undefined && { input }),
    });
  }

  /** @throws ThresherError `credential-unfit` if it is not what was asked for. */
  #check(bytes: Buffer): void {
    const { principal, expiresAt } = readCcache(bytes, 'what the program wrote');
    const unfit = (what: string) =>
      new ThresherError('credential-unfit', `the new ticket for ${this.#path} ${what}`, { file: this.#path });
    if (!this.#isOurs(principal)) throw unfit(`is of ${principal}, and not of ${this.#config.principal}`);
    const { minNewLifetime } = this.#config;
    if (expiresAt - this.#clock.now() < minNewLifetime * hour)
      throw unfit(`ends at ${isoTime(expiresAt)}: it must last ${minNewLifetime} h at least`);
  }

  #isOurs(principal: string): boolean {
    const wanted = this.#config.principal;
    return principal === wanted || (!wanted.includes('@') && principal.startsWith(`${wanted}@`));
  }
}
