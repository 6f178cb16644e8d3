import type { Requirements } from '../../../worker/worker.ts';
import { cores, mebibytes, quantityOf } from '../../../clients/kubernetes/quantity.ts';
import type { K8sSubmitterConfig } from '../schema.ts';
import type { ContainerShape } from './template-shape.ts';

type Resources = NonNullable<ContainerShape['resources']>;

/** A worker's demand by the queue, in cores and MiB; a missing one is not asked for. Source: Harvester's k8s_utils. */
interface Wanted {
  readonly request?: number;
  readonly limit?: number;
  readonly unit: number;
  readonly write: (count: number) => string;
}

/** Kubernetes refuses a container with less, MiB. */
const smallestMemory = 4;

/** Disk of the pilot's directory, MiB: what is requested, and the limit. Undefined where the queue does not say any. */
export function storageOf(
  { maxDiskCount }: Requirements,
  config: K8sSubmitterConfig,
): { readonly request: number; readonly limit: number } | undefined {
  if (!config['k8s.resources.use_ephemeral_storage_resource_specs'] || maxDiskCount <= 0) return undefined;
  const request = Math.ceil(maxDiskCount + config['k8s.resources.ephemeral_storage_offset']);
  const factor = config['k8s.resources.limits.ephemeral_storage_limit_safety_factor'];
  return { request, limit: Math.ceil((request * factor) / 100) };
}

/**
 * The pilot's resources: those in the template stay, and the missing ones come from the worker. An addition never
 * contradicts the template: a request is no more than the template's limit, a limit no less than its request.
 */
export function fillResources(
  written: Resources | undefined,
  requirements: Requirements,
  config: K8sSubmitterConfig,
): Resources {
  const { nCore, minRamCount } = requirements;
  const cpuRatio = config['k8s.resources.requests.cpu_scheduling_ratio'] ?? config.cpuAdjustRatio;
  const memoryRatio = config['k8s.resources.requests.memory_scheduling_ratio'] ?? config.memoryAdjustRatio;
  const storage = storageOf(requirements, config);
  const wanted: Readonly<Record<string, Wanted>> = {
    cpu: {
      ...(nCore > 0 && { request: (nCore * cpuRatio) / 100, limit: nCore }),
      unit: 1,
      write: cores,
    },
    memory: {
      ...(minRamCount > smallestMemory && {
        request: (minRamCount * memoryRatio) / 100,
        ...(config['k8s.resources.limits.use_memory_limit'] && { limit: memoryLimit(minRamCount, config) }),
      }),
      unit: 2 ** 20,
      write: mebibytes,
    },
    'ephemeral-storage': { ...storage, unit: 2 ** 20, write: mebibytes },
  };
  const requests = { ...written?.requests };
  const limits = { ...written?.limits };
  for (const [name, { request, limit, unit, write }] of Object.entries(wanted)) {
    const ownRequest = quantityOf(written?.requests?.[name]);
    const ownLimit = quantityOf(written?.limits?.[name]);
    // A ratio above 100 asks for more than the limit would be, which Kubernetes refuses.
    const top = Math.max(limit ?? 0, request ?? 0, ownRequest === undefined ? 0 : ownRequest / unit);
    if (limit !== undefined && ownLimit === undefined) limits[name] = write(top);
    if (request === undefined || ownRequest !== undefined) continue;
    const fits = ownLimit === undefined || request * unit <= ownLimit;
    requests[name] = fits ? write(request) : written?.limits?.[name];
  }
  return {
    ...written,
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

function memoryLimit(minRamCount: number, config: K8sSubmitterConfig): number {
  const offset = config['k8s.resources.limits.memory_limit_min_offset'];
  const factor = config['k8s.resources.limits.memory_limit_safety_factor'];
  return Math.max(minRamCount + offset, (minRamCount * factor) / 100);
}
