import { namesBeyondLists } from '../../clients/htcondor/submit-names.ts';
import { interlinkSource } from '../../clients/interlink/source-name.ts';
import type { SidecarConfig } from './sidecar-config.ts';
import type { CondorFlags } from './condor-flags.ts';
import { ThresherError } from '../../worker/errors.ts';

export { readSidecarConfig } from './sidecar-config.ts';

/** Flags of the sidecar, by the names that commander gives them. */
export interface SidecarFlags extends CondorFlags {
  readonly scheddHost?: string;
  readonly scheddName?: string;
  readonly collectorHost?: string;
  readonly dummyJob?: true;
  readonly port?: number;
  readonly host?: string;
  readonly socket?: string;
  readonly othersMayReachIt?: true;
}

/** Port of the original. */
const usualPort = 8000;
/** A schedd that spools has no log of job events here: one question per interval tells of all Pods, s. */
const remotePoll = 1;
/** How long a dummy sleeps, s. */
const dummySeconds = 60;

/** Files of a daemon that does nothing but this, as values: its settings, its queue and the template of its jobs. */
export function sidecarFiles(flags: SidecarFlags, config: SidecarConfig, dataRoot: string) {
  const { scheddHost, scheddName, collectorHost, proxy } = flags;
  const schedd = scheddName ?? scheddHost;
  const htcondor = 'thresher/htcondor';
  const { submitCommands } = config.options;
  const added = Array.isArray(submitCommands) ? namesBeyondLists(submitCommands.map(String)) : [];
  const where = {
    ...(schedd !== undefined && { condorSchedd: schedd, useSpool: true }),
    ...(collectorHost !== undefined && { condorPool: collectorHost }),
  };
  return {
    settings: {
      master: { stateDir: 'state' },
      qconf: { configFile: 'queues.json' },
      http: { enabled: Object.keys(config.http).length > 0, ...config.http },
      // interLink waits for the id of each job.
      submitter: { sleepTime: 1 },
      ...(config.logLevel && { log: { level: config.logLevel } }),
      sources: {
        [interlinkSource]: {
          port: usualPort,
          capacity: 'htcondor',
          ...(flags.dummyJob === true && { dummySeconds }),
          ...listening(flags, config.options),
          dataRoot,
          ...(collectorHost !== undefined && { condorPool: collectorHost }),
        },
      },
    },
    queues: {
      interlink: {
        queueStatus: 'online',
        mapType: 'NoJob',
        demand: interlinkSource,
        maxWorkers: 100_000,
        nQueueLimitWorker: 100_000,
        maxNewWorkersPerCycle: 1000,
        // A start before it is there, or after its end, waits for the next one.
        ...(proxy !== undefined && { credentials: [proxy] }),
        submitter: {
          name: 'HTCondorSubmitter',
          module: htcondor,
          templateFile: 'job.yaml',
          logDir: 'logs',
          ...(added.length > 0 && { submitCommands: added }),
          ...where,
        },
        monitor: {
          name: 'HTCondorMonitor',
          module: htcondor,
          ...(schedd !== undefined && { pollInterval: remotePoll }),
          ...config.monitor,
        },
        sweeper: { name: 'HTCondorSweeper', module: htcondor },
      },
    },
    template: templateWith(config.submit),
  };
}

/** A flag that says where to listen wins over the file, also over the socket there. */
function listening(flags: SidecarFlags, options: SidecarConfig['options']) {
  const { port, host, socket, othersMayReachIt } = flags;
  const isTold = port !== undefined || host !== undefined;
  const { socket: written, ...others } = options;
  const path = socket ?? (isTold ? undefined : written);
  return {
    ...others,
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
    ...(path !== undefined && { socket: path }),
    ...(othersMayReachIt === true && { othersMayReachIt }),
  };
}

const template = {
  universe: 'vanilla',
  // The payload of the Pod takes its place.
  executable: '/bin/true',
  transfer_executable: false,
  initialdir: '${payload.output}',
  should_transfer_files: 'YES',
  when_to_transfer_output: 'ON_EXIT',
  // HTCondor shows these files while the job runs. A value has no comma in a list of files, and a macro may have one.
  pod_files: '${payload.outputFiles}',
  transfer_output_files: '$(pod_files)',
  output: 'job.out',
  error: 'job.err',
  log: '${logDir}/${logSubdir}/${workerID}.log',
} as const;

/** Commands of a job that neither its Pod nor the operator names. HTCondor's own memory, 128 MB, is too little to unpack an image. */
const usual = { request_memory: 1024 };

/** @throws ThresherError `interlink-config` */
function templateWith(submit: SidecarConfig['submit']) {
  const taken = Object.keys(submit).find((name) => Object.hasOwn(template, name.toLowerCase()));
  if (taken !== undefined) {
    const message = `thresher.submit.${taken} is the sidecar's own: remove it; other submit commands are yours`;
    throw new ThresherError('interlink-config', message);
  }
  const named = new Set(Object.keys(submit).map((name) => name.toLowerCase()));
  const added = Object.entries(usual).filter(([name]) => !named.has(name));
  return { ...template, ...Object.fromEntries(added), ...submit };
}
