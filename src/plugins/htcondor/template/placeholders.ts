import { basename, join } from 'node:path';
import { tokenFileOf } from '../../../clients/htcondor/ce-endpoint.ts';
import { withHostname } from '../../../util/hostname.ts';
import type { Worker, WorkerToStart } from '../../../worker/worker.ts';
import { pilotOptions } from '../../contracts/pilot-options.ts';
import {
  identityPlaceholders,
  payloadKeyOf,
  payloadPlaceholders,
  requirementPlaceholders,
  workerPlaceholders,
} from '../../contracts/placeholders.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';

/** Harvester's placeholders of a submit description. Source: its htcondor_submitter. */
const harvesters = [
  ...['sdfPath', 'executableFile', 'jobSpecFileName', 'nCorePerNode', 'nCoreTotal', 'nNode', 'nCoreFactor'],
  ...['requestRam', 'requestRamBytes', 'requestRamPerCore', 'requestRamBytesPerCore', 'requestDisk'],
  ...['requestWalltime', 'requestWalltimeMinute', 'requestCputime', 'requestCputimeMinute', 'accessPoint'],
  ...[
    'harvesterID',
    'workerID',
    'computingSite',
    'pandaQueueName',
    'x509UserProxy',
    'ceEndpoint',
    'ceHostname',
  ],
  ...[
    'ceFlavour',
    'ceJobmanager',
    'ceQueueName',
    'ceVersion',
    'logDir',
    'logSubdir',
    'prodSourceLabel',
    'jobType',
  ],
  ...[
    'resourceType',
    'pilotResourceTypeOption',
    'ioIntensity',
    'pilotType',
    'pilotUrlOption',
    'pilotVersion',
  ],
  ...['pilotPythonOption', 'pilotDebugOption', 'pilotArgs', 'submissionHost', 'submissionHostShort'],
  ...['ceARCGridType', 'tokenDir', 'tokenFilename', 'tokenPath', 'pandaTokenFilename', 'pandaTokenPath'],
  ...['pandaTokenKeyFilename', 'pandaTokenKeyPath', 'pilotJobLabel', 'pilotJobType', 'requestGpus'],
  ...['requireGpus', 'customSubmitAttributes', 'cricPandaSite', 'gtag'],
];

/** All that a template may name: Harvester's, those of every backend, and `submitMode`. */
export const knownPlaceholders: readonly string[] = [
  ...new Set([...harvesters, ...identityPlaceholders, ...requirementPlaceholders, 'submitMode']),
];
const known = new Set(knownPlaceholders);

export function isPlaceholder(name: string): boolean {
  return known.has(name) || payloadKeyOf(name) !== undefined;
}

/** Placeholders that stand for several words of a command line. */
export const severalWords: ReadonlySet<string> = new Set([
  ...['pilotArgs', 'pilotUrlOption', 'pilotPythonOption', 'pilotDebugOption', 'pilotResourceTypeOption'],
]);

/** Submit text in which HTCondor's `$(Cluster)` is meant to be replaced: of `gtag`, which comes from the template. */
export interface Live {
  readonly live: string;
}

/** `null` is Python's None, and is written so. */
export type Value = string | number | boolean | null | Live;
export type Values = Readonly<Record<string, Value>>;

/** A CE as it was chosen; see place/. */
export interface ChosenCe {
  readonly endpoint: string;
  readonly hostname: string;
  readonly flavour: string;
  readonly jobmanager: string;
  readonly queueName: string;
  readonly version: string;
  /** `arc`, `nordugrid` or "". */
  readonly gridType: string;
}

/** Facts that all workers of one submission have in common. */
export interface BatchFacts {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly hostname: string;
  readonly config: HTCondorSubmitterConfig;
  /** The submit description itself. Absolute. */
  readonly sdfPath: string;
  /** `schedd,pool`, or `LOCAL`. */
  readonly submissionHost: string;
  readonly ce?: ChosenCe;
  /** ms UTC: names the directory of the logs. */
  readonly now: number;
  /** Name of the file with the job's description, by the messenger. */
  readonly jobSpecFileName?: string;
  readonly random: () => number;
}

/** The directory of the hour, in `logDir`: "26-08-31_14". */
export function logSubdirOf(now: number): string {
  return new Date(now).toISOString().slice(2, 13).replace('T', '_');
}

/** Values of all placeholders for one worker, with those of its payload, but `gtag`, which the template's own `output` decides. */
export function valuesOf(worker: WorkerToStart, facts: BatchFacts): Values {
  const { config, ce, submissionHost } = facts;
  return {
    ...workerPlaceholders(worker, facts),
    ...pilotValues(worker, config, facts.random),
    ...sizesOf(worker, config),
    ...credentialsOf(config, ce),
    sdfPath: facts.sdfPath,
    executableFile: config.executableFile ?? null,
    jobSpecFileName: facts.jobSpecFileName ?? 'pandaJobData.out',
    pandaQueueName: worker.queue,
    ceEndpoint: ce?.endpoint ?? '',
    ceHostname: ce?.hostname ?? '',
    ceFlavour: ce?.flavour ?? '',
    ceJobmanager: ce?.jobmanager ?? '',
    ceQueueName: ce?.queueName ?? config.ceQueueName ?? '',
    ceVersion: ce?.version ?? '',
    ceARCGridType: ce?.gridType ?? config.ceARCGridType,
    logDir: withHostname(config.logDir, facts.hostname),
    logSubdir: logSubdirOf(facts.now),
    ioIntensity: 0,
    submissionHost,
    submissionHostShort: submissionHost.split('.', 1)[0] ?? '',
    cricPandaSite: config.panda_site ?? worker.computingSite,
    submitMode: config.submitMode,
    gtag: 'fake_GTAG_string',
    ...(worker.payload?.values && payloadPlaceholders(worker.payload)),
  };
}

/** The placeholders that are options of the wrapper. */
function pilotValues(
  { requirements }: Worker,
  config: HTCondorSubmitterConfig,
  random: () => number,
): Values {
  const pilot = pilotOptions(requirements, config, random);
  const { resourceType } = requirements;
  const { unifiedQueue } = config;
  return {
    prodSourceLabel: pilot.label,
    pilotType: pilot.pilotType,
    pilotUrlOption: pilot.urlOption,
    pilotVersion: pilot.version,
    pilotPythonOption: pilot.pythonOption,
    pilotDebugOption: pilot.debugOption,
    pilotArgs: config.pilot_args,
    pilotJobLabel: pilot.jobLabel,
    pilotJobType: pilot.jobType,
    resourceType: unifiedQueue ? resourceType : '',
    pilotResourceTypeOption: unifiedQueue ? `--resource-type ${resourceType}` : '',
  };
}

/**
 * Cores, memory, disk and times. `requestRam` is MB, `requestDisk` KB, times are seconds. A size that is not said is
 * the least that HTCondor takes. Source: Harvester's make_a_jdl, with the cores of the worker in place of CRIC's
 * corecount.
 */
export function sizesOf({ requirements }: Worker, config: HTCondorSubmitterConfig) {
  const { nCore, minRamCount, maxDiskCount, maxWalltime } = requirements;
  const perNode =
    config.nCorePerNode === undefined || config.nCorePerNode < 1 ? undefined : config.nCorePerNode;
  const cores = Math.max(1, nCore || (perNode ?? 1));
  const nCorePerNode = perNode ?? cores;
  const factor = coreFactorOf(requirements, config);
  const ram = Math.max(minRamCount, cores);
  const bytes = ram * 2 ** 20;
  const cputime = maxWalltime * cores;
  return {
    nCorePerNode,
    nCoreTotal: cores * factor,
    nNode: config.nNode ?? Math.ceil(cores / nCorePerNode),
    nCoreFactor: factor,
    requestRam: ram * factor,
    requestRamBytes: bytes * factor,
    requestRamPerCore: Math.ceil(ram / cores),
    requestRamBytesPerCore: Math.ceil(bytes / cores),
    requestDisk: maxDiskCount > 0 ? maxDiskCount * 1024 : 1,
    requestWalltime: maxWalltime,
    requestWalltimeMinute: Math.ceil(maxWalltime / 60),
    requestCputime: cputime,
    requestCputimeMinute: Math.ceil(cputime / 60),
    requestGpus: config.requestGpus,
    requireGpus: config.requestGpus > 0,
  };
}

function coreFactorOf(
  { jobType, resourceType }: Worker['requirements'],
  { nCoreFactor, unifiedQueue }: HTCondorSubmitterConfig,
): number {
  if (typeof nCoreFactor === 'number') return nCoreFactor;
  const byType = nCoreFactor[jobType] ?? nCoreFactor.Any ?? {};
  return byType[unifiedQueue ? resourceType : 'Undefined'] ?? 1;
}

function credentialsOf(config: HTCondorSubmitterConfig, ce: ChosenCe | undefined) {
  const analysis = config.useAnalysisCredentials;
  const proxy = (analysis ? config.x509UserProxyAnalysis : undefined) ?? config.x509UserProxy;
  const token = ceTokenOf(config, ce);
  const { pandaTokenFilename, pandaTokenKeyPath } = config;
  return {
    x509UserProxy: proxy ?? null,
    tokenDir: token.directory ?? null,
    tokenFilename: token.name ?? null,
    tokenPath: token.path ?? null,
    pandaTokenFilename: pandaTokenFilename ?? null,
    pandaTokenPath: pandaTokenOf(config) ?? null,
    pandaTokenKeyPath: pandaTokenKeyPath ?? null,
    pandaTokenKeyFilename: pandaTokenKeyPath === undefined ? null : basename(pandaTokenKeyPath),
  };
}

/** The token for a computing element; undefined where the queue has none. Paths of the options are absolute. */
export function ceTokenOf(
  {
    useAnalysisCredentials,
    tokenDir,
    tokenDirAnalysis,
  }: Pick<HTCondorSubmitterConfig, 'useAnalysisCredentials' | 'tokenDir' | 'tokenDirAnalysis'>,
  ce: Pick<ChosenCe, 'endpoint'> | undefined,
): { readonly directory?: string; readonly name?: string; readonly path?: string } {
  const directory = (useAnalysisCredentials ? tokenDirAnalysis : undefined) ?? tokenDir;
  if (directory === undefined) return {};
  if (!ce?.endpoint) return { directory };
  const name = tokenFileOf(ce.endpoint);
  return { directory, name, path: join(directory, name) };
}

/** The pilot's token for the PanDA server; undefined where the queue names none. */
export function pandaTokenOf({
  pandaTokenDir,
  pandaTokenFilename,
}: Pick<HTCondorSubmitterConfig, 'pandaTokenDir' | 'pandaTokenFilename'>): string | undefined {
  return pandaTokenDir === undefined || pandaTokenFilename === undefined
    ? undefined
    : join(pandaTokenDir, pandaTokenFilename);
}

/** Which options a placeholder's value comes from, for those that may have none. Harvester writes "None" then. */
const optionsBehind: Readonly<Record<string, readonly (keyof HTCondorSubmitterConfig)[]>> = {
  executableFile: ['executableFile'],
  x509UserProxy: ['x509UserProxy'],
  tokenDir: ['tokenDir'],
  tokenFilename: ['tokenDir'],
  tokenPath: ['tokenDir'],
  pandaTokenFilename: ['pandaTokenFilename'],
  pandaTokenPath: ['pandaTokenDir', 'pandaTokenFilename'],
  pandaTokenKeyFilename: ['pandaTokenKeyPath'],
  pandaTokenKeyPath: ['pandaTokenKeyPath'],
};

/** The options that a queue lacks, so that this placeholder has no value; none where it has one. */
export function optionsLackedBy(name: string, config: Partial<HTCondorSubmitterConfig>): readonly string[] {
  const options = Object.hasOwn(optionsBehind, name) ? (optionsBehind[name] ?? []) : [];
  const { useAnalysisCredentials, x509UserProxyAnalysis, tokenDirAnalysis } = config;
  const analysis: Partial<HTCondorSubmitterConfig> = useAnalysisCredentials
    ? {
        ...(x509UserProxyAnalysis !== undefined && { x509UserProxy: x509UserProxyAnalysis }),
        ...(tokenDirAnalysis !== undefined && { tokenDir: tokenDirAnalysis }),
      }
    : {};
  return options.filter((option) => (analysis[option] ?? config[option]) === undefined);
}
