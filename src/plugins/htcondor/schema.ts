import type { Static } from 'typebox';
import Type from '../../util/type.ts';
import type { ConnectionHost } from '../contracts/backend.ts';
import { withoutEffect } from '../contracts/without-effect.ts';

const filled = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
/** An empty one switches the option off, as in Harvester. */
const path = (description: string) => Type.Optional(Type.String({ description }));
const natural = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));
const flag = (description: string) => Type.Boolean({ default: false, description });
const anything = (description: string) => Type.Optional(Type.Unknown({ description }));
const oneOrMore = (description: string) =>
  Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })], {
      description,
    }),
  );

/** Which schedds. Monitor and sweeper look where the workers are. `$hostname` is this machine's. */
const where = {
  condorSchedd: oneOrMore(
    'Name of the schedd (`condor_submit -name`), or a list of them. Default: the one of this machine.',
  ),
  condorPool: oneOrMore(
    "Collector of the schedd's pool (`-pool`), or a list with one for each schedd. Default: the collector of HTCondor's configuration.",
  ),
  condorHostConfig: Type.Optional(
    Type.Union(
      [
        Type.String({ minLength: 1 }),
        Type.Record(
          Type.String(),
          Type.Object({ pool: Type.String({ minLength: 1 }), weight: Type.Integer({ minimum: 0 }) }),
        ),
      ],
      {
        description:
          'JSON file `{"SCHEDD": {"pool": "COLLECTOR", "weight": 10}}`, or this object itself, instead of `condorSchedd` and `condorPool`. A schedd with weight 0 gets nothing more. Relative paths count from the queue file; thresher reads the file with the queue file, also on SIGHUP.',
      },
    ),
  ),
  useSpool: flag(
    'Copy input to the schedd and output back (`-spool`). Without it a remote schedd needs a file system that it shares with this machine.',
  ),
};

/** A computing element as CRIC describes one. Others of CRIC's keys may stand beside these. */
export const ComputingElement = Type.Object({
  ce_endpoint: Type.String({ minLength: 1, description: '`host`, `host:port` or a URL.' }),
  ce_flavour: Type.Union([Type.Literal('htcondor-ce'), Type.Literal('arc-ce'), Type.Literal('cream-ce')], {
    default: 'htcondor-ce',
    description: 'Kind of CE. It decides the port of an endpoint without one.',
  }),
  ce_queue_name: Type.String({ default: '', description: 'Queue behind the CE.' }),
  ce_hostname: filled('Name of the machine. Default: the one of the endpoint.'),
  ce_jobmanager: Type.String({ default: '', description: 'Batch system behind it.' }),
  ce_version: Type.String({ default: '', description: 'Version of it.' }),
  ce_state: Type.String({ default: 'ACTIVE', description: 'A CE that is not `ACTIVE` gets no workers.' }),
});
export type ComputingElement = Static<typeof ComputingElement>;

/** How large a worker is, where Harvester would ask CRIC or the job. */
const size = {
  nNode: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Nodes of a worker. Default: as many as its cores need.' }),
  ),
  nCorePerNode: Type.Optional(
    Type.Integer({
      description:
        "Cores of a node. Default, also for 0 and -1: CRIC's `corecount` on a queue that asks for CRIC, else the cores of the worker.",
    }),
  ),
  nCoreFactor: Type.Union(
    [
      Type.Integer({ minimum: 1 }),
      Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer({ minimum: 1 }))),
    ],
    {
      default: 1,
      description:
        'Factor by which thresher multiplies requested cores and memory: a number, or `{JOBTYPE or "Any": {RESOURCETYPE or "Undefined": N}}`.',
    },
  ),
  requestGpus: Type.Integer({ default: 0, minimum: 0, description: 'GPUs of a worker.' }),
};

/** Options of the pilot, which CRIC says where the queue file does not (docs/cric.md). */
const pilot = {
  pilot_url: filled('Address from which the wrapper gets the pilot.'),
  pilot_args: Type.String({ default: '', description: 'More options of the pilot.' }),
  pilot_version: Type.String({ default: 'current', description: 'Version of the pilot.' }),
  python_version: Type.String({ default: '3', description: "The pilot's Python." }),
  unifiedQueue: flag(
    "The queue takes all resource types (CRIC's capability `ucore`): the pilot is told its own.",
  ),
  panda_site: filled("PanDA's site. Default: the computing site."),
  rcPilotRandomWeightPermille: Type.Number({
    default: 0,
    minimum: 0,
    maximum: 1000,
    description: 'Number of 1000 pilots of type PR that run the release candidate.',
  }),
};

/** Harvester: `HTCondorSubmitter` of `pandaharvester.harvestersubmitter.htcondor_submitter`. */
export const HTCondorSubmitterConfig = Type.Object({
  ...where,
  templateFile: filled(
    'Submit description: YAML (templates/htcondor/), or `.sdf` text of Harvester. Relative paths count from the queue file.',
  ),
  CEtemplateDir: filled(
    'Directory with one `FLAVOUR.sdf` or `FLAVOUR.yaml` for each kind of CE, if `templateFile` is not set.',
  ),
  executableFile: path('The program that HTCondor starts: the wrapper of the pilot.'),
  logDir: Type.String({
    default: '/tmp',
    minLength: 1,
    description:
      "Directory of the jobs' output and logs. thresher makes a directory for each hour (`logSubdir`) in it.",
  }),
  logBaseURL: filled('Web address of `logDir`. `[ScheddHostname]` stands for the machine of the schedd.'),
  eventLog: path(
    "The pool's `EVENT_LOG` on this machine, if only this schedd writes to it and the daemon may read it; it replaces the factory's own log (`dagman_log`). Two schedds that write one log have jobs of the same numbers.",
  ),
  useFQDN: Type.Optional(
    Type.Unknown({
      description: '`$hostname` is the full name of the machine instead of the short one.',
    }),
  ),
  x509UserProxy: path('Proxy of the pilots.'),
  x509UserProxyAnalysis: path('Proxy to use instead if `useAnalysisCredentials` is true.'),
  tokenDir: path('Directory with a token for each CE, named after the MD5 of its endpoint.'),
  tokenDirAnalysis: path('Directory to use instead if `useAnalysisCredentials` is true.'),
  useAnalysisCredentials: flag('Take the credentials for analysis.'),
  pandaTokenDir: path('Directory of the token for the PanDA server.'),
  pandaTokenFilename: filled('Name of the token in it.'),
  pandaTokenKeyPath: path("File of the token's key."),
  ceList: Type.Array(ComputingElement, {
    default: [],
    description:
      'CEs to choose from, by the workers queued and running at each (docs/htcondor-templates.md). Default, with `useCRICGridCE`: those of CRIC.',
  }),
  computingElements: anything(
    'Endpoints of CEs (host:port) that throttling rules of level `ce` count. To choose from CEs, list them in `ceList`.',
  ),
  ceEndpoint: oneOrMore('Endpoint of the CE, or a list of them.'),
  ceHostname: oneOrMore('Machine of the CE, or a list of them, one for each endpoint.'),
  ceQueueName: filled('Queue behind the CE.'),
  ceARCGridType: Type.Union([Type.Literal('arc'), Type.Literal('nordugrid')], {
    default: 'arc',
    description: 'Protocol of an ARC CE: REST (`arc`) or gridftp (`nordugrid`).',
  }),
  ce_fairshare_percent: Type.Number({
    default: 50,
    minimum: 0,
    maximum: 100,
    description: "Part of a CE's weight that is the same for all of them, %.",
  }),
  minBulkToRandomizedSchedd: Type.Integer({
    default: 20,
    minimum: 1,
    description: 'Several schedds share a submission only if each gets at least this many workers.',
  }),
  submitMode: Type.Union([Type.Literal('PULL'), Type.Literal('PUSH')], {
    default: 'PULL',
    description: '`PULL`: the pilot asks the server for its job. `PUSH`: it gets one.',
  }),
  ...size,
  accounting_group: filled('Accounting group of the jobs, unless the template sets one.'),
  accounting_group_user: filled('User in it.'),
  container_image: filled('Image for universe container, unless the template sets one.'),
  max_transfer_output_mb: Type.Integer({
    minimum: 0,
    default: 2000,
    description:
      'What one job of an HTCJob or a Pod may bring back, with its own words, MiB; HTCondor holds one with more (code 33). 0: no bound. The command of that name in the template counts before it. Workers without a payload, as pilots are, have the bound of their template alone.',
  }),
  customSubmitAttributes: Type.Record(
    Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.]*$' }),
    Type.Union([Type.String({ minLength: 1 }), Type.Number(), Type.Boolean()]),
    {
      default: {},
      additionalProperties: false,
      description:
        'More attributes of the jobs, as ClassAd expressions: a string needs quotes inside, `"\\"text\\""`. CRIC\'s `jdl.plusattr.*`.',
    },
  ),
  submitCommands: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description:
      'More commands (`request_fpgas`) and attributes (`+MyTag`) that payloads of sources, such as `htcopts` of HTCJobs, may give to jobs of this queue, beside those of [htcjob.md](htcjob.md#htcopts). The source needs them too. `check-config` says of each what it may do.',
  }),
  maxHeldJobs: natural(
    'thresher submits no more workers while this many jobs of the queue are held. Default: no limit.',
  ),
  ...pilot,
  nProcesses: withoutEffect('a batch of workers is one `condor_submit`'),
  useCRIC: anything(
    'Take the options of the pilot from CRIC, where the queue file does not say them (docs/cric.md).',
  ),
  useAtlasCRIC: anything('The same under an older name.'),
  useAtlasAGIS: anything('The same under the oldest name.'),
  useCRICGridCE: anything(
    "Take the queue's CEs from CRIC too, where it has no `ceList`. Without data of CRIC the queue is incomplete; `ceEndpoint` and `ceHostname` count instead, with a warning.",
  ),
  useAtlasGridCE: Type.Optional(
    Type.Unknown({ description: 'The same under an older name; `useCRICGridCE` wins over it.' }),
  ),
});
export type HTCondorSubmitterConfig = Static<typeof HTCondorSubmitterConfig>;

/** s that a pilot may wait in the queue. Harvester: `monitor.workerQueueTimeLimit`. */
export const defaultQueueTimeLimit = 172_800;

/** Harvester: `HTCondorMonitor` of `pandaharvester.harvestermonitor.htcondor_monitor`. */
export const HTCondorMonitorConfig = Type.Object({
  pollInterval: Type.Number({
    default: 10,
    minimum: 0.2,
    description:
      'Seconds between queries of each schedd for all of its jobs. If queues share a schedd, one of them decides.',
  }),
  listInterval: Type.Number({
    default: 30,
    minimum: 0.2,
    description: 'The same while a log of job events shows all changes.',
  }),
  heldTimeout: Type.Integer({
    default: 3600,
    minimum: 0,
    description: 'Seconds after which thresher removes a held job and cancels its worker.',
  }),
  queueTimeLimit: natural(
    `Seconds that a job may be idle in the queue, also in that of its CE, before thresher removes it and its worker fails; 0: no limit. Default: ${defaultQueueTimeLimit} for pilots that a source asks for by number or the PanDA server orders; no limit for other workers (HTCJobs, Pods, requests of operators). A value written here is for all jobs of the queue.`,
  ),
  cancelUnknown: flag(
    'A worker that neither queue nor history knows ends as cancelled; without this option, as missed.',
  ),
  payloadType: filled('`atlas_pilot_wrapper`: thresher puts its exit statuses 1, 2, 64 and 80 into words.'),
  useCondorHistory: Type.Boolean({
    default: true,
    description: 'Ask `condor_history` for jobs that left the queue.',
  }),
  useCondorHistoryMaxAge: Type.Integer({
    default: 7200,
    minimum: 0,
    description: 'Seconds to search back in the history for them.',
  }),
  submissionHost_list: withoutEffect('thresher asks the schedds of all workers'),
  condorHostConfig_list: withoutEffect('thresher asks the schedds of all workers'),
  nProcesses: withoutEffect('one query asks for all workers of a schedd'),
});
export type HTCondorMonitorConfig = Static<typeof HTCondorMonitorConfig>;

/** Harvester: `HTCondorSweeper` of `pandaharvester.harvestersweeper.htcondor_sweeper`. */
export const HTCondorSweeperConfig = Type.Object({
  preparatorBasePath: filled(
    'Directory in which a preparator made one for each worker; thresher removes that with its worker.',
  ),
});
export type HTCondorSweeperConfig = Static<typeof HTCondorSweeperConfig>;

/** The daemon as one schedd sees it. */
export type HTCondorDaemon = ConnectionHost<
  HTCondorSubmitterConfig,
  HTCondorMonitorConfig,
  HTCondorSweeperConfig
>;

/** Which schedds. */
export type Where = Pick<HTCondorSubmitterConfig, keyof typeof where>;
