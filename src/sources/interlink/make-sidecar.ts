import { join, resolve } from 'node:path';
import type { SourceHost } from '../../plugins/contracts/index.ts';
import { toolEnvironment } from '../../clients/credentials/environment.ts';
import { NodeCapacity } from './capacity/node-capacity.ts';
import { condorCapacity, condorTools } from './capacity/condor-capacity.ts';
import type { InterlinkOptions } from './options.ts';
import { PodLogs } from './logs/pod-logs.ts';
import { Looks } from './looks/looks.ts';
import { Peeks } from './looks/peeks.ts';
import type { PlannedPod, Planner } from './planner.ts';
import { reportFile } from './pod/report.ts';
import { PodBook } from './pods/pod-book.ts';
import { PodFiles } from './pods/pod-files.ts';
import { ReportDoor } from './reports/report-door.ts';
import { readReportKey, reportToken } from './reports/report-key.ts';
import { scriptCapacity } from './capacity/script-capacity.ts';
import { batchInterval } from './requests.ts';
import { requireConsent } from './server/listen.ts';
import { serveSidecar } from './server/serve.ts';
import { Sidecar } from './sidecar.ts';

/** Makes the planner by the options, and by where jobs send their reports, if they do. */
export type MakePlanner = (
  options: InterlinkOptions,
  reportTo: ((uid: string) => { readonly url: string; readonly token: string }) | undefined,
) => Planner;

/** How long the operator's script for the capacity may take, ms. */
const scriptTime = 60_000;

/** @throws ThresherError `interlink-open`, `interlink-files` */
export function makeSidecar(options: InterlinkOptions, makePlanner: MakePlanner, host: SourceHost): Sidecar {
  const { socket, othersMayReachIt, port, queue } = options;
  const { configDir, log } = host;
  const place =
    socket === undefined
      ? { host: options.host, port, othersMayReachIt }
      : { socket: resolve(configDir, socket) };
  if (!('socket' in place)) requireConsent(place);
  const root = resolve(configDir, options.dataRoot);
  const files = new PodFiles(root, log, host.files.laneOf(root));
  const { reportUrl, reportKeyFile } = options;
  const keyFile = reportKeyFile === undefined ? join(root, 'report.key') : resolve(configDir, reportKeyFile);
  const key = reportUrl === undefined ? undefined : readReportKey(keyFile, reportKeyFile === undefined);
  const reportTo =
    reportUrl === undefined || key === undefined
      ? undefined
      : (uid: string) => ({ url: `${reportUrl}/${uid}`, token: reportToken(key, uid) });
  const node = nodeCapacity(options, host);
  const backend = {
    ping: () => ({
      message: options.htcondor ? 'HTCondor sidecar is alive' : 'the sidecar is alive',
      status: 'healthy',
      ...node?.known,
      ...(options.taints && { taints: options.taints }),
    }),
    state: () => ({ trouble: node?.trouble, totals: node?.totals, isHtcondor: options.htcondor }),
  };
  const { dummySeconds } = options;
  if (dummySeconds !== undefined)
    log.warn('no container of a Pod will run: each job is a dummy that sleeps', { seconds: dummySeconds });
  const peeks = new Peeks();
  const machines = options.sharedDataRoot ? undefined : { peeks, looks: new Looks(host, peeks) };
  return new Sidecar({
    host,
    ...(machines && { machines }),
    logs: new PodLogs({ host, files, ...(machines && { machines }) }),
    book: new PodBook(files, log),
    planner: withOutput(makePlanner(options, reportTo), files, options.sharedDataRoot),
    queue,
    createTimeout: options.createTimeout * 1000,
    lookInterval: options.lookInterval * 1000,
    batchInterval,
    longestSilence: options.silentHours * 3_600_000,
    keepEnded: options.keepEndedDays * 86_400_000,
    ...(key !== undefined && { door: new ReportDoor(key) }),
    serve: async (service, signal) => {
      await Promise.all([
        serveSidecar(place, service, host, backend, signal),
        node?.run(options.capacityInterval * 1000, signal),
      ]);
    },
  });
}

function nodeCapacity(options: InterlinkOptions, host: SourceHost): NodeCapacity | undefined {
  const { capacity, capacityScript, condorPool } = options;
  if (capacityScript !== undefined) {
    const environment = toolEnvironment(process.env);
    const { clock, configDir: directory } = host;
    return new NodeCapacity(
      scriptCapacity({ command: capacityScript, directory, timeLimit: scriptTime, environment, clock }),
      host,
    );
  }
  if (capacity === 'none') return undefined;
  return new NodeCapacity(condorCapacity(condorTools(condorPool, host)), host);
}

/**
 * Tells the template of the queue where the job's files come back to (`${payload.output}`), and which these are
 * (`${payload.outputFiles}`); or the job where it finds the directory itself. Its runner works in the scratch directory of HTCondor,
 * or in the directory that bears this name.
 */
function withOutput(planner: Planner, files: PodFiles, isShared: boolean): Planner {
  return (data) => {
    const plan = planner(data);
    if (!('payload' in plan)) return plan;
    const output = files.outputOf(data.pod.metadata.uid ?? '');
    const { payload } = plan;
    const values = { ...payload.values, output, outputFiles: isShared ? '""' : outputFilesOf(plan) };
    const env = { ...payload.env, ...(isShared && { _CONDOR_SCRATCH_DIR: output }) };
    // The files that the job leaves tell its end: a fetch that fails must not cost them.
    const kept = isShared ? {} : { output: 'template' as const };
    return { ...plan, payload: { ...payload, values, env, ...kept } };
  };
}

/**
 * The files that the runner leaves, as `transfer_output_files` has them: HTCondor brings back these alone, and shows them while the job
 * runs. The report comes last: with it all files have come.
 */
function outputFilesOf({ containers }: PlannedPod): string {
  const logs = containers.map((name) => `${name}.log`);
  return [...logs.flatMap((log) => [log, `${log}.times`]), reportFile].join(', ');
}
