import type { Group } from '../../plugins/contracts/index.ts';
import { total } from '../../limits/limiters.ts';
import type { WorkerToStart } from '../../worker/worker.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { QueueRuntime, Step } from '../queue-runtime.ts';
import { openPlacements } from './open-connections.ts';
import { withPayloadIds } from './payloads.ts';
import { drawPilotType, makeWorker } from './worker-maker.ts';

export interface RecorderParts {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly random: () => number;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/** Makes workers and records them as intents, which must be in the database before anything is sent. */
export class IntentRecorder {
  readonly #runtime: QueueRuntime;
  readonly #parts: RecorderParts;
  #turn = 0;

  constructor(runtime: QueueRuntime, parts: RecorderParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  /**
   * Records intents for these groups. They are held by the time they have rows, or another pass would take them for left over.
   * @returns those that were recorded, which stay held
   */
  async record(groups: readonly Group[]): Promise<readonly WorkerToStart[]> {
    const { ledger, step } = this.#parts;
    step('submit:before-intent');
    const workers = withPayloadIds(await this.#make(groups));
    ledger.inFlight.hold(workers);
    let recorded: ReadonlySet<number>;
    try {
      recorded = await ledger.intend(workers);
    } catch (error) {
      ledger.inFlight.letGo(workers);
      throw error;
    }
    step('submit:after-intent');
    ledger.inFlight.letGo(workers.filter(({ workerId }) => !recorded.has(workerId)));
    return workers.filter(({ workerId }) => recorded.has(workerId));
  }

  async #make(groups: readonly Group[]): Promise<readonly WorkerToStart[]> {
    const { factoryId, harvesterId, store, random } = this.#parts;
    const { config, configId, messenger, submitter } = this.#runtime;
    const placements = openPlacements(this.#runtime);
    const placed = submitter.place?.(total(groups), placements).values();
    let workerId = await store.ids.take(total(groups));
    return groups.flatMap((group) =>
      Array.from({ length: group.count }, () => {
        const placement = placed?.next().value ?? placements[this.#turn++ % placements.length] ?? '';
        const make = { factoryId, harvesterId, config, configId, placement, originKind: config.demand };
        const requirements = { ...group.requirements, pilotType: drawPilotType(config, random) };
        return makeWorker(workerId++, { ...make, requirements, messenger });
      }),
    );
  }
}
