import { draw } from './schedds.ts';

/**
 * The same places with each group at one of them. A group goes where its workers find room, drawn by the room that is left; one
 * that is larger than all room goes to one place all the same, and the others get less.
 * @param places one for each worker, so many of each as its share is
 * @param groupIds the group of each worker; undefined for one without
 * @param random from 0 up to 1, asked once for each group
 */
export function keepTogether<P>(
  places: readonly P[],
  groupIds: readonly (string | undefined)[],
  random: () => number,
): P[] {
  const sizes = new Map<string, number>();
  for (const groupId of groupIds)
    if (groupId !== undefined) sizes.set(groupId, (sizes.get(groupId) ?? 0) + 1);
  if (sizes.size === 0 || places.length < groupIds.length) return [...places];
  const room = new Map<P, number>();
  for (const place of places) room.set(place, (room.get(place) ?? 0) + 1);
  const chosen = new Map<string, P>();
  // The largest first, while there is room for it.
  for (const [groupId, size] of [...sizes].toSorted(([, a], [, b]) => b - a)) {
    const fitting = [...room].filter(([, left]) => left >= size);
    const [place] = draw(fitting.length > 0 ? fitting : [...room], ([, left]) => left, random) ?? [];
    if (place === undefined) continue;
    chosen.set(groupId, place);
    room.set(place, (room.get(place) ?? 0) - size);
  }
  const rest = places.filter((place) => {
    const left = room.get(place) ?? 0;
    if (left > 0) room.set(place, left - 1);
    return left > 0;
  });
  const next = rest.values();
  return groupIds.flatMap((groupId) => {
    const place = groupId === undefined ? next.next().value : chosen.get(groupId);
    return place === undefined ? [] : [place];
  });
}
