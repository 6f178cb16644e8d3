import { isObject, type JsonObject } from '../../util/json.ts';
import type { Reach } from './fields.ts';

/** The facts about a queue that decide which of CRIC's fields become its options. */
export interface QueueFacts {
  readonly reaches: ReadonlySet<Reach>;
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
  const { useCRIC, useAtlasCRIC, useAtlasAGIS, useCRICGridCE, useAtlasGridCE } = submitter;
  const gridCes = backend === 'htcondor' && Boolean(useCRICGridCE ?? useAtlasGridCE);
  const asks = gridCes || Boolean(useCRIC ?? useAtlasCRIC ?? useAtlasAGIS);
  const reaches = new Set<Reach>(['any']);
  if (backend === 'kubernetes' || (backend === 'htcondor' && asks)) reaches.add(backend);
  const sections = new Set(Object.keys(values).filter((key) => isObject(values[key])));
  return { reaches, gridCes, sections, submitter };
}
