import type { Request } from '../../plugins/contracts/index.ts';
import { total } from '../../limits/limiters.ts';
import { isCounted } from '../../worker/counted.ts';
import type { Origin, Requirements, WorkerToStart } from '../../worker/worker.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { QueueRuntime, Step } from '../queue-runtime.ts';
import type { Entry } from './entries.ts';
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

/** Workers whose intents were to be recorded. */
export interface Recorded {
  /** They have rows by now. */
  readonly workers: readonly WorkerToStart[];
  /** The origins of those among them that a source has named. */
  readonly named: readonly Origin[];
  /** Origins that have had a worker, or were withdrawn: theirs get no row. */
  readonly conflicts: readonly Origin[];
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

  /** Records intents for these entries. They are held by the time they have rows, or another pass would take them for left over. */
  async record(entries: readonly Entry[]): Promise<Recorded> {
    const { ledger, step } = this.#parts;
    step('submit:before-intent');
    const made = withPayloadIds(await this.#make(entries));
    ledger.inFlight.hold(made);
    let recorded: ReadonlySet<number>;
    try {
      recorded = await ledger.intend(made);
    } catch (error) {
      ledger.inFlight.letGo(made);
      throw error;
    }
    step('submit:after-intent');
    const refused = made.filter(({ workerId }) => !recorded.has(workerId));
    ledger.inFlight.letGo(refused);
    const workers = refused.length === 0 ? made : made.filter(({ workerId }) => recorded.has(workerId));
    const named = entries.some(({ requests }) => requests !== undefined)
      ? workers.filter((worker) => !isCounted(worker)).map(({ origin }) => origin)
      : [];
    return { workers, named, conflicts: refused.map(({ origin }) => origin) };
  }

  async #make(entries: readonly Entry[]): Promise<readonly WorkerToStart[]> {
    const { factoryId, harvesterId, store } = this.#parts;
    const { config, configId, messenger, submitter } = this.#runtime;
    const placements = openPlacements(this.#runtime);
    const placed = submitter.place?.(total(entries), placements, groupIdsOf(entries)).values();
    let workerId = await store.ids.take(total(entries));
    return entries.flatMap(({ kind, count, requirements: needs, requests }) =>
      Array.from({ length: count }, (_, at) => {
        const placement = placed?.next().value ?? placements[this.#turn++ % placements.length] ?? '';
        const make = { factoryId, harvesterId, config, configId, placement, originKind: kind };
        const request = requests?.[at];
        const requirements = this.#needs(needs, request);
        return makeWorker(workerId++, { ...make, request, requirements, messenger });
      }),
    );
  }

  /** The pilot type is drawn, unless the request names one. */
  #needs(requirements: Requirements, request: Request | undefined): Requirements {
    const pilotType =
      request?.requirements?.pilotType ?? drawPilotType(this.#runtime.config, this.#parts.random);
    return { ...requirements, pilotType };
  }
}

/** The group of each worker, in order. Absent where no worker has one. */
function groupIdsOf(entries: readonly Entry[]): readonly (string | undefined)[] | undefined {
  if (!entries.some(({ requests = [] }) => requests.some(({ groupId }) => groupId !== undefined)))
    return undefined;
  return entries.flatMap(({ count, requests }) =>
    Array.from({ length: count }, (_, at) => requests?.[at]?.groupId),
  );
}
