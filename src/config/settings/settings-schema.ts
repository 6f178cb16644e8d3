import type { Static } from 'typebox';
import Type from '../../util/type.ts';
import { factoryIdPattern } from '../../worker/identity.ts';
import { CacherSettings } from './cacher-schema.ts';
import { DatabaseSettings } from './database-schema.ts';
import { CommandmanagerSettings, PandaconSettings, PropagatorSettings } from './panda-schema.ts';
import { closed, mostHours, seconds } from './schema-parts.ts';

const hours = (value: number, status: string) =>
  Type.Number({
    default: value,
    minimum: 0,
    maximum: mostHours,
    description: `Hours that thresher keeps a ${status} worker's traces; longer while an earlier creation of it may still arrive.`,
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
              'The mark on everything that this factory makes. Default: a random id, kept in the file `factory` of the state directory.',
          }),
        ),
        stateDir: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Directory of the database and of all other data that must survive a restart. It must be on a local disk. Default: /var/lib/thresher.',
          }),
        ),
        // A day: far below what a timer of Node can wait, which would otherwise end at once.
        shutdownTimeout: seconds(
          20,
          'Seconds to wait for running calls at shutdown before abandoning them (at most 86400)',
          0.1,
          86_400,
        ),
        pluginTimeout: seconds(60, 'Seconds that one call of a plugin may take', 0.1),
      },
      closed,
    ),
    database: DatabaseSettings,
    qconf: Type.Object(
      {
        configFile: Type.String({
          default: 'panda_queueconfig.json',
          minLength: 1,
          description: 'The queue file. Relative paths count from this file.',
        }),
        queueList: Type.Optional(
          Type.Array(Type.String({ minLength: 1 }), {
            description:
              'thresher reads only these queues. Default, and with `ALL`: all of them. With `DYNAMIC`: all of them, and the queues that CRIC gives to this instance (`cacher.data` names the file).',
          }),
        ),
        configFromCacher: Type.Boolean({
          default: false,
          description:
            'Read the queue file `queues_config_file` of `cacher.data` too. The local file wins over it, key by key.',
        }),
        defaultTemplateQueueName: Type.Optional(
          Type.String({
            minLength: 1,
            description: 'Template of a `DYNAMIC` queue whose entry in CRIC has no type or no workflow.',
          }),
        ),
        autoBlacklist: Type.Boolean({
          default: true,
          description:
            "Submit nothing to a queue that CRIC gives to another instance. Harvester's default is false. A status in CRIC of `offline`, `standby` or `maintenance` counts anyway.",
        }),
        resolverModule: Type.Optional(
          Type.String({
            minLength: 1,
            description: "Module of Harvester's class; `resolverClass` names it.",
          }),
        ),
        resolverClass: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              "Harvester's class that says which queues there are. thresher has `PandaQueuesDict`, and uses it whether or not it is named.",
          }),
        ),
        checkInterval: seconds(
          5,
          'Seconds between checks of the queue file for changes; 0: only on SIGHUP',
          0,
        ),
      },
      closed,
    ),
    cacher: CacherSettings,
    submitter: Type.Object(
      {
        defaultDemand: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Name of the source for queues without a `demand` of their own. Default: `none`, but `fill` on the local backend.',
          }),
        ),
        sleepTime: seconds(
          10,
          'Seconds between full passes of a queue; events start passes in between',
          0.05,
        ),
        maxNewWorkers: Type.Integer({
          default: 1000,
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'Maximum of new workers per queue and pass.',
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
          description: 'Number of them that may come at once after a quiet time.',
        }),
        activateWorkerFactor: Type.Union([Type.Number({ minimum: 0 }), Type.Literal('auto')], {
          default: 1,
          description:
            'Workers per activated job of the PanDA server, for queues with `runMode: self` and `mapType: NoJob`. `auto`: 1 by the number of instances that report workers of the site.',
        }),
        noPilotsWhenNoActiveJobs: Type.Boolean({
          default: false,
          description:
            'Such a queue gets no worker while it has no activated job. Default: one is kept queued.',
        }),
        blackHoleLifetime: seconds(
          10,
          'A worker that ran for fewer seconds counts as swallowed by a black hole; 0: no guard. Queues of jobs, such as HTCJobs, have none',
          0,
        ),
        blackHoleWorkers: Type.Integer({
          default: 20,
          minimum: 5,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "Number of a queue's last workers that the guard looks at.",
        }),
        blackHolePause: seconds(
          600,
          'Seconds between single workers that thresher tries while all of these were swallowed',
          1,
        ),
      },
      closed,
    ),
    sources: Type.Record(
      Type.String({ pattern: '^[a-z][a-z0-9-]{0,49}$' }),
      Type.Object(
        {
          module: Type.Optional(
            Type.String({
              minLength: 1,
              description: 'Path or package of a third-party source; relative paths count from this file.',
            }),
          ),
        },
        { additionalProperties: true },
      ),
      {
        additionalProperties: false,
        default: {},
        description:
          'Sources with options for the daemon, by their names: `sources: { NAME: { module: ./my-source.js, OPTION: VALUE } }`. `module` is for a source of a third party. Each source has its own options. Queues name a source by `demand`; a source that is asked about every queue needs no more than to be here.',
      },
    ),
    monitor: Type.Object(
      {
        maxStatusAge: seconds(
          120,
          'Seconds without a complete listing after which a connection counts as unknown',
          0.1,
        ),
        missingGrace: seconds(
          30,
          'Seconds that a worker must be missing before the monitor looks it up by name',
          0,
        ),
      },
      closed,
    ),
    credmanager: Type.Object(
      {
        sleepTime: seconds(1800, 'Seconds between renewals of credentials whose files did not change', 1),
        minLifetime: seconds(
          3600,
          'thresher submits no worker with a credential that ends within this many seconds',
          0,
        ),
        warnLifetime: seconds(86_400, 'thresher warns of a credential that ends within this many seconds', 0),
      },
      {
        // Harvester's lists: moduleName, className, inCertFile, outCertFile, voms; and pluginConfigs.
        additionalProperties: true,
        default: {},
      },
    ),
    pandacon: PandaconSettings,
    commandmanager: CommandmanagerSettings,
    propagator: PropagatorSettings,
    sweeper: Type.Object(
      {
        sleepTime: seconds(
          60,
          'Seconds between full passes of a queue; kill requests start passes in between',
          0.05,
        ),
        cron: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Cron expression for full passes at set times, beside `sleepTime`, in the local time zone.',
          }),
        ),
        listInterval: seconds(
          600,
          'Seconds between listings of everything with our mark, which find orphans and rows without an object',
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
            'Hours that the database keeps ended workers at least, whatever the four above say: throttlers look back this far. For these times and `keepNews` a jump of the clock ahead counts only once it has stayed so for an hour.',
        }),
        keepNews: Type.Number({
          default: 168,
          minimum: 1,
          maximum: mostHours,
          description:
            'Hours that the database keeps news of workers for a source that does not take them. Longer ones are dropped.',
        }),
        mostNews: Type.Integer({
          default: 1_000_000,
          minimum: 1000,
          maximum: 100_000_000,
          description: 'How many news wait for one source at most. The oldest of more are dropped.',
        }),
        pruneInterval: seconds(
          3600,
          'Seconds between deletions from the database of workers whose traces are removed',
          0.05,
        ),
      },
      closed,
    ),
    http: Type.Object(
      {
        enabled: Type.Boolean({
          default: true,
          description: 'Serve health, metrics and status.',
        }),
        host: Type.String({
          default: '127.0.0.1',
          minLength: 1,
          description: 'Address to listen on. An address beyond loopback needs `tokenFile`.',
        }),
        port: Type.Integer({
          default: 25085,
          minimum: 0,
          maximum: 65535,
          description: 'Port to listen on; 0: any free one, named in the log.',
        }),
        publicUrl: Type.Optional(
          Type.String({
            pattern: '^https?://[^/?#\\s]+(/[^?#\\s]*)?$',
            maxLength: 200,
            description:
              "Address by which browsers elsewhere reach this server, such as `https://factory.example.org`: the PanDA monitor links the workers' logs there. Default: it gets no links.",
          }),
        ),
        tokenFile: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'File with the token that every request must carry: `Authorization: Bearer`, or as the password in a browser. It only reads.',
          }),
        ),
        writeTokenFile: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'File with another token, which asks for workers over HTTP, takes requests back, and reads. Its holders run programs on every queue. Default: HTTP only reads.',
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
            description: 'Lowest level of messages that the log gets.',
          },
        ),
        format: Type.Optional(
          Type.Union([Type.Literal('plain'), Type.Literal('json'), Type.Literal('journald')], {
            description:
              'Lines for people, one JSON object a line, or lines for the journal: with its priorities, without the time. Default: `journald` if the standard error output is the journal, else `plain`.',
          }),
        ),
        file: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Write to this file instead of the standard error output, `plain` or `json`. You may rename it at any time: the next line goes to a new file.',
          }),
        ),
      },
      closed,
    ),
  },
  { additionalProperties: false },
);
export type Settings = Static<typeof Settings>;
