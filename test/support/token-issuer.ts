import { type MutableResponse, type MutableToken, OAuth2Server } from 'oauth2-mock-server';
import { type Authority, issue, makeAuthority } from './credentials.ts';

/** What a request for a token said. */
export type Asked = Readonly<Record<string, unknown>>;

/** A real OAuth2 token issuer over TLS, whose answers a test can change. */
export interface Issuer {
  readonly url: string;
  /** PEM of who vouches for it. */
  readonly ca: string;
  readonly requests: Asked[];
  /** The `authorization` headers that came with them. */
  readonly headers: (string | undefined)[];
  /** Claims of the next tokens beside the usual ones. */
  claims: (asked: Asked) => Record<string, unknown>;
  /** Answers of the next requests, if it gives one. */
  answer:
    ((asked: Asked) => { readonly statusCode: number; readonly body: Record<string, unknown> }) | undefined;
  /** How often its metadata were read. */
  looks: number;
  stop(): Promise<void>;
}

/** The issuer gives a token to whom it is asked for, with the scopes that are asked for, for six hours. */
export async function startIssuer(ca: Authority = makeAuthority()): Promise<Issuer> {
  const host = issue(ca.directory, ca, {
    name: '/CN=localhost',
    extensions: ['subjectAltName=DNS:localhost'],
  });
  const server = new OAuth2Server(host.key, host.certificate);
  await server.issuer.keys.generate('RS256');
  await server.start(0, 'localhost');
  const issuer: Issuer = {
    url: server.issuer.url ?? '',
    ca: ca.certificate,
    requests: [],
    headers: [],
    claims: () => ({}),
    answer: undefined,
    looks: 0,
    stop: () => server.stop(),
  };
  type Request = { readonly body: Asked; readonly headers: { readonly authorization?: string } };
  server.service.on('beforeWellKnownOpenIdConfiguration', () => {
    issuer.looks++;
  });
  server.service.on('beforeTokenSigning', (token: MutableToken, { body, headers }: Request) => {
    issuer.requests.push({ ...body });
    issuer.headers.push(headers.authorization);
    const now = Math.floor(Date.now() / 1000);
    const usual = { sub: 'robot', iat: now, nbf: now, exp: now + 6 * 3600 };
    const asked = { aud: body['audience'], ...(body['scope'] !== undefined && { scope: body['scope'] }) };
    Object.assign(token.payload, usual, asked, issuer.claims(body));
  });
  server.service.on('beforeResponse', (response: MutableResponse, { body }: Request) => {
    const other = issuer.answer?.(body);
    if (other !== undefined) Object.assign(response, other);
  });
  return issuer;
}
