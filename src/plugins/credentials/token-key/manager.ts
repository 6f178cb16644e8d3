import { resolve } from 'node:path';
import { keyFacts } from '../../../clients/credentials/credential.ts';
import { type FileState, outcomeOf } from '../../../clients/credentials/credential-file.ts';
import {
  exposure,
  fileVersion,
  readSecretFile,
  replaceSecretFile,
  type SecretFile,
} from '../../../clients/credentials/files.ts';
import { PandaApi, whyNoTokenKey } from '../../../clients/panda/api.ts';
import { PandaClient } from '../../../clients/panda/client.ts';
import { PandaLogin } from '../../../clients/panda/login.ts';
import { isoTime } from '../../../util/clock.ts';
import { rememberSecret } from '../../../util/own-secrets.ts';
import { beginningOf } from '../../../util/validity.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import type { TokenKeyConfig } from './schema.ts';

const minute = 60_000;

/**
 * Keeps the key of one client's token in a file. The server does not say when a key ends, and takes one for days, so that an old key is a
 * warning and no reason to stop queues.
 */
export class TokenKeyManager implements CredentialManager {
  readonly #config: TokenKeyConfig;
  readonly #context: Pick<Context, 'clock' | 'files' | 'harvesterId' | 'pandaServer'>;
  readonly #path: string;

  constructor(config: TokenKeyConfig, context: Context) {
    this.#config = config;
    this.#context = context;
    this.#path = resolve(context.configDir, config.token_key_file);
  }

  async inspect(): Promise<readonly CredentialState[]> {
    return [await this.#look()];
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const outcome = await outcomeOf(this.#path, async () => {
      if (!force && !(await this.#isDue())) return 'unchanged';
      await replaceSecretFile(this.#path, this.#context.clock, await this.#newKey(signal));
      return 'renewed';
    });
    return [outcome];
  }

  /** Another text also at the moment in which the key is due: that comes between two renewals by the clock. */
  async fingerprint(): Promise<string> {
    return `${await fileVersion(this.#path)} ${(await this.#isDue()) ? 'due' : 'fresh'}`;
  }

  async #look(): Promise<FileState> {
    const name = this.#path;
    try {
      const { key, file } = await this.#read();
      const exposed = exposure(name, file, process.geteuid?.());
      const facts = { name, ...keyFacts(key), subject: this.#config.client_name };
      const warnings = [exposed, this.#old(file)].filter((warning) => warning !== undefined);
      return { kind: 'there', facts, warnings };
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      return { kind: 'broken', name, error: { code: error.code, message: error.message } };
    }
  }

  /** @throws ThresherError `credential-missing`, `credential-wrong`. Nothing of the content is in its message. */
  async #read(): Promise<{ readonly key: string; readonly file: SecretFile }> {
    const file = await readSecretFile(this.#path);
    const key = file.bytes.toString('utf8').trim();
    const wrong = whyNoTokenKey(key);
    if (wrong !== undefined)
      throw new ThresherError('credential-wrong', `${this.#path} is no key of a token: it ${wrong}`);
    rememberSecret(key, this.#path);
    return { key, file };
  }

  /** The message is the same as long as the key is: a log has it once. */
  #old(file: SecretFile): Reason | undefined {
    if (!this.#isOld(file)) return undefined;
    const { refresh_interval } = this.#config;
    const message = `${this.#path} is of ${isoTime(file.modifiedAt)}, older than refresh_interval (${refresh_interval} minutes)`;
    return { code: 'credential-old', message };
  }

  #isOld({ modifiedAt }: SecretFile): boolean {
    return this.#context.clock.now() - modifiedAt >= this.#config.refresh_interval * minute;
  }

  async #isDue(): Promise<boolean> {
    try {
      const { file } = await this.#read();
      // The age of a file of the future is not known.
      const since = beginningOf({ issuedAt: file.modifiedAt }, this.#context.clock.now());
      return since === undefined || this.#isOld(file);
    } catch (error) {
      // A key that cannot be used is due at any age; `inspect` says what is wrong with it.
      if (error instanceof ThresherError) return true;
      throw error;
    }
  }

  /** @throws ThresherError with a code of the PanDA server */
  async #newKey(signal: AbortSignal): Promise<string> {
    const { pandaServer, clock, files, harvesterId } = this.#context;
    const server = pandaServer?.();
    // There was one when the options were checked.
    if (server === undefined)
      throw new ThresherError(
        'panda-server-off',
        'the settings name no PanDA server with a login (pandacon)',
      );
    const { client_name, timeLimit } = this.#config;
    const login = new PandaLogin(server.login, server.caFile, { files, clock });
    // A client for each key: an hour lies between two of them.
    const client = new PandaClient({ url: server.url, login, clock, timeout: timeLimit * 1000 });
    try {
      const outcome = await new PandaApi(client, harvesterId).tokenKey(client_name, signal);
      if (outcome.kind === 'failed')
        throw new ThresherError(outcome.code, `no key for the client ${client_name}: ${outcome.message}`);
      rememberSecret(outcome.data, this.#path);
      return outcome.data;
    } finally {
      await client.close();
    }
  }
}
