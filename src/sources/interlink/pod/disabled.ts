import type { Pod } from '../../../clients/interlink/wire.ts';

/** Annotations that name containers, with commas between, which stay in the cluster: the virtual kubelet runs them there. */
const annotations = {
  containers: 'interlink.eu/disable-offload-containers',
  initContainers: 'interlink.eu/disable-offload-init-containers',
} as const;

/** Characters of such an annotation that are read: an API server takes 256 KiB in all annotations of an object. */
const longest = 262_144;

/**
 * Names of the containers that are not for the job, read once for all containers of a Pod. /create has no such container, but /status and
 * /delete have the whole Pod, and a status that leaves one out never ends.
 */
export function disabledIn(
  { metadata }: Pick<Pod, 'metadata'>,
  list: keyof typeof annotations,
): ReadonlySet<string> {
  const names = (metadata.annotations?.[annotations[list]] ?? '').slice(0, longest).split(',');
  return new Set(names.map((one) => one.trim()).filter((one) => one !== ''));
}
