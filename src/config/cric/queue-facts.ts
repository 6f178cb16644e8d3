import { isObject, type JsonObject } from '../../util/json.ts';
import type { Reach } from './fields.ts';

/** The facts about a queue that decide which of CRIC's fields become its options. */
export interface QueueFacts {
  readonly reaches: ReadonlySet<Reach>;
  /** The option by which a queue of HTCondor asks for CRIC. */
  readonly asksBy: string | undefined;
  /** CRIC names its CEs: `useCRICGridCE`, or the older name of it. */
  readonly gridCes: boolean;
  /** Sections that it has. */
  readonly sections: ReadonlySet<string>;
  /** Options of its submitter. */
  readonly submitter: JsonObject;
}

/** Harvester's classes, which thresher's plugins share their names with. */
const reachOf: Readonly<Record<string, Reach>> = {
  K8sSubmitter: 'kubernetes',
  HTCondorSubmitter: 'htcondor',
};

/** Pure. Source of `useCRIC` and its older names: Harvester's htcondor_submitter. */
export function queueFacts(values: JsonObject): QueueFacts {
  const submitter = isObject(values.submitter) ? values.submitter : {};
  const backend = typeof submitter.name === 'string' ? reachOf[submitter.name] : undefined;
  const isCondor = backend === 'htcondor';
  // The newest name that is there counts, whatever its value.
  const ces = ['useCRICGridCE', 'useAtlasGridCE'].find((name) => isThere(submitter[name]));
  const plain = ['useCRIC', 'useAtlasCRIC', 'useAtlasAGIS'].find((name) => isThere(submitter[name]));
  const asksBy = isCondor
    ? [ces, plain].find((name) => name !== undefined && Boolean(submitter[name]))
    : undefined;
  const gridCes = asksBy !== undefined && asksBy === ces;
  const reaches = new Set<Reach>(['any']);
  if (backend !== undefined && (!isCondor || asksBy !== undefined)) reaches.add(backend);
  const sections = new Set(Object.keys(values).filter((key) => isObject(values[key])));
  return { reaches, asksBy, gridCes, sections, submitter };
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}
