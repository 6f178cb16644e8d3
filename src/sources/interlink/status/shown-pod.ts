import type { NamedPod } from '../../../clients/interlink/schemas.ts';
import { isDisabled } from '../pod/disabled.ts';
import type { ShownContainer, ShownPod } from './status.ts';

/** A Pod that was accepted, with the containers that the virtual kubelet left out of /create and lists in /status. */
export function shownPod(accepted: ShownPod, { metadata, spec }: NamedPod): ShownPod {
  const { uid, name, namespace } = accepted;
  const withMore = (list: 'containers' | 'initContainers'): readonly ShownContainer[] => {
    const known = accepted[list];
    const more = (spec?.[list] ?? []).filter(
      (one) => isDisabled({ metadata }, list, one) && !known.some((other) => other.name === one.name),
    );
    if (more.length === 0) return known;
    return [
      ...known,
      ...more.map((one) => ({ name: one.name, image: one.image ?? '', isOff: true as const })),
    ];
  };
  return {
    uid,
    name,
    namespace,
    containers: withMore('containers'),
    initContainers: withMore('initContainers'),
  };
}
