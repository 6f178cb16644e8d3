import { spawn, type ChildProcess } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';
import { resolve, delimiter, join } from 'node:path';
import pMap from 'p-map';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Payload } from '../../worker/payload.ts';
import { type Worker, type WorkerToStart, withoutPayload } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { payloadNotes, payloadRefusal } from '../contracts/payload-refusal.ts';
import type { Rendered } from '../contracts/rendered.ts';
import type { FindOutcome, Preflight, SubmitOutcome, Submitter } from '../contracts/submitter.ts';
import { fence } from './fence.ts';
import { type LocalHost, toHandle } from './host.ts';
import { inherited, launchOf } from './launch.ts';
import { type Decision, decide, entering, toProblems, type Way } from './pid-namespace.ts';
import type { LocalSubmitterConfig, LocalTemplate } from './schema.ts';
import {
  builtInTemplate,
  fillTemplate,
  type FilledTemplate,
  loadTemplate,
  payloadKeysOf,
} from './template.ts';
import type { Marked, ShimClaim } from './worker-files.ts';
import { constants } from 'node:fs';
import type { OperatorFiles } from '../../util/operator-files.ts';

/** Workers started side by side. */
const startsAtOnce = 8;
/** How long a started shim may take to its claim, ms: more than the slowest machine needs under load. */
const claimWait = 10_000;

interface ToStart {
  readonly template: LocalTemplate;
  /** Into a PID namespace; undefined: without one. */
  readonly way: Way | undefined;
}

/** Starts workers as detached process groups under a shim. */
export class LocalSubmitter implements Submitter {
  readonly #host: LocalHost;
  readonly #config: LocalSubmitterConfig;
  readonly #context: Context;

  /** Found by a preflight for the submission behind it, which takes its slots without a pause: others count on the same ones. */
  #toStart: ToStart | undefined;

  constructor(host: LocalHost, config: LocalSubmitterConfig, context: Context) {
    this.#host = host;
    this.#config = config;
    this.#context = context;
  }

  async preflight(): Promise<Preflight> {
    const problems: Reason[] = [];
    try {
      await this.#host.prepared();
      await this.#host.directory.requireWritable();
    } catch (error) {
      if (error instanceof ThresherError) return { problems: [toReason(error)] };
      const message = `the work directory ${this.#host.directory.root} cannot be used: ${messageOf(error)}`;
      problems.push({ code: 'preflight', message });
    }
    const { way, note, problem } = await this.#namespace();
    if (problem !== undefined) problems.push(problem);
    const notes = note === undefined ? [] : [note];
    // Read anew each time: an operator's edit counts at once, and a broken one stops the queue with its reason.
    const template = await this.#template();
    if (Array.isArray(template)) return { problems: [...problems, ...template], notes };
    problems.push(...(await this.#commandProblems(template)));
    this.#toStart = problems.length === 0 ? { template, way } : undefined;
    return { problems, room: this.#room(template), notes };
  }

  async submit(
    workers: readonly WorkerToStart[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const found = this.#toStart ?? (await this.#findToStart());
    this.#toStart = undefined;
    const outcomes = new Map<number, SubmitOutcome>();
    if (!('template' in found)) {
      const message = found.map((one) => one.message).join('; ');
      for (const { workerId } of workers) outcomes.set(workerId, rejected('preflight', message));
      return outcomes;
    }
    const { template, way } = found;
    const prepared = this.#host.prepared();
    prepared.catch(() => undefined);
    await pMap(
      workers,
      async (worker) => {
        outcomes.set(worker.workerId, await this.#start(worker, template, { prepared, way }, signal));
      },
      { concurrency: startsAtOnce },
    );
    return outcomes;
  }

  /** A retry right after a restart comes without a preflight. @returns what is to be started, or why nothing can be */
  async #findToStart(): Promise<ToStart | readonly Reason[]> {
    const template = await this.#template();
    const ready = await this.#host.prepared().then(
      () => true,
      () => false,
    );
    const { way, problem } = ready ? await this.#namespace() : {};
    if (!Array.isArray(template) && problem === undefined) return { template, way };
    return [...(Array.isArray(template) ? template : []), ...(problem ? [problem] : [])];
  }

  async find(workers: readonly Worker[]): Promise<ReadonlyMap<number, FindOutcome>> {
    const outcomes = new Map<number, FindOutcome>();
    for (const [workerId, fenced] of await fence(this.#host, workers)) {
      if (fenced.kind === 'failed') {
        outcomes.set(workerId, { kind: 'unknown', error: toReason(fenced.error) });
      } else if (fenced.claim === undefined) {
        this.#host.live.delete(workerId);
        outcomes.set(workerId, { kind: 'absent' });
      } else outcomes.set(workerId, { kind: 'found', handle: toHandle(fenced.claim) });
    }
    return outcomes;
  }

  /** Nothing is kept of what this tries. */
  async rehearse(): Promise<readonly DefinitionProblem[]> {
    return toProblems(await this.#namespace());
  }

  async #namespace(): Promise<Decision> {
    const { pidNamespace } = this.#config;
    if (pidNamespace === 'none') return {};
    try {
      return decide(pidNamespace, await this.#host.namespaces.availability());
    } catch (error) {
      return { problem: toReason(error) };
    }
  }

  async render(worker: WorkerToStart): Promise<Rendered> {
    const template = await this.#template();
    if (Array.isArray(template))
      throw new ThresherError('preflight', template.map((problem) => problem.message).join('; '));
    const payload = payloadNotes(worker, payloadKeysOf(template));
    const { command, args, cwd, env } = this.#filled(template, worker);
    const { templateFile } = this.#config;
    const path = templateFile === undefined ? undefined : resolve(this.#context.configDir, templateFile);
    return {
      format: 'yaml',
      document: { command, args, cwd, env },
      environment: env,
      files: path === undefined ? [] : [{ role: 'template', path }],
      notes: [
        `of the daemon's own environment it inherits ${inherited.join(', ')}, where they are set`,
        ...payload,
      ],
    };
  }

  async #start(
    worker: WorkerToStart,
    template: LocalTemplate,
    { prepared, way }: { readonly prepared: Promise<void>; readonly way: Way | undefined },
    signal: AbortSignal,
  ): Promise<SubmitOutcome> {
    if (signal.aborted) return rejected('shutting-down', 'the daemon stops');
    const error = payloadRefusal(worker, payloadKeysOf(template), new Set());
    if (error !== undefined) return { kind: 'rejected', permanent: true, error };
    const cpu = template.cpu ?? worker.requirements.nCore;
    const memory = template.memory ?? worker.requirements.minRamCount;
    const { maxSlots, maxMemory } = this.#bounds;
    if (cpu > maxSlots || memory > maxMemory) {
      const message = `the worker needs ${cpu} cores and ${memory} MB; maxSlots is ${maxSlots}, and maxMemory ${maxMemory} MB`;
      return { kind: 'rejected', permanent: true, error: { code: 'needs-too-large', message } };
    }
    // Between preflight and now another queue may have taken the last slot. Nothing is awaited between look and take.
    const room = this.#room(template, worker.requirements);
    if (room.workers < 1) return rejected('no-free-slot', room.reason.message);
    const marked = { factory: this.#context.factoryId, worker: withoutPayload(worker), cpu, memory };
    this.#host.keep(marked);
    try {
      const { directory } = this.#host;
      await prepared;
      await directory.prepare(marked);
      const { workerId, attempt, payload } = worker;
      if (needsDirectory(payload)) await directory.writePayload(workerId, attempt, payload?.files ?? []);
      return await this.#launch(marked, this.#filled(template, worker), way, signal);
    } catch (error) {
      // Nothing was started: behind `spawn` nothing throws.
      const code = error instanceof ThresherError ? error.code : 'spawn-failed';
      return this.#refused(worker, code, messageOf(error));
    }
  }

  #filled(template: LocalTemplate, worker: WorkerToStart): FilledTemplate {
    const { factoryId, harvesterId } = this.#context;
    const { hostname, directory } = this.#host;
    const { workerId, attempt, payload } = worker;
    const payloadDirectory = needsDirectory(payload) ? directory.payloadPath(workerId, attempt) : undefined;
    const facts = { factoryId, harvesterId, hostname, directory: directory.path(workerId), payloadDirectory };
    return fillTemplate(template, worker, facts);
  }

  async #launch(
    marked: Marked,
    filled: FilledTemplate,
    way: Way | undefined,
    signal: AbortSignal,
  ): Promise<SubmitOutcome> {
    const { worker } = marked;
    const { directory } = this.#host;
    const own = directory.path(worker.workerId);
    const launch = launchOf(filled, marked);
    // Given up meanwhile: the caller may have concluded that the worker never starts.
    if (signal.aborted) return this.#refused(worker, 'shutting-down', 'the submission was given up');
    const child = spawn(
      '/bin/sh',
      [
        ...[directory.shim, own, String(worker.attempt), filled.cwd],
        ...(way === undefined ? [] : entering(way, directory.namespaceScript, own)),
        ...launch.words,
      ],
      // Detached: a session and process group of its own, which outlives the daemon and can be signalled as a whole.
      // In the root directory: on a disk that hangs, a change of the directory would hold the daemon until the child has it.
      { detached: true, stdio: 'ignore', cwd: '/', env: launch.env },
    );
    child.unref();
    const ended = endOf(child);
    const { clock } = this.#context;
    const deadline = clock.monotonic() + claimWait;
    let pause = 2;
    for (;;) {
      const over = ended.value;
      try {
        const claim = await directory.claimOf(worker.workerId, worker.attempt);
        if (claim?.by === 'shim') return await this.#accepted(marked, claim);
      } catch (error) {
        // It may run by now, or does: a look at the processes fails, too, where the daemon has no more file descriptors.
        return { kind: 'unknown', error: toReason(error) };
      }
      if (over !== undefined) {
        return this.#refused(worker, 'spawn-failed', `the worker's shim ended at once: ${over}`);
      }
      if (clock.monotonic() > deadline) {
        const message = `the worker's shim did not start within ${claimWait / 1000} s`;
        return { kind: 'unknown', error: { code: 'spawn-failed', message } };
      }
      await clock.sleep(pause);
      pause = Math.min(pause * 2, 100);
    }
  }

  /** Accepted, and followed by its process from now on, whatever becomes of its directory. */
  async #accepted(marked: Marked, claim: ShimClaim): Promise<SubmitOutcome> {
    const process =
      claim.pid === 0 ? ((await this.#host.survivor(marked.worker.workerId, undefined)) ?? claim) : claim;
    this.#host.keep(marked, process);
    return { kind: 'accepted', handle: toHandle(process) };
  }

  /** Rejected, and its share of the machine given back. */
  #refused(worker: Worker, code: string, message: string): SubmitOutcome {
    this.#host.live.delete(worker.workerId);
    return rejected(code, message);
  }

  async #commandProblems({ command }: LocalTemplate): Promise<Reason[]> {
    try {
      if (await commandExists(this.#context.files, command, process.env.PATH ?? '')) return [];
      return [{ code: 'preflight', message: `the template's command "${command}" was not found` }];
    } catch (error) {
      return [toReason(error)];
    }
  }

  async #template(): Promise<LocalTemplate | Reason[]> {
    const { templateFile } = this.#config;
    if (templateFile === undefined) return builtInTemplate;
    const { files, configDir } = this.#context;
    const loaded = await loadTemplate(files, resolve(configDir, templateFile));
    if (loaded.ok) return loaded.template;
    return loaded.problems.map((problem) => ({
      code: 'preflight',
      message: `${problem.file ?? ''}:${problem.line ?? 0}: ${problem.message}`,
    }));
  }

  get #bounds(): { readonly maxSlots: number; readonly maxMemory: number } {
    const { maxSlots = availableParallelism(), maxMemory = Math.floor(totalmem() / 2 ** 20) } = this.#config;
    return { maxSlots, maxMemory };
  }

  #room(template: LocalTemplate, requirements = this.#context.requirements): NonNullable<Preflight['room']> {
    const { maxSlots, maxMemory } = this.#bounds;
    const taken = this.#host.taken();
    const cpu = template.cpu ?? requirements.nCore;
    const memory = template.memory ?? requirements.minRamCount;
    const byCpu = cpu === 0 ? Infinity : Math.floor(rounded((maxSlots - taken.cpu) / cpu));
    const byMemory = memory === 0 ? Infinity : Math.floor((maxMemory - taken.memory) / memory);
    const message =
      byCpu <= byMemory
        ? `${rounded(taken.cpu)} of maxSlots ${maxSlots} cores are taken, a worker needs ${cpu}`
        : `${taken.memory} of maxMemory ${maxMemory} MB are taken, a worker needs ${memory}`;
    return { workers: Math.max(0, Math.min(byCpu, byMemory)), reason: { code: 'backend-room', message } };
  }
}

/** Both need a directory: files to lie in, and arguments to start in. */
function needsDirectory(payload: Payload | undefined): boolean {
  return (payload?.files?.length ?? 0) > 0 || (payload?.argv?.length ?? 0) > 0;
}

/** Sums of tenths are not exact: 0.1 + 0.2 must still fit into 0.3. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function rejected(code: string, message: string): SubmitOutcome {
  return { kind: 'rejected', permanent: false, error: { code, message } };
}

/** Whether the command would be found; placeholders in it are only known later. @throws ThresherError `file-timeout` */
export async function commandExists(files: OperatorFiles, command: string, path: string): Promise<boolean> {
  if (command.includes('${')) return true;
  const candidates = command.includes('/')
    ? [command]
    : path.split(delimiter).map((part) => join(part, command));
  for (const candidate of candidates) {
    if ((await files.stat(candidate))?.isFile() !== true) continue;
    const refusal = await files.access(candidate, constants.X_OK).catch((error: unknown) => error);
    if (refusal === undefined) return true;
    if (refusal instanceof ThresherError) throw refusal;
  }
  return false;
}

/** How a child ended, once it has; a child that could not be started has ended too. */
function endOf(child: ChildProcess): { readonly value: string | undefined } {
  const end: { value: string | undefined } = { value: undefined };
  child.once('error', (error) => (end.value = error.message));
  child.once('exit', (code, signal) => (end.value ??= signal ?? `exit status ${code ?? '?'}`));
  return end;
}
