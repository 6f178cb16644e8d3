import { resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import { type LoginSource, tokenSource } from '../../clients/panda/login.ts';

const seconds = (fallback: number, description: string) =>
  Type.Number({ default: fallback, minimum: 0.1, maximum: 31_622_400, description });

/** Options of the link to the PanDA server; the names are those of Harvester's `[pandacon]` where it has them. */
export const PandaOptions = Type.Object({
  server_api_url_ssl: Type.String({
    pattern: '^https://',
    description: 'Address of the API, `https://HOST:PORT/api/v1`. Harvester derives it from `pandaURLSSL`.',
  }),
  auth_type: Type.Union([Type.Literal('x509'), Type.Literal('oidc')], {
    default: 'x509',
    description: '`x509`: by certificate or proxy; `oidc`: by token.',
  }),
  cert_file: Type.Optional(
    Type.String({ minLength: 1, description: 'Certificate or proxy (PEM), for `x509`.' }),
  ),
  key_file: Type.Optional(Type.String({ minLength: 1, description: 'Its key. Default: in `cert_file`.' })),
  ca_cert: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Authorities that may sign the server's certificate (PEM). Default: those of the system.",
    }),
  ),
  auth_token: Type.Optional(
    Type.String({ minLength: 1, description: 'The token, or `file:` and its file, for `oidc`.' }),
  ),
  auth_origin: Type.Optional(
    Type.String({
      minLength: 1,
      description: '`VO.production`, for `oidc`: the server takes the role from it.',
    }),
  ),
  timeout: seconds(180, 'Seconds that one call may take.'),
  pollInterval: seconds(5, 'Seconds between questions for commands.'),
  heartbeatInterval: seconds(600, 'Seconds between heartbeats.'),
  statisticsInterval: seconds(300, 'Seconds between reports of statistics, beside those after each order.'),
  reportBatch: Type.Integer({
    default: 100,
    minimum: 1,
    maximum: 1000,
    description: 'Workers in one report.',
  }),
  repeatInterval: seconds(1800, 'Seconds after which a worker is reported again though nothing changed.'),
});
export type PandaOptions = Static<typeof PandaOptions>;

/** @throws Error where an option is missing that the kind of login needs */
export function loginOf(options: PandaOptions, directory: string): LoginSource {
  const { auth_type: kind, cert_file: cert, key_file: key, auth_token: token, auth_origin: origin } = options;
  if (kind === 'x509') {
    if (cert === undefined)
      throw new Error('cert_file is missing: with auth_type x509 it names the certificate or proxy');
    return { kind, certFile: resolve(directory, cert), keyFile: resolve(directory, key ?? cert) };
  }
  if (token === undefined)
    throw new Error('auth_token is missing: with auth_type oidc it is the token, or file:PATH');
  if (origin === undefined)
    throw new Error(
      'auth_origin is missing: with auth_type oidc the server takes the role from it; write VO.production',
    );
  return { kind, token: tokenSource(token, directory), origin };
}
