import Type from '../../util/type.ts';
import { closed, mostHours, seconds } from './schema-parts.ts';

const port = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const httpsOrigin = `^https://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:${port})?/?$`;

/** Section `cacher`: the files that the daemon fetches. */
export const CacherSettings = Type.Object(
  {
    data: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Files to fetch, each as `key|subkey|URL|dump file`; subkey and dump file may be empty or missing. URLs begin with `file:`, `http:`, `https:` or `panda_server:`. docs/cacher.md lists the keys that thresher reads.',
      }),
    ),
    certificateFor: Type.Optional(
      Type.Array(Type.String({ pattern: httpsOrigin }), {
        description:
          'Servers, each as `https://HOST` or `https://HOST:PORT`, that may ask for the certificate of `pandacon` (`cert_file`, `key_file`), as some CRICs do; no other gets it. Harvester has it for all. A server that they lead to is named as well.',
      }),
    ),
    refreshInterval: Type.Number({
      default: 10,
      minimum: 0.01,
      maximum: 527_040,
      description: 'Minutes after which a file is fetched again.',
    }),
    sleepTime: seconds(60, 'Seconds after which a fetch that failed is tried again', 0.05),
    timeout: seconds(60, 'Seconds that one fetch may take (at most 3600)', 0.1, 3600),
    warnAge: Type.Number({
      default: 24,
      minimum: 0.001,
      maximum: mostHours,
      description:
        'Hours after which data that were not fetched anew count as old: thresher goes on with them, and says so of every queue that depends on them.',
    }),
  },
  closed,
);
