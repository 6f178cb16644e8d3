import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { rememberTokens } from '../../../clients/credentials/credential.ts';
import { type FileState, outcomeOf, watchedOutcome } from '../../../clients/credentials/credential-file.ts';
import {
  exposure,
  fileVersion,
  readCredentialFile,
  replaceSecretFile,
} from '../../../clients/credentials/files.ts';
import { readToken } from '../../../clients/credentials/jwt.ts';
import { runTool } from '../../../clients/credentials/tool.ts';
import { isoTime } from '../../../util/clock.ts';
import { beginningOf, whyUnusable } from '../../../util/validity.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import type { CondorTokenConfig, CreatedToken } from './schema.ts';
import { firstToEnd, isTokenFile } from './token-file.ts';

/** IDTOKENs of a directory: all are watched, and those that this host may make are kept fresh. */
export class CondorTokenManager implements CredentialManager {
  readonly #config: CondorTokenConfig;
  readonly #clock: Context['clock'];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #directory: string;

  constructor(
    config: CondorTokenConfig,
    { clock, configDir }: Pick<Context, 'clock' | 'configDir'>,
    environment: Readonly<Record<string, string>>,
  ) {
    this.#config = config;
    this.#clock = clock;
    this.#environment = environment;
    this.#directory = resolve(configDir, config.directory);
  }

  async inspect(): Promise<readonly CredentialState[]> {
    const names = await this.#names();
    return Array.isArray(names) ? Promise.all(names.map((name) => this.#look(name))) : [names];
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const names = await this.#names();
    if (!Array.isArray(names)) return [{ kind: 'failed', name: names.name, error: names.error }];
    const outcomes: RenewOutcome[] = [];
    // One after the other: HTCondor's programs are heavy, and few tokens are made.
    for (const name of names) {
      const created = this.#config.create.find((one) => one.name === name);
      if (created === undefined)
        outcomes.push(watchedOutcome(await this.#look(name), force, this.#clock.now()));
      else outcomes.push(await this.#create(created, force, signal));
    }
    return outcomes;
  }

  async fingerprint(): Promise<string> {
    const names = await this.#names();
    if (!Array.isArray(names)) return names.error.message;
    const versions = await Promise.all(names.map((name) => fileVersion(join(this.#directory, name))));
    return names.map((name, at) => `${name} ${versions[at] ?? ''}`).join(', ');
  }

  /** Present and wanted files; if the daemon cannot read the directory, the directory itself is broken. */
  async #names(): Promise<string[] | Extract<FileState, { kind: 'broken' }>> {
    try {
      const there = (await readdir(this.#directory)).filter(isTokenFile);
      return [...new Set([...there, ...this.#config.create.map(({ name }) => name)])].sort();
    } catch (error) {
      const message = `directory ${this.#directory} cannot be read: ${messageOf(error)}`;
      return { kind: 'broken', name: this.#directory, error: { code: 'credential-missing', message } };
    }
  }

  async #look(name: string): Promise<FileState> {
    const path = join(this.#directory, name);
    try {
      const file = await readCredentialFile(path);
      const first = firstToEnd(file.bytes.toString('utf8'), path);
      const { subject, issuer, expiresAt, notBefore, issuedAt, digest } = first;
      const exposed = exposure(path, file, process.geteuid?.());
      const facts = {
        name: path,
        kind: 'token' as const,
        subject,
        issuer,
        digest,
        ...(expiresAt !== undefined && { expiresAt }),
        ...(notBefore !== undefined && { notBefore }),
        ...(issuedAt !== undefined && { issuedAt }),
      };
      return { kind: 'there', facts, warnings: exposed === undefined ? [] : [exposed] };
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      return { kind: 'broken', name: path, error: { code: error.code, message: error.message } };
    }
  }

  #create(wanted: CreatedToken, force: boolean, signal: AbortSignal): Promise<RenewOutcome> {
    const path = join(this.#directory, wanted.name);
    return outcomeOf(path, async () => {
      if (!force && !(await this.#isDue(wanted))) return 'unchanged';
      const [command = '', ...first] = this.#config.renewCommand.split(/\s+/).filter((word) => word !== '');
      const args = [
        ...[...first, '-identity', wanted.identity, '-lifetime', String(wanted.lifetime)],
        ...wanted.authz.flatMap((right) => ['-authz', right]),
        ...(wanted.key === undefined ? [] : ['-key', wanted.key]),
      ];
      const timeLimit = this.#config.timeLimit * 1000;
      const how = { environment: this.#environment, timeLimit, clock: this.#clock, signal };
      const token = (await runTool({ command, args, ...how })).trim();
      rememberTokens(Buffer.from(token), path);
      this.#check(token, wanted);
      await replaceSecretFile(path, this.#clock, `${token}\n`);
      return 'renewed';
    });
  }

  async #isDue({ name, identity, lifetime }: CreatedToken): Promise<boolean> {
    const state = await this.#look(name);
    if (state.kind === 'broken' || state.facts.subject !== identity) return true;
    const now = this.#clock.now();
    const { expiresAt } = state.facts;
    if (expiresAt === undefined || whyUnusable(state.facts, now) !== undefined) return true;
    const since = beginningOf(state.facts, now) ?? expiresAt - lifetime * 1000;
    return now >= since + (expiresAt - since) * this.#config.renewPart;
  }

  /** @throws ThresherError `credential-unfit` if it is not what was asked for. */
  #check(token: string, { name, identity, lifetime }: CreatedToken): void {
    const made = readToken(token, 'what the program printed');
    const { subject, expiresAt } = made;
    const unfit = (what: string) => new ThresherError('credential-unfit', `the new token ${name} ${what}`);
    if (subject !== identity) throw unfit(`is of ${subject}, and not of ${identity}`);
    // It may be limited by the host's own settings, but not to nothing.
    const least = (lifetime * 1000) / 10;
    if (expiresAt === undefined) throw unfit('has no end, though one was asked for');
    if (expiresAt - this.#clock.now() < least)
      throw unfit(`ends at ${isoTime(expiresAt)}: it must last ${least / 1000} s at least`);
    const why = whyUnusable(made, this.#clock.now());
    if (why !== undefined) throw unfit(why);
  }
}
