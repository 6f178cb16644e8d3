import { fromOutside, rememberLogin, rememberSecret } from '../../util/own-secrets.ts';
import { rootCertificates } from 'node:tls';
import * as oidc from 'openid-client';
import { Agent, fetch } from 'undici';
import { fileKinds } from '../../util/file-kinds.ts';
import { Gathered } from '../../util/gathered.ts';
import { hasMoreValues } from '../../util/json.ts';
import { isOfUnknownAuthority, messageOf, ThresherError } from '../../worker/errors.ts';
import { readToken, type TokenFacts } from './jwt.ts';
import { withoutSecrets } from './redact.ts';

/** A client of a token issuer. */
export interface IssuerClient {
  /** https */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** How it shows its secret: in the form, as Harvester does, or in a header. */
  readonly auth: 'post' | 'basic';
  /** Undefined: the issuer's metadata say it. */
  readonly tokenEndpoint: string | undefined;
  /** PEM of authorities that are trusted beside the usual ones. */
  readonly authorities: string | undefined;
  /** For one request, ms. */
  readonly timeLimit: number;
}

export interface TokenRequest {
  readonly audience: string;
  /** Between spaces; "" for the client's own. */
  readonly scope: string;
}

/** Characters of a token: as many as a file may have. */
const longestToken = fileKinds.token.largest;
/** Longest piece of an issuer's words that is shown. */
const excerpt = 200;

/** Gets tokens by OAuth2 client credentials. `close` it when all are there: its connections stay open until then. */
export class TokenIssuer {
  readonly #client: IssuerClient;
  readonly #agent: Agent;
  #configuration: Promise<oidc.Configuration> | undefined;

  constructor(client: IssuerClient) {
    this.#client = client;
    rememberSecret(client.clientSecret);
    if (client.auth === 'basic') rememberLogin(inHeader(client.clientId), inHeader(client.clientSecret));
    const ca = client.authorities === undefined ? undefined : [...rootCertificates, client.authorities];
    this.#agent = new Agent({ connect: { ...(ca && { ca }) } });
  }

  /**
   * @returns the token, what is in it, and the scopes that the answer says it has.
   * @throws ThresherError `credential-issuer`, also for an answer that is no JWT
   */
  async token(
    { audience, scope }: TokenRequest,
    signal: AbortSignal,
  ): Promise<{ readonly token: string; readonly found: TokenFacts; readonly scope: string | undefined }> {
    try {
      // One look at the metadata serves all; who comes later shares its failure too.
      this.#configuration ??= this.#configure(signal);
      const parameters = { audience, ...(scope !== '' && { scope }) };
      const answer = await oidc.clientCredentialsGrant(await this.#configuration, parameters);
      const { access_token: token, scope: granted } = answer;
      const { issuer, clientId } = this.#client;
      // What is remembered is looked for in every message.
      if (token.length > longestToken) throw new TokenTooLong();
      if (!/^[\x21-\x7e]+$/.test(token)) throw new Error('its token has characters that no request may have');
      // A text that is none, a name perhaps, would be hidden from now on wherever it is said.
      const found = readToken(token, 'its token');
      rememberSecret(token, [issuer, clientId, audience, scope].join(' '));
      return { token, found, scope: granted };
    } catch (error) {
      // Without the cause: it holds the answer, and perhaps what was asked.
      const why = fromOutside(withoutSecrets(whyFailed(error), [this.#client.clientSecret])).slice(
        0,
        excerpt,
      );
      throw new ThresherError('credential-issuer', `token issuer ${this.#client.issuer} ${why}`);
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #configure(signal: AbortSignal): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret, tokenEndpoint, auth, timeLimit } = this.#client;
    const authentication =
      auth === 'basic' ? oidc.ClientSecretBasic(clientSecret) : oidc.ClientSecretPost(clientSecret);
    const ask: oidc.CustomFetch = async (url, { signal: own, ...options }) => {
      const signals = [signal, AbortSignal.timeout(timeLimit), ...(own ? [own] : [])];
      const init = { ...options, signal: AbortSignal.any(signals), dispatcher: this.#agent };
      const answer = await fetch(url, init as RequestInit);
      const body = await textOf(answer);
      // Node's own class: undici's is another one.
      return new Response(body === '' ? null : body, {
        status: answer.status,
        headers: [...answer.headers.entries()],
      });
    };
    if (tokenEndpoint === undefined) {
      return oidc.discovery(new URL(issuer), clientId, undefined, authentication, {
        [oidc.customFetch]: ask,
      });
    }
    const server = { issuer, token_endpoint: tokenEndpoint };
    const configuration = new oidc.Configuration(server, clientId, undefined, authentication);
    configuration[oidc.customFetch] = ask;
    return configuration;
  }
}

/** A part of a login as OAuth2 has it in `Basic`: `-` and `_` are escaped, too. Source: RFC 6749, 2.3.1; oauth4webapi. */
function inHeader(part: string): string {
  return encodeURIComponent(part)
    .replaceAll(/[-_.!~*'()]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

type RequestInit = NonNullable<Parameters<typeof fetch>[1]>;

/** Of one answer: a token has some thousand characters. */
const most = { bytes: 1024 * 1024, values: 10_000 };

/** @throws AnswerTooLarge for a body that is no answer of an issuer by its size, packed or not */
async function textOf(answer: Awaited<ReturnType<typeof fetch>>): Promise<string> {
  const body = new Gathered();
  for await (const { buffer, byteOffset, length } of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    body.add(Buffer.from(buffer, byteOffset, length));
    if (body.length > most.bytes) throw new AnswerTooLarge();
  }
  const text = body.take().toString('utf8');
  if (hasMoreValues(text, most.values)) throw new AnswerTooLarge();
  return text;
}

class AnswerTooLarge extends Error {}

class TokenTooLong extends Error {}

/** An error shows nothing of an answer's body but the issuer's own error. */
function whyFailed(error: unknown): string {
  if (error instanceof oidc.ResponseBodyError) {
    const { status, error: code, error_description: more } = error;
    return `refused (HTTP ${status}): ${code}${more === undefined ? '' : `, ${more}`}`;
  }
  if (error instanceof oidc.WWWAuthenticateChallengeError) return `refused (HTTP ${error.status})`;
  if (error instanceof TokenTooLong) return `gave a token of more than ${longestToken} characters`;
  if (!(error instanceof Error)) return 'failed';
  if ([error, error.cause].some((one) => one instanceof AnswerTooLarge))
    return 'gave an answer that is too large';
  if (error.name === 'TimeoutError') return 'did not answer in time';
  if (error.name === 'AbortError') return 'was given up';
  const { cause } = error;
  if (error instanceof oidc.ClientError) {
    const inner = cause instanceof Error ? cause : undefined;
    if (inner?.name === 'TimeoutError') return 'did not answer in time';
    if (inner?.name === 'AbortError') return 'was given up';
    const status = statusOf(cause);
    return `answered something else than was expected${status === undefined ? '' : ` (HTTP ${status})`}: ${error.message}`;
  }
  // undici reports a failed connection in this form.
  if (error.message === 'fetch failed' && cause instanceof Error) {
    const hint = isOfUnknownAuthority(cause) ? ': ca_file names the file of its authority' : '';
    return `cannot be reached: ${messageOf(cause) || String('code' in cause ? cause.code : cause.name)}${hint}`;
  }
  return `failed: ${error.message}`;
}

function statusOf(cause: unknown): number | undefined {
  return cause !== null && typeof cause === 'object' && 'status' in cause && typeof cause.status === 'number'
    ? cause.status
    : undefined;
}
