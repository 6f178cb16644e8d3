import Type from '../../util/type.ts';
import { closed, longest, seconds } from './schema-parts.ts';

const logUrl = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));

/** Section `pandacon`: the PanDA server, the login to it, and the log cache of its pilots. */
export const PandaconSettings = Type.Object(
  {
    pandaCacheURL: logUrl(
      'Server of the PanDA log cache, for pilots on Kubernetes: Harvester draws one of its machines, and here the name stays.',
    ),
    pandaCacheURL_W_path: logUrl('Path on it to which pilots write logs: `logs_frontend_w`.'),
    pandaCacheURL_R_path: logUrl('Path on it from which logs are read: `logs_frontend_r`.'),
    pandaCacheURL_W: logUrl('Whole address to write to, if the two above are not set.'),
    pandaCacheURL_R: logUrl('Whole address to read from, likewise.'),
    pandaURLSSL: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'URL of the PanDA server: credential managers without a `pandaURLSSL` of their own get tokens for it, and `server_api_url_ssl` is derived from it.',
      }),
    ),
    server_api_url_ssl: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Address of the API of the PanDA server, `https://HOST:PORT/api/v1`. Default: that path on the host of `pandaURLSSL`.',
      }),
    ),
    auth_type: Type.Optional(
      Type.String({
        minLength: 1,
        description: '`x509`: log in by certificate; `oidc`: by token. Default: `x509`.',
      }),
    ),
    cert_file: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Certificate or proxy (PEM) with the production role, for `x509`.',
      }),
    ),
    key_file: Type.Optional(
      Type.String({ minLength: 1, description: 'Its key (PEM). Default: in `cert_file`.' }),
    ),
    auth_token: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'For `oidc`: `file:` and the file of the token, or the token itself.',
      }),
    ),
    auth_origin: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'For `oidc`: `VO.production`; the server takes the role from it.',
      }),
    ),
    ca_cert: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Boolean()], {
        description:
          "File of the authorities (PEM) that may sign the server's certificate, which thresher always verifies. Default: those of the system.",
      }),
    ),
    timeout: Type.Optional(
      Type.Number({
        minimum: 1,
        maximum: longest,
        description: 'Seconds that one call of the server may take. Default: 180.',
      }),
    ),
    multihost_auth_config: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'JSON file with other logins by `HOST:PORT`: `auth_type`, `cert_file`, `key_file`, `ca_cert`, `auth_token`, `auth_origin`. The entry of the server above counts.',
      }),
    ),
  },
  closed,
);

/** Section `commandmanager`: questions for the commands of the server. */
export const CommandmanagerSettings = Type.Object(
  {
    sleepTime: seconds(5, 'Seconds between questions for commands of the PanDA server', 0.1),
    commands_bulk_size: Type.Integer({
      default: 20,
      minimum: 1,
      maximum: 1000,
      description:
        'Commands that one question asks for; more than 100 count as 100, so that an answer is never too large. After a full answer the next question comes at once.',
    }),
  },
  closed,
);

/** Section `propagator`: reports to the server. */
export const PropagatorSettings = Type.Object(
  {
    nWorkersInBulk: Type.Integer({
      default: 100,
      minimum: 1,
      maximum: 1000,
      description: 'Workers in one report to the PanDA server.',
    }),
    updateInterval: seconds(
      1800,
      'Seconds after which the PanDA server hears of a living worker again though nothing changed',
      1,
    ),
    maxDialogs: Type.Integer({
      default: 50,
      minimum: 0,
      maximum: 1000,
      description: 'Messages of the log that the PanDA server gets in a minute, at most.',
    }),
    minMessageLevel: Type.Union([Type.Literal('INFO'), Type.Literal('WARNING'), Type.Literal('ERROR')], {
      default: 'WARNING',
      description:
        'Lowest level of these messages. `INFO` counts as `WARNING`: thresher sends no lower ones.',
    }),
  },
  closed,
);
