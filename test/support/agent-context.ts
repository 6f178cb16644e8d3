import { CredentialBoard } from '../../src/agents/credentials/credential-board.ts';
import { Connection } from '../../src/agents/observation/connection.ts';
import { WaitingBoard } from '../../src/agents/sources/waiting-board.ts';
import { FactoryLimits } from '../../src/agents/submission/factory-limits.ts';
import { Ledger } from '../../src/agents/ledger/ledger.ts';
import { type FactoryEvents, factoryEvents } from '../../src/agents/events.ts';
import type { PluginCalls } from '../../src/agents/plugin-calls.ts';
import { type AgentContext, contextFor } from '../../src/daemon/agent-context.ts';
import type { Events } from '../../src/util/events.ts';
import { BelievedClock, givingWayTogether } from '../../src/util/clock.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { ManualClock } from './manual-clock.ts';
import { recordingLog, workerOf } from './samples.ts';

/** What one agent gets, with a database in memory and a clock that stands still. */
export class AgentParts implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly log = recordingLog();
  readonly placement = workerOf(1).placement;
  readonly connection = new Connection(this.placement, this.clock, 60_000);
  readonly waiting = new WaitingBoard();
  readonly ledger: Ledger;
  readonly events: Events<FactoryEvents>;
  readonly context: AgentContext & { readonly calls: PluginCalls };
  readonly store: Store;
  /** Aborts as the daemon's own does when a stop takes too long. */
  readonly giveUp = new AbortController();
  /** How many workers each change of the ledger was of. */
  readonly changes: number[] = [];
  #lastId = 0;

  static async open(): Promise<AgentParts> {
    return new AgentParts(await openStore(':memory:', 'factory'));
  }

  private constructor(store: Store) {
    const { clock, log } = this;
    this.store = store;
    this.events = factoryEvents(log);
    this.ledger = new Ledger(store, clock, log, this.events);
    const change = this.ledger.change.bind(this.ledger);
    this.ledger.change = (changes) => {
      this.changes.push(changes.length);
      return change(changes);
    };
    this.context = contextFor({
      factoryId: 'factory',
      harvesterId: 'harvester',
      idFloor: 1,
      clock,
      believed: new BelievedClock(clock, log),
      random: () => 0.5,
      log,
      ledger: this.ledger,
      store,
      events: this.events,
      giveWay: givingWayTogether(clock),
      factoryLimits: new FactoryLimits(undefined, 1, clock),
      credentials: new CredentialBoard(),
      waiting: this.waiting,
      credentialLifetime: 0,
      pluginTimeout: 60_000,
      giveUp: this.giveUp.signal,
      step: () => undefined,
    });
  }

  /** Ids of so many workers of queue Q that were submitted. */
  async submitted(count: number, placement = this.placement): Promise<number[]> {
    const ids = Array.from({ length: count }, () => ++this.#lastId);
    await this.ledger.intend(ids.map((id) => workerOf(id, { placement })));
    for (let first = 0; first < count; first += 500) {
      const some = ids.slice(first, first + 500);
      await this.ledger.change(some.map((workerId) => ({ workerId, to: 'submitted', source: 'test' })));
    }
    this.changes.length = 0;
    return ids;
  }

  /** Workers by status, of these. */
  async statuses(ids: readonly number[]): Promise<Record<string, number>> {
    const records = await this.store.workers.byIds(ids);
    const groups = Map.groupBy(records, ({ status }) => status);
    return Object.fromEntries([...groups].map(([status, some]) => [status, some.length]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
  }
}
