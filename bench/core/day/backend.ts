/** The simulated backend as a daemon sees it: a third party's plugin, loaded by its path, that asks the simulator. */
import Type from 'typebox';
import { defineBackend } from '../../../src/plugins/contracts/index.ts';
import type {
  BackendConnection,
  CheckResult,
  ConnectionHost,
  Context,
  FindOutcome,
  Found,
  GoneOutcome,
  Monitor,
  Observation,
  ObservationSink,
  Preflight,
  Submitter,
  SubmitOutcome,
  Sweeper,
  Worker,
} from '../../../src/plugins/contracts/index.ts';
import { SimulatorClient } from './client.ts';
import type { Marked, Named, Seen } from './protocol.ts';

const clients = new Map<string, SimulatorClient>();

/** One for all connections of this daemon. */
function clientOf(socket: string): SimulatorClient {
  const client = clients.get(socket) ?? new SimulatorClient(socket);
  clients.set(socket, client);
  return client;
}

const handleOf = (workerId: number) => ({ batchID: `day-${workerId}` });

const named = (workers: readonly Worker[]): Named[] =>
  workers.map(({ workerId, name, attempt }) => ({ workerId, name, attempt }));

function markedOf(worker: Worker): Marked {
  const { workerId, name, queue, computingSite, origin, requirements, attempt } = worker;
  return { workerId, name, queue, computingSite, origin, requirements, attempt };
}

function observationOf([workerId, state, startTime, endTime]: Seen): Observation {
  return {
    workerId,
    status: state,
    nativeStatus: state,
    observedAt: Date.now(),
    ...(startTime !== undefined && { startTime, node: `node-${workerId % 500}.example.org` }),
    ...(endTime !== undefined && { endTime, exitCode: state === 'finished' ? 0 : 1 }),
    ...(state === 'failed' && { error: { code: 'exit-code', message: 'it ended with 1' } }),
  };
}

class SimulatedSubmitter implements Submitter {
  readonly #context: Context;
  readonly #simulator: SimulatorClient;

  constructor(context: Context, simulator: SimulatorClient) {
    this.#context = context;
    this.#simulator = simulator;
  }

  async preflight(): Promise<Preflight> {
    const workers = await this.#simulator.ask('room', { queue: this.#context.queue });
    return {
      problems: [],
      room: { workers, reason: { code: 'backend-full', message: 'no more are wanted' } },
    };
  }

  async submit(workers: readonly Worker[]) {
    const there = new Set(await this.#simulator.ask('submit', { workers: workers.map(markedOf) }));
    return new Map(
      workers.map(({ workerId }): [number, SubmitOutcome] => [
        workerId,
        there.has(workerId) ? { kind: 'accepted', handle: handleOf(workerId) } : fenced,
      ]),
    );
  }

  async find(workers: readonly Worker[]) {
    const there = new Set(await this.#simulator.ask('find', { workers: named(workers) }));
    return new Map(
      workers.map(({ workerId }): [number, FindOutcome] => [
        workerId,
        there.has(workerId) ? { kind: 'found', handle: handleOf(workerId) } : { kind: 'absent' },
      ]),
    );
  }
}

const fenced: SubmitOutcome = {
  kind: 'rejected',
  permanent: false,
  error: { code: 'submit-failed', message: 'a later attempt has begun' },
};

class SimulatedConnection implements BackendConnection, Monitor, Sweeper {
  readonly monitor = this;
  readonly sweeper = this;
  readonly #host: ConnectionHost;
  readonly #simulator: SimulatorClient;

  constructor(socket: string, host: ConnectionHost) {
    this.#host = host;
    this.#simulator = clientOf(socket);
  }

  submitter(_config: unknown, context: Context): Submitter {
    return new SimulatedSubmitter(context, this.#simulator);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    // Names of connections have the backend's name before them.
    const connection = this.#host.connection.replace(/^.*:/, '');
    await this.#simulator.watch(connection, signal, (shows, seen) => {
      if (shows === 'all') sink.begin();
      for (const one of seen) sink.observe(observationOf(one));
      if (shows === 'all') sink.complete();
    });
  }

  hearsAtOnce(): boolean {
    return true;
  }

  async check(workers: readonly Worker[]) {
    const seen = await this.#simulator.ask('check', { workers: named(workers) });
    const found = new Map(seen.map((one) => [one[0], one]));
    return new Map(
      workers.map(({ workerId }): [number, CheckResult] => {
        const one = found.get(workerId);
        return [
          workerId,
          one === undefined ? { kind: 'absent' } : { kind: 'observed', observation: observationOf(one) },
        ];
      }),
    );
  }

  async kill(workers: readonly Worker[]) {
    await this.#simulator.ask('kill', { workers: named(workers) });
    return gone(workers);
  }

  async remove(workers: readonly Worker[]) {
    await this.#simulator.ask('remove', { names: workers.map(({ name }) => name) });
    return gone(workers);
  }

  async list(): Promise<Found[]> {
    const connection = this.#host.connection.replace(/^.*:/, '');
    const all = await this.#simulator.ask('list', { connection });
    return all.map(({ marked, seen }) => ({
      place: `${connection}#${marked.name}`,
      handle: handleOf(marked.workerId),
      identity: marked,
      observation: observationOf(seen),
    }));
  }

  async removeOrphan(found: Found): Promise<GoneOutcome> {
    const { name } = found.identity ?? {};
    if (name !== undefined) await this.#simulator.ask('remove', { names: [name] });
    return { kind: 'gone' };
  }
}

function gone(workers: readonly Worker[]): Map<number, GoneOutcome> {
  return new Map(workers.map(({ workerId }) => [workerId, { kind: 'gone' }]));
}

const section = {
  config: Type.Object({ connection: Type.String(), simulator: Type.String() }),
  connections: ({ connection }: { connection: string }) => [`day:${connection}`],
};

export const plugins = defineBackend({
  name: 'Day',
  module: 'day',
  submitter: section,
  monitor: section,
  sweeper: section,
  connect: ({ config }, host) => new SimulatedConnection(config.simulator, host),
});
