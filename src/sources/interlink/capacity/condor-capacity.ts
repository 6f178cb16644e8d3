import { debugLog } from '../../../clients/htcondor/debug-log.ts';
import { JsonObjects } from '../../../clients/htcondor/json-objects.ts';
import { CondorTools } from '../../../clients/htcondor/tools.ts';
import type { PingResponse } from '../../../clients/interlink/wire.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { fromOutside } from '../../../util/own-secrets.ts';
import type { AskCapacity } from './node-capacity.ts';

const attributes = ['TotalSlotCpus', 'TotalSlotMemory', 'TotalSlotGPUs'];
// A dynamic slot is a part of a partitionable one.
const slotsAsked = ['-json', '-attributes', attributes.join(','), '-constraint', 'SlotType =!= "Dynamic"'];
/** What no slot has: a machine may say anything of itself. */
const mostOfSlot = 1e9;
/** ms. */
const timeLimit = 60_000;

/** @param pool undefined: that of HTCondor's own configuration */
export function condorTools(pool: string | undefined, parts: { readonly clock: Clock; readonly log: Log }) {
  const place = pool === undefined ? {} : { pool };
  const onDebug = debugLog(parts.log);
  return new CondorTools({ place, clock: parts.clock, environment: process.env, onDebug });
}

/** Asks the collector of a pool. */
export function condorCapacity(tools: Pick<CondorTools, 'succeed'>): AskCapacity {
  return async (signal) => {
    const asked = { command: 'condor_status', changes: false, timeLimit } as const;
    const slots = new SlotSums();
    const onOutput = (text: string) => {
      slots.push(text);
    };
    await tools.succeed({ ...asked, args: slotsAsked, onOutput }, signal);
    const totals = await tools.succeed({ ...asked, args: ['-total'] }, signal);
    // Whoever reaches the sidecar reads them, and a machine may say anything of its platform.
    return { resources: slots.resources(), totals: fromOutside(totals.stdout.trim()) };
  };
}

/** Sums up the slots of a pool as HTCondor writes them: the text of a large pool would take a while to parse at once. */
export class SlotSums {
  readonly #objects = new JsonObjects();
  readonly #sums = attributes.map(() => 0);

  /** @throws SyntaxError */
  push(text: string): void {
    for (const ad of this.#objects.push(text))
      for (const [at, name] of attributes.entries()) {
        const value = ad[name];
        if (typeof value === 'number' && value > 0 && value <= mostOfSlot)
          this.#sums[at] = (this.#sums[at] ?? 0) + value;
      }
  }

  /** A resource of which there is none is left out: `cpu: "0"` would drain the node. @throws SyntaxError where the end is missing */
  resources(): NonNullable<PingResponse['resources']> {
    if (!this.#objects.complete) throw new SyntaxError('condor_status wrote a list without end');
    const [cpus = 0, memory = 0, gpus = 0] = this.#sums;
    return {
      ...(cpus > 0 && { cpu: String(cpus) }),
      ...(memory > 0 && { memory: `${Math.floor(memory)}Mi` }),
      ...(gpus > 0 && { accelerators: [{ resourceType: 'nvidia.com/gpu', available: String(gpus) }] }),
    };
  }
}
