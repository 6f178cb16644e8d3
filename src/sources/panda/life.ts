import type { PandaApi, TakenCommand } from '../../clients/panda/api.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { Desk, Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { announcedCommands } from './commands.ts';
import type { LinkMemory } from './memory.ts';
import { isWrongMemory } from './shape.ts';
import type { ServerHealth } from './server-health.ts';
import { isOrdered, type OwnQueue, sitesOf } from './sites.ts';

export interface LifeParts {
  readonly api: Pick<PandaApi, 'heartbeat' | 'currentWorkerId' | 'resourceTypes'>;
  readonly memory: LinkMemory;
  readonly clock: Clock;
  readonly log: Log;
  readonly health: ServerHealth;
  readonly version: string;
  /** ms */
  readonly heartbeatInterval: number;
}

/** The instance as the server knows it: its heartbeat with the commands that it takes, its worker ids, the resource types. */
export class Life {
  readonly #parts: LifeParts;
  readonly #startedAt: number;
  /** Monotonic ms. */
  #dueAt = -Infinity;
  /** The commands that the server was told of last, as a key. */
  #announced: string | undefined;
  #idsKept = false;
  #asksId = true;
  /** The id that the server told last leaves no room for ours, or was none. */
  #isIdRefused = false;
  #hasTypes = false;
  /** Resource types whose memory was no good in the last answer, as they were logged. */
  #wrongTypes = '';

  constructor(parts: LifeParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
  }

  get startedAt(): number {
    return this.#startedAt;
  }

  /** Whether no new worker gets an id that the server knows already. */
  get isReady(): boolean {
    return this.#idsKept;
  }

  /** Does what is due. */
  async turn(desk: Desk, signal: AbortSignal): Promise<void> {
    const queues = desk.ownQueues();
    const sites = sitesOf(queues.filter(isOrdered)).sort();
    const key = JSON.stringify(sites);
    const { clock, heartbeatInterval } = this.#parts;
    if (clock.monotonic() >= this.#dueAt || key !== this.#announced) {
      if (!(await this.#heartbeat(announcedCommands(sites), signal))) return;
      this.#announced = key;
      this.#hasTypes = false;
      this.#asksId ||= this.#isIdRefused;
      this.#dueAt = clock.monotonic() + heartbeatInterval;
    }
    if (!this.#hasTypes) await this.#typesOfServer(queues, desk, signal);
    if (this.#asksId) await this.#keepIds(queues, desk, signal);
  }

  /** A heartbeat beside those that are due: the server takes it unless it takes nothing. */
  async beat(signal: AbortSignal): Promise<PandaOutcome<null>> {
    const outcome = await this.#send(undefined, signal);
    this.#parts.health.note('heartbeat', outcome);
    return outcome;
  }

  /** @returns whether the server took it */
  async #heartbeat(commands: readonly TakenCommand[], signal: AbortSignal): Promise<boolean> {
    const first = await this.#send(commands, signal);
    // The first one of an instance is stored without its data, and answered as a failure.
    const isFirst = first.kind === 'failed' && first.code === 'panda-database';
    const outcome = isFirst ? await this.#send(commands, signal) : first;
    this.#parts.health.note('heartbeat', outcome);
    return outcome.kind === 'ok';
  }

  #send(commands: readonly TakenCommand[] | undefined, signal: AbortSignal): Promise<PandaOutcome<null>> {
    const { api, version } = this.#parts;
    const data = { startTime: this.#startedAt, version, commit: `thresher ${version}` };
    return api.heartbeat(commands === undefined ? data : { ...data, commands }, signal);
  }

  async #typesOfServer(queues: readonly OwnQueue[], desk: Desk, signal: AbortSignal): Promise<void> {
    const { api, memory, health, log } = this.#parts;
    const outcome = await api.resourceTypes(signal);
    health.note('resource-types', outcome);
    if (outcome.kind === 'failed') return;
    this.#hasTypes = true;
    // Each worker of such a type would be refused for its needs.
    const types = outcome.data.map((type) => (isWrongMemory(type) ? { ...type, maxrampercore: null } : type));
    const wrong = outcome.data
      .filter(isWrongMemory)
      .map(({ resource_name: type, maxrampercore: size }) => `${type} ${String(size)}`)
      .join(', ');
    if (wrong !== '' && wrong !== this.#wrongTypes)
      log.warn(
        'resource types of the PanDA server have a memory that none can mean, and count as without one',
        {
          types: wrong,
        },
      );
    this.#wrongTypes = wrong;
    if (JSON.stringify(types) === JSON.stringify(memory.types)) return;
    await memory.change((kept) => ({ ...kept, types }));
    for (const { name } of queues) desk.wake(name);
  }

  /** Only after a heartbeat that went well: the server answers for an instance that it does not know as for a lost database. */
  async #keepIds(queues: readonly OwnQueue[], desk: Desk, signal: AbortSignal): Promise<void> {
    const { api, health } = this.#parts;
    const outcome = await api.currentWorkerId(signal);
    health.note('worker-id', outcome);
    const isRefused = outcome.kind === 'failed' && outcome.code === 'panda-worker-id';
    if (outcome.kind === 'failed' && !isRefused) return;
    // An id that leaves no room, or is none, is no reason to wait: our own ids begin by the time.
    if (outcome.kind === 'ok') await desk.keepIdsAbove(outcome.data);
    this.#isIdRefused = isRefused;
    this.#asksId = false;
    if (this.#idsKept) return;
    this.#idsKept = true;
    for (const { name } of queues) desk.wake(name);
  }
}
