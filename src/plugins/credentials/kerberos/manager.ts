import { resolve } from 'node:path';
import { readCcache } from '../../../clients/credentials/ccache.ts';
import { inspectFile, isDue, outcomeOf } from '../../../clients/credentials/credential-file.ts';
import { fileVersion, replaceBy } from '../../../clients/credentials/files.ts';
import { runTool } from '../../../clients/credentials/tool.ts';
import { isoTime } from '../../../util/clock.ts';
import { whyUnusable } from '../../../util/validity.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import { type Login, loginSource, type LoginSource } from './login.ts';
import type { KerberosConfig } from './schema.ts';

const hour = 3_600_000;

/** One Kerberos credential cache, kept fresh by kinit. */
export class KerberosManager implements CredentialManager {
  readonly #config: KerberosConfig;
  readonly #clock: Context['clock'];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #path: string;
  readonly #login: LoginSource;

  constructor(
    config: KerberosConfig,
    { clock, configDir }: Pick<Context, 'clock' | 'configDir'>,
    environment: Readonly<Record<string, string>>,
  ) {
    this.#config = config;
    this.#clock = clock;
    this.#environment = environment;
    this.#path = resolve(configDir, config.ccache);
    this.#login = loginSource(config, configDir);
  }

  async inspect(): Promise<readonly CredentialState[]> {
    const state = await inspectFile(this.#path);
    if (state.kind === 'broken') return [state];
    return [{ ...state, warnings: [...state.warnings, ...(await this.#login.flaws())] }];
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const outcome = await outcomeOf(this.#path, async () => {
      if (!force && !(await this.#isDue())) return 'unchanged';
      const login = await this.#login.read();
      const make = (temporary: string) => this.#run(temporary, login, signal);
      const check = (bytes: Buffer) => {
        this.#check(bytes, login);
      };
      await replaceBy(this.#path, this.#clock, make, check);
      return 'renewed';
    });
    return [outcome];
  }

  async fingerprint(): Promise<string> {
    return `${await this.#login.version()}, ${await fileVersion(this.#path)}`;
  }

  async #isDue(): Promise<boolean> {
    const state = await inspectFile(this.#path);
    if (state.kind === 'broken' || state.facts.kind !== 'kerberos') return true;
    // A login that cannot be read says nothing about a ticket that is good.
    const login = await this.#login.read().catch(() => undefined);
    if (login !== undefined && !isOf(login.principal, state.facts.subject)) return true;
    const { renewBelow, lifetime } = this.#config;
    return isDue(state.facts, { left: renewBelow * hour, lifetime: lifetime * hour }, this.#clock.now());
  }

  async #run(temporary: string, { principal, by }: Login, signal: AbortSignal): Promise<void> {
    const { renewCommand, lifetime, renewableLifetime, timeLimit } = this.#config;
    const [command = '', ...first] = renewCommand.split(/\s+/).filter((word) => word !== '');
    const args = [
      ...[...first, '-c', `FILE:${temporary}`, '-l', `${lifetime}h`],
      ...(renewableLifetime === 0 ? [] : ['-r', `${renewableLifetime}h`]),
      ...('keytab' in by ? ['-k', '-t', by.keytab] : []),
      principal,
    ];
    await runTool({
      command,
      args,
      environment: this.#environment,
      timeLimit: timeLimit * 1000,
      clock: this.#clock,
      signal,
      ...('password' in by && { input: `${by.password}\n` }),
    });
  }

  /** @throws ThresherError `credential-unfit` if it is not what was asked for. */
  #check(bytes: Buffer, login: Login): void {
    const made = readCcache(bytes, 'what the program wrote');
    const { principal, expiresAt } = made;
    const unfit = (what: string) =>
      new ThresherError('credential-unfit', `the new ticket for ${this.#path} ${what}`, { file: this.#path });
    if (!isOf(login.principal, principal)) throw unfit(`is of ${principal}, and not of ${login.principal}`);
    const { minNewLifetime } = this.#config;
    if (expiresAt - this.#clock.now() < minNewLifetime * hour)
      throw unfit(`ends at ${isoTime(expiresAt)}: it must last ${minNewLifetime} h at least`);
    const why = whyUnusable(made, this.#clock.now());
    if (why !== undefined) throw unfit(why);
  }
}

/** A user without a realm is of the default one. */
function isOf(wanted: string, principal: string): boolean {
  return principal === wanted || (!wanted.includes('@') && principal.startsWith(`${wanted}@`));
}
