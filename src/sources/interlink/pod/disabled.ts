import type { Container, Pod } from '../../../clients/interlink/wire.ts';

/** Annotations that name containers, with commas between, which stay in the cluster: the virtual kubelet runs them there. */
const annotations = {
  containers: 'interlink.eu/disable-offload-containers',
  initContainers: 'interlink.eu/disable-offload-init-containers',
} as const;

/**
 * Whether a container is not for the job. /create has no such container, but /status and /delete have the whole Pod, and a status that
 * leaves one out never ends.
 */
export function isDisabled(
  { metadata }: Pick<Pod, 'metadata'>,
  list: keyof typeof annotations,
  { name }: Pick<Container, 'name'>,
): boolean {
  const names = (metadata.annotations?.[annotations[list]] ?? '').split(',');
  return names.some((one) => one.trim() === name);
}
