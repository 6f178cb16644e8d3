import type { K8sSubmitterConfig } from '../schema.ts';

/** Resource types that servers of PanDA are known to have, by their cores: a template is filled without asking one. */
const singleCore = ['SCORE', 'SCORE_HIMEM', 'SCORE_LOMEM', 'SCORE_VHIMEM'];
const multiCore = ['MCORE', 'MCORE_HIMEM', 'MCORE_LOMEM', 'MCORE_VHIMEM'];

/** The Pod label that affinity looks at: Harvester's, so that both may share nodes. */
export const resourceTypeLabel = 'resourceType';

/** The affinity of a Pod; undefined: the Pod prefers no node. Source: Harvester's `set_affinity`. */
export function affinityOf(
  resourceType: string,
  config: K8sSubmitterConfig,
): Record<string, unknown> | undefined {
  const single = isSingleCore(resourceType);
  const attracts = config['k8s.scheduler.use_score_mcore_affinity'] && single;
  const repels = config['k8s.scheduler.use_score_mcore_anti_affinity'];
  if (!attracts && !repels) return undefined;
  return {
    ...(attracts && { podAffinity: nearTo([...new Set([...singleCore, ...multiCore, resourceType])]) }),
    ...(repels && { podAntiAffinity: nearTo(single ? multiCore : singleCore) }),
  };
}

function nearTo(types: readonly string[]) {
  const podAffinityTerm = {
    labelSelector: { matchExpressions: [{ key: resourceTypeLabel, operator: 'In', values: types }] },
    topologyKey: 'kubernetes.io/hostname',
  };
  return { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }] };
}

function isSingleCore(resourceType: string): boolean {
  return resourceType.toUpperCase().startsWith('SCORE');
}

export function priorityClassOf(resourceType: string, config: K8sSubmitterConfig): string | undefined {
  const general = config['k8s.scheduler.priorityClassName'];
  switch (resourceType.toUpperCase()) {
    case 'SCORE':
      return config['k8s.scheduler.priorityClassName.score'] ?? general;
    case 'SCORE_HIMEM':
      return config['k8s.scheduler.priorityClassName.score_himem'] ?? general;
    case 'MCORE':
      return config['k8s.scheduler.priorityClassName.mcore'] ?? general;
    case 'MCORE_HIMEM':
      return config['k8s.scheduler.priorityClassName.mcore_himem'] ?? general;
    default:
      return general;
  }
}
