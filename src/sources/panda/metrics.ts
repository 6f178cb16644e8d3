import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import type { PandaApi, ServiceMetricValues } from '../../clients/panda/api.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import { widths } from '../../clients/panda/widths.ts';
import type { HeldCredential, OwnServices } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';

/** The load of this process and of its disk at one moment. */
export interface Load {
  /** Bytes. */
  readonly rss: number;
  readonly totalMemory: number;
  /** Processor time since the start of the process, ms. */
  readonly cpu: number;
  readonly processors: number;
  /** Share of the state directory's file system that is in use, 0 to 1; undefined where it does not say. */
  readonly diskUse: number | undefined;
}

export interface MetricsParts {
  readonly api: Pick<PandaApi, 'updateServiceMetrics'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly host: string;
  readonly look: () => Promise<Load>;
  readonly credentials: OwnServices['credentials'];
  readonly note: (outcome: PandaOutcome<unknown>) => void;
}

/** Tells the server how this process does, under Harvester's names. It is best effort. */
export class ServiceMetrics {
  readonly #parts: MetricsParts;
  #last: { readonly cpu: number; readonly at: number } | undefined;

  constructor(parts: MetricsParts) {
    this.#parts = parts;
  }

  /** Call it each five minutes. */
  async turn(signal: AbortSignal): Promise<void> {
    const { api, clock, host, look, credentials, note } = this.#parts;
    const load = await look();
    const at = clock.monotonic();
    const cpuShare = this.#last === undefined ? undefined : shareOf(load, this.#last, at);
    this.#last = { cpu: load.cpu, at };
    const now = clock.now();
    const values = {
      rss_mib: rounded(load.rss / 2 ** 20),
      memory_pc: rounded((100 * load.rss) / load.totalMemory),
      ...(cpuShare === undefined ? {} : { cpu_pc: rounded(100 * cpuShare) }),
      ...(load.diskUse === undefined ? {} : { volume_state_pc: rounded(100 * load.diskUse) }),
      cert_lifetime: lifetimesOf(credentials?.() ?? [], now),
    };
    note(await api.updateServiceMetrics(host, values, now, signal));
  }
}

/** The share of all processors that the process took since the last look. */
function shareOf(
  { cpu, processors }: Load,
  last: { readonly cpu: number; readonly at: number },
  at: number,
): number | undefined {
  const passed = at - last.at;
  return passed <= 0 ? undefined : Math.max(0, cpu - last.cpu) / passed / processors;
}

/** Hours by credential, the shortest first; as many as the column takes beside the other numbers. */
function lifetimesOf(credentials: readonly HeldCredential[], now: number): ServiceMetricValues {
  const lifetimes: Record<string, number> = {};
  let room = widths.metric.text - 200;
  const ending = credentials.flatMap(({ name, expiresAt }) =>
    expiresAt === undefined ? [] : [{ name, hours: Math.round((expiresAt - now) / 3_600_000) }],
  );
  for (const { name, hours } of ending.toSorted((one, other) => one.hours - other.hours)) {
    room -= Buffer.byteLength(JSON.stringify({ [name]: hours }));
    if (room < 0) break;
    lifetimes[name] = hours;
  }
  return lifetimes;
}

const rounded = (value: number) => Math.round(value * 100) / 100;

/** Looks at this process, and at the file system of its state directory. */
export async function lookAtProcess(stateDir: string): Promise<Load> {
  const { user, system } = process.cpuUsage();
  return {
    rss: process.memoryUsage.rss(),
    totalMemory: totalmem(),
    cpu: (user + system) / 1000,
    processors: availableParallelism(),
    diskUse: await diskUseOf(stateDir),
  };
}

/** As `df` shows it: blocks that only root may fill are neither used nor free. */
async function diskUseOf(path: string): Promise<number | undefined> {
  try {
    const { blocks, bfree, bavail } = await statfs(path);
    const used = blocks - bfree;
    return used + bavail === 0 ? undefined : used / (used + bavail);
  } catch {
    // The daemon has louder ways to say that its state directory is gone.
    return undefined;
  }
}
