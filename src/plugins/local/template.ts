import { resolve } from 'node:path';
import { readYamlFile } from '../../util/located-file.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { whatIsMeant } from '../../util/nearest.ts';
import { fillPlaceholders, type PlaceholderValues } from '../../util/placeholders.ts';
import { check } from '../../util/schema.ts';
import type { WorkerToStart } from '../../worker/worker.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import {
  identityPlaceholders,
  payloadKeysIn,
  payloadPlaceholders,
  requirementPlaceholders,
  unknownInTemplate,
  workerPlaceholders,
} from '../contracts/placeholders.ts';
import { hostnameFor } from '../../util/hostname.ts';
import { LocalTemplate } from './schema.ts';

/** Stands in for Harvester's Dummy plugins: a pilot that does nothing for a moment and takes no slot. */
export const builtInTemplate: LocalTemplate = {
  command: '/bin/sh',
  args: ['-c', 'echo "pilot $HARVESTER_WORKER_ID of $HARVESTER_ID at $computingSite"; sleep 3'],
  env: {},
  cpu: 0,
};

export type LoadedTemplate =
  | { readonly ok: true; readonly template: LocalTemplate }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** Reads and checks a template file; every mistake is found here, before a worker is made of it. */
export async function loadTemplate(files: OperatorFiles, file: string): Promise<LoadedTemplate> {
  const located = await readYamlFile(files, file, 'template');
  if (located.value === undefined) {
    const problems = located.problems.map((problem) => ({
      pointer: problem.pointer,
      file,
      line: problem.line,
      message: problem.message,
      code: problem.code === 'file-unreadable' ? problem.code : ('syntax' as const),
    }));
    return { ok: false, problems };
  }
  const place = (pointer: string) => ({ pointer, file, line: located.lineOf(pointer) });
  const checked = check(LocalTemplate, located.value);
  if (!checked.ok) {
    const problems = checked.problems.map(({ pointer, message }) => ({
      ...place(pointer),
      code: 'template-wrong' as const,
      message: `in a local template ${message}`,
    }));
    return { ok: false, problems };
  }
  const template = checked.value;
  // In command and args an unknown `${name}` is the shell's and stays.
  const strict: [string, string][] = Object.entries(template.env).map(([key, value]) => [
    `/env/${key}`,
    String(value),
  ]);
  if (template.cwd !== undefined) strict.push(['/cwd', template.cwd]);
  const problems = strict.flatMap(([pointer, text]) =>
    unknownInTemplate(text, knownPlaceholders).map((name) => ({
      ...place(pointer),
      code: 'unknown-placeholder' as const,
      message: `"\${${name}}" is not a placeholder; ${whatIsMeant(name, [...knownPlaceholders])}`,
    })),
  );
  return problems.length > 0 ? { ok: false, problems } : { ok: true, template };
}

/** One worker's command, ready to run. */
export interface FilledTemplate {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface FillContext {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly hostname: string;
  /** The directory of the worker. */
  readonly directory: string;
  /** The directory of the files of its payload, where it has files or arguments. */
  readonly payloadDirectory?: string | undefined;
}

/** The keys of payload values that a template needs of each worker. */
export function payloadKeysOf({ command, args, env, cwd }: LocalTemplate): ReadonlySet<string> {
  return payloadKeysIn([command, ...args, ...Object.values(env), cwd ?? ''].map(String));
}

export function fillTemplate(
  template: LocalTemplate,
  worker: WorkerToStart,
  context: FillContext,
): FilledTemplate {
  const values = placeholderValues(worker, context);
  const fill = (text: string | number | boolean) => fillPlaceholders(String(text), values);
  const own = Object.fromEntries(Object.entries(template.env).map(([key, value]) => [key, fill(value)]));
  const [program, ...words] = worker.payload?.argv ?? [];
  const env = { ...pilotEnvironment(worker, context), ...own, ...worker.payload?.env };
  return {
    command: program ?? fill(template.command),
    args: program === undefined ? template.args.map(fill) : words,
    cwd:
      program === undefined
        ? resolve(context.directory, template.cwd === undefined ? '.' : fill(template.cwd))
        : (context.payloadDirectory ?? context.directory),
    // The mark comes last: no template and no payload may forge it.
    env: { ...env, ...placeOfPayload(context), ...mark(context.directory) },
  };
}

/** By which a process of a worker is recognised, whatever became of its parents. */
export function markOf(directory: string): string {
  return `THRESHER_WORKER_DIR=${directory}`;
}

function placeOfPayload({ payloadDirectory }: FillContext): Record<string, string> {
  return payloadDirectory === undefined ? {} : { THRESHER_PAYLOAD_DIR: payloadDirectory };
}

function mark(directory: string): Record<string, string> {
  return { THRESHER_WORKER_DIR: directory };
}

/** The environment Harvester gives its pilots. Source: harvester's k8s_submitter and submit_pilot templates. */
function pilotEnvironment(worker: WorkerToStart, context: FillContext): Record<string, string> {
  const id = String(worker.workerId);
  const { requirements } = worker;
  // Harvester's unified dispatch: managed and user pilots are one kind.
  const unified = ['managed', 'user'].includes(requirements.prodSourceLabel);
  return {
    HARVESTER_ID: context.harvesterId,
    HARVESTER_WORKER_ID: id,
    PANDA_JSID: `harvester-${context.harvesterId}`,
    PANDA_HOSTNAME: context.hostname,
    THRESHER_FACTORY: context.factoryId,
    computingSite: worker.computingSite,
    pandaQueueName: worker.queue,
    resourceType: requirements.resourceType,
    jobType: unified ? 'unified' : requirements.jobType,
    pilotType: requirements.pilotType,
    prodSourceLabel: unified ? 'unified' : requirements.prodSourceLabel,
    workerID: id,
    submit_mode: 'PULL',
    // The PanDA pilot ends its user's orphans after a payload: where a worker has no PID namespace, these are also the
    // daemon and other workers.
    PILOT_NOKILL: '1',
    nCore: String(requirements.nCore),
    minRamCount: String(requirements.minRamCount),
    maxWalltime: String(requirements.maxWalltime),
    ...(worker.accessPoint === undefined ? {} : { accessPoint: worker.accessPoint }),
  };
}

function placeholderValues(worker: WorkerToStart, context: FillContext): PlaceholderValues {
  const { directory } = context;
  return {
    ...workerPlaceholders(worker, { ...context, hostname: hostnameFor({}, context.hostname) }),
    accessPoint: worker.accessPoint ?? directory,
    workerDir: directory,
    ...payloadPlaceholders(worker.payload),
  };
}

/** The names that `env` and `cwd` of a template may use. */
export const knownPlaceholders: ReadonlySet<string> = new Set([
  ...identityPlaceholders,
  'workerDir',
  ...requirementPlaceholders,
]);
