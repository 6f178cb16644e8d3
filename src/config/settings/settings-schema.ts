import Type, { type Static } from 'typebox';
import { factoryIdPattern } from '../../worker/identity.ts';

const closed = { additionalProperties: false, default: {} } as const;
/** A year, s: whoever means more means never, and not all that counts seconds can count so far. */
const longest = 366 * 86_400;
const seconds = (value: number, description: string, minimum = 0, maximum = longest) =>
  Type.Number({ default: value, minimum, maximum, description: `${description}, s.` });
const logUrl = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
/** A hundred years, h. */
const mostHours = 876_600;
const hours = (value: number, status: string) =>
  Type.Number({
    default: value,
    minimum: 0,
    maximum: mostHours,
    description: `How long a ${status} worker's traces are kept, h; longer while an earlier creation of it may still arrive.`,
  });

/**
 * The daemon's own settings: the sections and keys of panda_harvester.cfg where Harvester has one that means the same.
 * docs/configuration.md is generated from this.
 */
export const Settings = Type.Object(
  {
    master: Type.Object(
      {
        harvester_id: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 50,
            description:
              "Instance name, as PanDA knows it; `HARVESTER_ID` of the pilots. Default: `thresher-` and the host's name.",
          }),
        ),
        factoryId: Type.Optional(
          Type.String({
            pattern: factoryIdPattern,
            description:
              'The mark on everything this factory makes. Default: drawn once, kept in the file `factory` of the state directory.',
          }),
        ),
        stateDir: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Directory of the database and of all that must survive a restart. On a local disk. Default: /var/lib/thresher.',
          }),
        ),
        // A day: far below what a timer of Node can wait, which would otherwise end at once.
        shutdownTimeout: seconds(
          20,
          'How long a stop waits for calls under way before it gives them up, a day at most',
          0.1,
          86_400,
        ),
        pluginTimeout: seconds(60, 'How long one call of a plugin may take', 0.1),
      },
      closed,
    ),
    qconf: Type.Object(
      {
        configFile: Type.String({
          default: 'panda_queueconfig.json',
          minLength: 1,
          description: 'The queue file. Relative paths count from this file.',
        }),
        queueList: Type.Optional(
          Type.Array(Type.String({ minLength: 1 }), {
            description: 'Only these queues. Default, and with `ALL`: all of them.',
          }),
        ),
        checkInterval: seconds(5, 'Between looks whether the queue file changed; 0: only on SIGHUP', 0),
      },
      closed,
    ),
    submitter: Type.Object(
      {
        defaultDemand: Type.Optional(
          Type.Union([Type.Literal('fill'), Type.Literal('none')], {
            description:
              'What asks for workers where a queue does not say `demand`. Default: `none`, but `fill` on the local backend.',
          }),
        ),
        sleepTime: seconds(10, 'Between full passes of a queue; events come in between', 0.05),
        maxNewWorkers: Type.Integer({
          default: 1000,
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'At most so many new workers per queue and pass.',
        }),
        submissionRate: Type.Optional(
          Type.Number({
            exclusiveMinimum: 0,
            description: 'New workers of all queues together, per second on average. Default: no such limit.',
          }),
        ),
        submissionBurst: Type.Integer({
          default: 100,
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'How many of them may come at once after a quiet time.',
        }),
        blackHoleLifetime: seconds(
          10,
          'Workers that ran for less count as swallowed by a black hole; 0: no such guard',
          0,
        ),
        blackHoleWorkers: Type.Integer({
          default: 20,
          minimum: 5,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'How many of the last workers of a queue the guard looks at.',
        }),
        blackHolePause: seconds(
          600,
          'While all of them were swallowed, one worker is tried in each such time',
          1,
        ),
      },
      closed,
    ),
    monitor: Type.Object(
      {
        maxStatusAge: seconds(
          120,
          'Without a complete listing for so long, a connection counts as unknown',
          0.1,
        ),
        missingGrace: seconds(30, 'How long a worker must be missing before it is looked up by name', 0),
      },
      closed,
    ),
    credmanager: Type.Object(
      {
        sleepTime: seconds(1800, 'Between renewals of credentials whose files did not change', 1),
        minLifetime: seconds(3600, 'No worker is submitted with a credential that ends sooner', 0),
        warnLifetime: seconds(86_400, 'A credential that ends sooner is warned about', 0),
      },
      {
        // Harvester's lists: moduleName, className, inCertFile, outCertFile, voms; and pluginConfigs.
        additionalProperties: true,
        default: {},
      },
    ),
    pandacon: Type.Object(
      {
        pandaCacheURL: logUrl(
          'Server of the PanDA log cache, for pilots on Kubernetes: Harvester draws one of its machines, and here the name stays.',
        ),
        pandaCacheURL_W_path: logUrl('Path on it that pilots write logs to: `logs_frontend_w`.'),
        pandaCacheURL_R_path: logUrl('Path on it where logs are read: `logs_frontend_r`.'),
        pandaCacheURL_W: logUrl('Whole address to write to, where the two above are not set.'),
        pandaCacheURL_R: logUrl('Whole address to read from, likewise.'),
        pandaURLSSL: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'URL of the PanDA server: credential managers get tokens for it where they do not say `pandaURLSSL` themselves.',
          }),
        ),
      },
      closed,
    ),
    sweeper: Type.Object(
      {
        sleepTime: seconds(60, 'Between full passes of a queue; kill requests come in between', 0.05),
        cron: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Cron expression for full passes at set times, beside `sleepTime`, in the local time zone.',
          }),
        ),
        listInterval: seconds(
          600,
          'Between listings of everything with our mark, for orphans and for rows of which nothing is there',
          0.1,
        ),
        keepFinished: hours(24, 'finished'),
        keepFailed: hours(72, 'failed'),
        keepCancelled: hours(72, 'cancelled'),
        keepMissed: hours(24, 'missed'),
        keepRows: Type.Number({
          default: 24,
          minimum: 0,
          maximum: mostHours,
          description:
            'How long the database keeps ended workers at least, whatever the four above say, h: throttlers look back as far.',
        }),
        pruneInterval: seconds(
          3600,
          'Between deletions from the database of workers whose traces were removed',
          0.05,
        ),
      },
      closed,
    ),
    http: Type.Object(
      {
        enabled: Type.Boolean({
          default: true,
          description: 'Whether health, metrics and status are served.',
        }),
        host: Type.String({
          default: '127.0.0.1',
          minLength: 1,
          description: 'Address to listen on. Anything beyond loopback needs `tokenFile`.',
        }),
        port: Type.Integer({
          default: 25085,
          minimum: 0,
          maximum: 65535,
          description: 'Port to listen on; 0: any free one, named in the log.',
        }),
        tokenFile: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'File with the token that every request must bring: `Authorization: Bearer`, or as the password in a browser.',
          }),
        ),
      },
      closed,
    ),
    log: Type.Object(
      {
        level: Type.Union(
          [Type.Literal('error'), Type.Literal('warn'), Type.Literal('info'), Type.Literal('debug')],
          {
            default: 'info',
            description: 'The least important messages that are written.',
          },
        ),
        format: Type.Optional(
          Type.Union([Type.Literal('plain'), Type.Literal('json'), Type.Literal('journald')], {
            description:
              'Lines for people, one JSON object a line, or lines for the journal: with its priorities, without the time. Default: `journald` where the standard error output is the journal, else `plain`.',
          }),
        ),
        file: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Write to this file instead of the standard error output, `plain` or `json`. It may be renamed at any time: the next line goes to a new one.',
          }),
        ),
      },
      closed,
    ),
  },
  { additionalProperties: false },
);
export type Settings = Static<typeof Settings>;
