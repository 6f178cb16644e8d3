import { debugLog } from '../../../clients/htcondor/debug-log.ts';
import { CondorTools, type Tool } from '../../../clients/htcondor/tools.ts';
import type { PingResponse } from '../../../clients/interlink/wire.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { isObject } from '../../../util/json.ts';
import type { AskCapacity } from './node-capacity.ts';

const attributes = ['TotalSlotCpus', 'TotalSlotMemory', 'TotalSlotGPUs'];
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
  const ask = async (args: readonly string[], signal: AbortSignal) => {
    const tool: Tool = {
      command: 'condor_status',
      args,
      changes: false,
      timeLimit,
      outputLimit: 64 * 1024 * 1024,
    };
    return (await tools.succeed(tool, signal)).stdout;
  };
  return async (signal) => {
    // A dynamic slot is a part of a partitionable one.
    const slots = ['-json', '-attributes', attributes.join(','), '-constraint', 'SlotType =!= "Dynamic"'];
    const resources = resourcesOf(await ask(slots, signal));
    return { resources, totals: (await ask(['-total'], signal)).trim() };
  };
}

/** The sum of all slots. A resource of which there is none is left out: `cpu: "0"` would drain the node. @throws SyntaxError */
export function resourcesOf(text: string): NonNullable<PingResponse['resources']> {
  const ads: unknown = text.trim() === '' ? [] : JSON.parse(text);
  const slots = Array.isArray(ads) ? ads.filter(isObject) : [];
  const sum = (attribute: string) =>
    slots.reduce((total, ad) => {
      const value = ad[attribute];
      return typeof value === 'number' && Number.isFinite(value) ? total + value : total;
    }, 0);
  const [cpus, memory, gpus] = [sum('TotalSlotCpus'), sum('TotalSlotMemory'), sum('TotalSlotGPUs')];
  return {
    ...(cpus > 0 && { cpu: String(cpus) }),
    ...(memory > 0 && { memory: `${Math.floor(memory)}Mi` }),
    ...(gpus > 0 && { accelerators: [{ resourceType: 'nvidia.com/gpu', available: String(gpus) }] }),
  };
}
