/**
 * A third-party backend for tests, loaded by its path as any other: it keeps its workers in a JSON file, so that they
 * outlive the daemon, and misbehaves as its `faults` file says. Faults stand in front of it; the rest is a real backend.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { defineBackend } from '../../../src/plugins/contracts/index.ts';
import type {
  CheckResult,
  BackendConnection,
  ConnectionHost,
  FindOutcome,
  Found,
  GoneOutcome,
  Monitor,
  Observation,
  ObservationSink,
  Submitter,
  SubmitOutcome,
  Sweeper,
  Worker,
} from '../../../src/plugins/contracts/index.ts';

export interface ScriptedWorker {
  readonly worker: Worker;
  status: 'submitted' | 'running' | 'finished' | 'failed' | 'cancelled';
  /** An attempt up to this one may not start any more. */
  fenced: number;
  /** How often it was started. */
  starts: number;
}

/** What goes wrong, by verb. */
export type Faults = Partial<
  Record<
    'preflight' | 'submit' | 'find' | 'observe' | 'check' | 'kill' | 'remove' | 'list',
    | 'hang'
    | 'hang-many'
    | 'hold'
    | 'throw'
    | 'lose-answer'
    | 'reject'
    | 'refuse'
    | 'refuse-most'
    | 'trouble'
    | 'partial'
  >
>;

const Config = Type.Object({
  directory: Type.String(),
  /** Of a second backend, which gets every other worker. */
  other: Type.Optional(Type.String()),
});
type Config = Static<typeof Config>;

/** One backend: everything in files below one directory. */
export class ScriptedBackend {
  readonly directory: string;
  /** Of the daemon that asks: what a dead one asks for is never heard. */
  readonly #generation: number;

  constructor(directory: string) {
    this.directory = directory;
    this.#generation = this.generation;
  }

  get generation(): number {
    return (this.#read('generation.json') ?? 0) as number;
  }

  /** As SIGKILL does: no call of a daemon that runs now comes back, or does anything. */
  forgetCallers(): void {
    this.#write('generation.json', this.generation + 1);
  }

  get faults(): Faults {
    return this.#read('faults.json') ?? {};
  }

  set faults(faults: Faults) {
    this.#write('faults.json', faults);
  }

  get workers(): Map<number, ScriptedWorker> {
    return new Map((this.#read('workers.json') ?? []) as [number, ScriptedWorker][]);
  }

  set workers(workers: Map<number, ScriptedWorker>) {
    this.#write('workers.json', [...workers]);
  }

  /** How often each verb was called. */
  get calls(): Record<string, number> {
    return (this.#read('calls.json') ?? {}) as Record<string, number>;
  }

  change(workerId: number, change: Partial<ScriptedWorker>): void {
    const { workers } = this;
    const worker = workers.get(workerId);
    if (worker !== undefined) workers.set(workerId, { ...worker, ...change });
    this.workers = workers;
  }

  forget(workerId: number): void {
    const { workers } = this;
    workers.delete(workerId);
    this.workers = workers;
  }

  /** Counts the call, then hangs or throws where it is told to. A hang ignores every signal. */
  async meet(verb: keyof Faults): Promise<Faults[keyof Faults]> {
    if (this.generation !== this.#generation) await new Promise(() => undefined);
    const { calls } = this;
    this.#write('calls.json', { ...calls, [verb]: (calls[verb] ?? 0) + 1 });
    const fault = this.faults[verb];
    if (fault === 'throw') throw new Error(`${verb} was told to fail`);
    if (fault === 'hang') await new Promise(() => undefined);
    // Until somebody takes the fault away.
    while (this.faults[verb] === 'hold') await sleep(10);
    return fault;
  }

  #read(name: string): unknown {
    const path = join(this.directory, name);
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as unknown) : undefined;
  }

  #write(name: string, value: unknown): void {
    writeFileSync(join(this.directory, name), JSON.stringify(value));
  }
}

const alive = (worker: ScriptedWorker) => worker.status === 'submitted' || worker.status === 'running';

class Scripted implements Submitter, Monitor, Sweeper {
  readonly #backend: ScriptedBackend;
  readonly #daemon: ConnectionHost;

  constructor(directory: string, daemon: ConnectionHost) {
    this.#backend = new ScriptedBackend(directory);
    this.#daemon = daemon;
  }

  async preflight() {
    const fault = await this.#backend.meet('preflight');
    return { problems: fault === 'refuse' ? [{ code: 'preflight', message: 'told to refuse' }] : [] };
  }

  async submit(workers: readonly Worker[]) {
    const fault = await this.#backend.meet('submit');
    const outcomes = new Map<number, SubmitOutcome>();
    const state = this.#backend.workers;
    for (const worker of workers) {
      const { workerId, attempt } = worker;
      const known = state.get(workerId);
      // All but the first of each call.
      const refused = fault === 'refuse' || (fault === 'refuse-most' && worker !== workers[0]);
      if (fault === 'reject' || refused) {
        const error = { code: 'submit-failed', message: 'told to reject' };
        outcomes.set(workerId, { kind: 'rejected', permanent: refused, error });
        continue;
      }
      if ((known?.fenced ?? 0) < attempt) {
        state.set(workerId, { worker, status: 'submitted', fenced: 0, starts: (known?.starts ?? 0) + 1 });
      }
      // A partial answer leaves out every second worker.
      if (fault === 'partial' && workerId % 2 === 0) continue;
      outcomes.set(workerId, { kind: 'accepted', handle: { batchID: `s${workerId}` } });
    }
    this.#backend.workers = state;
    if (fault === 'lose-answer') throw new Error('the connection broke before the answer came');
    return outcomes;
  }

  async find(workers: readonly Worker[]) {
    const fault = await this.#backend.meet('find');
    if (fault === 'hang-many' && workers.length > 300) await new Promise(() => undefined);
    const state = this.#backend.workers;
    const outcomes = new Map<number, FindOutcome>();
    for (const worker of workers) {
      const { workerId, attempt } = worker;
      const known = state.get(workerId);
      if (known !== undefined && known.starts > 0) {
        outcomes.set(workerId, { kind: 'found', handle: { batchID: `s${workerId}` } });
      } else {
        state.set(workerId, { worker, status: 'cancelled', starts: 0, ...known, fenced: attempt });
        outcomes.set(workerId, { kind: 'absent' });
      }
    }
    this.#backend.workers = state;
    return outcomes;
  }

  async observe(sink: ObservationSink, signal: AbortSignal) {
    while (!signal.aborted) {
      const fault = await this.#backend.meet('observe');
      if (fault === 'trouble') sink.trouble({ code: 'status-unknown', message: 'told to be in trouble' });
      else {
        sink.begin();
        // A partial listing shows nothing and says so.
        for (const one of fault === 'partial' ? [] : this.#mine()) sink.observe(this.#observation(one));
        if (fault === 'partial')
          sink.trouble({ code: 'status-unknown', message: 'the listing was cut short' });
        else sink.complete();
      }
      await this.#daemon.clock.sleep(50, signal);
    }
  }

  async check(workers: readonly Worker[]) {
    await this.#backend.meet('check');
    const state = this.#backend.workers;
    return new Map(
      workers.map(({ workerId }): [number, CheckResult] => {
        const one = state.get(workerId);
        if (one === undefined || one.starts === 0) return [workerId, { kind: 'absent' }];
        return [workerId, { kind: 'observed', observation: this.#observation(one) }];
      }),
    );
  }

  async kill(workers: readonly Worker[]) {
    await this.#backend.meet('kill');
    const state = this.#backend.workers;
    for (const { workerId } of workers) {
      const one = state.get(workerId);
      if (one !== undefined && alive(one)) one.status = 'cancelled';
    }
    this.#backend.workers = state;
    return new Map(workers.map(({ workerId }): [number, GoneOutcome] => [workerId, { kind: 'gone' }]));
  }

  async remove(workers: readonly Worker[]) {
    await this.#backend.meet('remove');
    const state = this.#backend.workers;
    for (const { workerId } of workers) state.delete(workerId);
    this.#backend.workers = state;
    return new Map(workers.map(({ workerId }): [number, GoneOutcome] => [workerId, { kind: 'gone' }]));
  }

  async list(): Promise<Found[]> {
    await this.#backend.meet('list');
    return this.#mine().map((one) => ({
      place: `${this.#backend.directory}#${one.worker.workerId}`,
      handle: { batchID: `s${one.worker.workerId}` },
      identity: one.worker,
      observation: this.#observation(one),
    }));
  }

  async removeOrphan(found: Found): Promise<GoneOutcome> {
    if (found.identity !== undefined) this.#backend.forget(found.identity.workerId);
    return { kind: 'gone' };
  }

  #mine(): ScriptedWorker[] {
    return [...this.#backend.workers.values()].filter(
      ({ worker, starts }) => starts > 0 && worker.name.startsWith(`${this.#daemon.factoryId}-`),
    );
  }

  #observation({ worker, status }: ScriptedWorker): Observation {
    const now = this.#daemon.clock.now();
    const common = {
      workerId: worker.workerId,
      status,
      nativeStatus: status,
      node: 'scripted',
      observedAt: now,
    };
    if (status === 'submitted' || status === 'running') return common;
    return { ...common, endTime: now, exitCode: status === 'finished' ? 0 : 1 };
  }
}

class ScriptedConnection implements BackendConnection<Config, ScriptedConnection> {
  readonly monitor: Scripted;
  readonly sweeper: Scripted;

  constructor(scripted: Scripted) {
    this.monitor = scripted;
    this.sweeper = scripted;
  }

  submitter(_config: Config, _context: unknown, at: (name: string) => ScriptedConnection): Submitter {
    return new ScriptedSubmitter(this.monitor, (placement) => at(placement).monitor);
  }
}

/** A submitter for the backends of several placements. */
class ScriptedSubmitter implements Submitter {
  readonly #first: Scripted;
  readonly #at: (placement: string) => Scripted;

  constructor(first: Scripted, at: (placement: string) => Scripted) {
    this.#first = first;
    this.#at = at;
  }

  preflight() {
    return this.#first.preflight();
  }

  submit(workers: readonly Worker[]) {
    return this.#each(workers, (backend, some) => backend.submit(some));
  }

  find(workers: readonly Worker[]) {
    return this.#each(workers, (backend, some) => backend.find(some));
  }

  async #each<T>(
    workers: readonly Worker[],
    ask: (backend: Scripted, some: readonly Worker[]) => Promise<ReadonlyMap<number, T>>,
  ): Promise<ReadonlyMap<number, T>> {
    const answers = await Promise.all(
      [...Map.groupBy(workers, ({ placement }) => placement)].map(([placement, some]) =>
        ask(this.#at(placement), some),
      ),
    );
    return new Map(answers.flatMap((answer) => [...answer]));
  }
}

const prefix = 'scripted:';
const section = {
  config: Config,
  connections: ({ directory, other }: Config) =>
    [directory, ...(other === undefined ? [] : [other])].map((one) => `${prefix}${one}`),
};

export const plugins = defineBackend({
  name: 'Scripted',
  module: 'scripted',
  submitter: section,
  monitor: section,
  sweeper: section,
  connect: ({ name, configDir }, daemon) =>
    new ScriptedConnection(new Scripted(resolve(configDir, name.slice(prefix.length)), daemon)),
});

/** The sections of a queue on this backend. */
export function scriptedSections(directory: string): Record<string, Record<string, unknown>> {
  const module = import.meta.filename;
  return {
    common: { directory },
    submitter: { name: 'ScriptedSubmitter', module },
    monitor: { name: 'ScriptedMonitor', module },
    sweeper: { name: 'ScriptedSweeper', module },
  };
}
