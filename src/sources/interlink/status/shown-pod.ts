import type { NamedPod } from '../../../clients/interlink/schemas.ts';
import { disabledIn } from '../pod/disabled.ts';
import type { ShownContainer, ShownPod } from './status.ts';

/** A Pod that was accepted, with the containers that the virtual kubelet left out of /create and lists in /status. */
export function shownPod(accepted: ShownPod, { metadata, spec }: NamedPod): ShownPod {
  const { uid, name, namespace } = accepted;
  const withMore = (list: 'containers' | 'initContainers'): readonly ShownContainer[] => {
    const known = accepted[list];
    const listed = spec?.[list] ?? [];
    const names = new Set(known.map(({ name: one }) => one));
    const others = listed.filter((one) => !names.has(one.name));
    if (others.length === 0) return known;
    const disabled = disabledIn({ metadata }, list);
    const more = others.filter((one) => disabled.has(one.name));
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
