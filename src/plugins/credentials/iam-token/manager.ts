import { join, resolve } from 'node:path';
import pMap from 'p-map';
import { inspectFile, outcomeOf } from '../../../clients/credentials/credential-file.ts';
import {
  exposure,
  fileVersion,
  readSecretFile,
  replaceSecretFile,
} from '../../../clients/credentials/files.ts';
import { type IssuerClient, TokenIssuer } from '../../../clients/credentials/token-issuer.ts';
import { isoTime } from '../../../util/clock.ts';
import { check } from '../../../util/schema.ts';
import { beginningOf, whyUnusable } from '../../../util/validity.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { WorkerError } from '../../../worker/worker.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import { ClientCredentials, type IamTokenOptions } from './schema.ts';
import { type WantedToken, wantedTokens } from './targets.ts';

/** Tokens that are asked for side by side. */
const atOnce = 4;
/** A token for any service that may accept one. Source: WLCG token profile. */
const anyAudience = 'https://wlcg.cern.ch/jwt/v1/any';

/** ms in which the token of a file is not made again, as long as it lasts: unless it is broken, has ended or is asked for. */
const leastPause = 600_000;

/** Tokens of one client, a file for each computing element or server. */
export class IamTokenManager implements CredentialManager {
  readonly #options: IamTokenOptions;
  readonly #clock: Context['clock'];
  readonly #configDir: string;
  /** By path: when its token was made last, by the monotonic clock. */
  readonly #renewed = new Map<string, number>();

  constructor(options: IamTokenOptions, { clock, configDir }: Pick<Context, 'clock' | 'configDir'>) {
    this.#options = options;
    this.#clock = clock;
    this.#configDir = configDir;
  }

  async inspect(): Promise<readonly CredentialState[]> {
    const wanted = await this.#wanted();
    if (!Array.isArray(wanted)) return [{ kind: 'broken', ...wanted }];
    const file = resolve(this.#configDir, this.#options.client_cred_file);
    const client = await readSecretFile(file).catch(() => undefined);
    const exposed = client && exposure(file, client, process.geteuid?.());
    const states = await Promise.all(wanted.map((one) => inspectFile(this.#path(one))));
    return states.map((state) =>
      state.kind === 'broken' || exposed === undefined
        ? state
        : { ...state, warnings: [...state.warnings, exposed] },
    );
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const wanted = await this.#wanted();
    if (!Array.isArray(wanted)) return [{ kind: 'failed', ...wanted }];
    const due = await Promise.all(wanted.map(async (one) => force || (await this.#isDue(one))));
    if (!due.includes(true))
      return wanted.map((one) => ({ kind: 'unchanged' as const, name: this.#path(one) }));
    // Made outside of the loop, so that every target reports a wrong client file.
    const issuer = this.#issuer();
    try {
      return await pMap(
        wanted,
        (one, at) =>
          outcomeOf(this.#path(one), async () => {
            if (due[at] !== true) return 'unchanged';
            await this.#renew(one, await issuer, signal);
            return 'renewed';
          }),
        { concurrency: atOnce },
      );
    } finally {
      await issuer.then(
        (opened) => opened.close(),
        () => undefined,
      );
    }
  }

  /** The client's secret, the list of targets, the authorities, and the tokens: a change of any is a reason to look again. */
  async fingerprint(): Promise<string> {
    const { client_cred_file, target_list_file, ca_file } = this.#options;
    const wanted = await this.#wanted();
    const files = [client_cred_file, target_list_file, ca_file]
      .filter((file) => file !== undefined)
      .map((file) => resolve(this.#configDir, file));
    const tokens = Array.isArray(wanted) ? wanted.map((one) => this.#path(one)) : [];
    return (await Promise.all([...files, ...tokens].map(fileVersion))).join(', ');
  }

  async #renew(wanted: WantedToken, issuer: TokenIssuer, signal: AbortSignal): Promise<void> {
    const path = this.#path(wanted);
    const { token, found, scope } = await issuer.token(wanted, signal);
    const unfit = (what: string) =>
      new ThresherError('credential-unfit', `the new token for ${wanted.endpoint} ${what}`, { file: path });
    const { expiresAt, audience } = found;
    const { minNewLifetime } = this.#options;
    if (expiresAt === undefined) throw unfit('says no end');
    if (expiresAt - this.#clock.now() < minNewLifetime * 1000)
      throw unfit(`ends at ${isoTime(expiresAt)}: it must last ${minNewLifetime} s at least`);
    const why = whyUnusable(found, this.#clock.now());
    if (why !== undefined) throw unfit(why);
    if (audience.length > 0 && ![wanted.audience, anyAudience].some((one) => audience.includes(one)))
      throw unfit(`is for ${audience.join(', ')}, and not for ${wanted.audience}`);
    const granted = found.scopes.length > 0 ? found.scopes : scope?.split(' ');
    const lacking = wanted.scope.split(' ').filter((one) => one !== '' && granted?.includes(one) === false);
    if (lacking.length > 0) throw unfit(`lacks the scopes ${lacking.join(' ')}`);
    await replaceSecretFile(path, this.#clock, token);
    this.#renewed.set(path, this.#clock.monotonic());
  }

  async #isDue(wanted: WantedToken): Promise<boolean> {
    const path = this.#path(wanted);
    const state = await inspectFile(path);
    if (state.kind === 'broken' || state.facts.kind !== 'token') return true;
    const { refresh_interval, refresh_part } = this.#options;
    const now = this.#clock.now();
    const { facts } = state;
    if (whyUnusable(facts, now) !== undefined) return true;
    const { expiresAt = Infinity } = facts;
    // An issuer may give its last token again, of whose life little is left, or one that does not say when it was made: each look would ask for it.
    const renewedAt = this.#renewed.get(path) ?? -Infinity;
    if (this.#clock.monotonic() < renewedAt + Math.min(leastPause, (expiresAt - now) / 2)) return false;
    const file = await readSecretFile(path).catch(() => undefined);
    const since = beginningOf(facts, now) ?? beginningOf({ issuedAt: file?.modifiedAt }, now) ?? 0;
    const after = Math.min(refresh_interval * 1000, (expiresAt - since) * refresh_part);
    return now >= since + after;
  }

  /** Without the file of targets the wanted tokens are unknown: then the file itself is broken. */
  async #wanted(): Promise<WantedToken[] | { readonly name: string; readonly error: WorkerError }> {
    const { target_list_file, out_dir } = this.#options;
    if (target_list_file === undefined) {
      const wanted = wantedTokens(this.#options, []);
      if (wanted.length > 0) return wanted;
      const message =
        'no queue names a computing element: list them in ceList of the queues, in target_list or target_list_file; those of CRIC come by panda_queues.json in cacher.data of the settings, and useCRICGridCE of the queue';
      return {
        name: resolve(this.#configDir, out_dir),
        error: { code: 'credential-targets-missing', message },
      };
    }
    const name = resolve(this.#configDir, target_list_file);
    try {
      const { bytes } = await readSecretFile(name);
      return wantedTokens(this.#options, bytes.toString('utf8').split('\n'));
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      return { name, error: { code: error.code, message: `target_list_file ${error.message}` } };
    }
  }

  async #issuer(): Promise<TokenIssuer> {
    const file = resolve(this.#configDir, this.#options.client_cred_file);
    const { bytes } = await readSecretFile(file);
    const { client_auth, token_endpoint, ca_file, timeLimit } = this.#options;
    const ca = ca_file === undefined ? undefined : await readSecretFile(resolve(this.#configDir, ca_file));
    const { issuer, client_id, client_secret } = readClient(bytes.toString('utf8'), file);
    const client: IssuerClient = {
      issuer,
      clientId: client_id,
      clientSecret: client_secret,
      auth: client_auth,
      tokenEndpoint: token_endpoint,
      timeLimit: timeLimit * 1000,
      authorities: ca?.bytes.toString('utf8'),
    };
    return new TokenIssuer(client);
  }

  #path({ file }: WantedToken): string {
    return join(resolve(this.#configDir, this.#options.out_dir), file);
  }
}

/** @throws ThresherError `credential-wrong`, which shows no value of it. */
function readClient(text: string, file: string) {
  const wrong = (what: string) => new ThresherError('credential-wrong', `${file} ${what}`, { file });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong('is no JSON; it must be { "issuer": "https://...", "client_id": ..., "client_secret": ... }');
  }
  const found = check(ClientCredentials, value);
  if (found.ok) return found.value;
  const keys = ['issuer', 'client_id', 'client_secret'].filter(
    (key) => value === null || typeof value !== 'object' || !(key in value),
  );
  throw wrong(
    keys.length > 0
      ? `lacks ${keys.join(', ')}`
      : 'has a wrong value: issuer must be an https:// URL, client_id and client_secret texts',
  );
}
