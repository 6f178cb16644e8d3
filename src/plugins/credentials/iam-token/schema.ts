import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

const path = (description: string) =>
  Type.String({ minLength: 1, description: `${description} Relative paths count from the queue file.` });

const Target = Type.Union(
  [
    Type.String({ minLength: 1 }),
    Type.Object({
      endpoint: Type.String({ minLength: 1 }),
      ce_flavour: Type.Optional(Type.String()),
      audience: Type.Optional(Type.String({ minLength: 1 })),
      scope: Type.Optional(Type.String()),
    }),
  ],
  { description: 'An endpoint, or { endpoint, ce_flavour, audience, scope }.' },
);
export type Target = Static<typeof Target>;

/** Harvester's names, units and defaults; the last ones are our own. */
const options = {
  client_cred_file: path('JSON file with `issuer`, `client_id` and `client_secret`.'),
  target_type: Type.Union([Type.Literal('common'), Type.Literal('ce'), Type.Literal('panda')], {
    description:
      '`ce`: tokens for computing elements, with the scopes of WLCG for jobs; `panda`: one for the PanDA server; `common`: for any `target_list`.',
  }),
  out_dir: path(
    'Directory of the token files: named by the MD5 of the endpoint, as the submitters look for them; of `panda`, by `panda_token_filename`.',
  ),
  panda_token_filename: Type.String({
    default: 'panda_token',
    pattern: '^[^/]+$',
    description: 'Name of the file for the PanDA server.',
  }),
  target_list: Type.Array(Target, {
    default: [],
    description:
      'Endpoints that the tokens are for: `host:port` is endpoint and audience. With `ce_flavour` (`arc-ce`, `htcondor-ce`) the port may be missing, and ARC gets the audience that it requires; `audience` and `scope` set these for one endpoint.',
  }),
  ce_targets: Type.Array(Target, {
    default: [],
    description:
      'Further endpoints for `ce`. thresher puts those of all its queues here: of their `ceList`, which may be that of CRIC, and with a `tokenDir` their `ceEndpoint`.',
  }),
  target_list_file: Type.Optional(path('File with further endpoints, one a line.')),
  pandaURLSSL: Type.Optional(
    Type.String({ minLength: 1, description: 'URL of the PanDA server, for `panda`.' }),
  ),
  refresh_interval: Type.Number({
    default: 3600,
    exclusiveMinimum: 0,
    description: 'Age in seconds at which the manager gets a new token.',
  }),
  refresh_part: Type.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'The manager gets a new one at this part of its lifetime, if that is sooner.',
  }),
  scope: Type.Optional(
    Type.String({ description: 'Scopes of all targets, between spaces, instead of those of `target_type`.' }),
  ),
  minNewLifetime: Type.Number({
    default: 300,
    minimum: 0,
    description: 'The manager does not use a new token that has fewer seconds left.',
  }),
  client_auth: Type.Union([Type.Literal('post'), Type.Literal('basic')], {
    default: 'post',
    description: "Part of the request with the client's secret: the form, or a header.",
  }),
  token_endpoint: Type.Optional(
    Type.String({
      pattern: '^https://',
      description: "URL that gives tokens. Default: from the issuer's metadata.",
    }),
  ),
  ca_file: Type.Optional(path('PEM file of authorities to trust beside the usual ones.')),
  timeLimit: Type.Number({
    default: 30,
    exclusiveMinimum: 0,
    maximum: 600,
    description: 'Seconds for one request.',
  }),
} as const;

/** The content of a section: all options, or a file with them. */
export const IamTokenConfig = Type.Object({
  inFile: Type.Optional(path('JSON file with the options below; it replaces those of the section.')),
  ...options,
  client_cred_file: Type.Optional(options.client_cred_file),
  target_type: Type.Optional(options.target_type),
  out_dir: Type.Optional(options.out_dir),
});
export type IamTokenConfig = Static<typeof IamTokenConfig>;

export const IamTokenOptions = Type.Object(options);
export type IamTokenOptions = Static<typeof IamTokenOptions>;

export const ClientCredentials = Type.Object({
  issuer: Type.String({ pattern: '^https://' }),
  client_id: Type.String({ minLength: 1 }),
  client_secret: Type.String({ minLength: 1 }),
});
