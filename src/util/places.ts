/**
 * All places of a text in another one, overlapping ones as well, in one pass: `indexOf` of Node takes the product of both lengths where
 * the text to be found is long and repeats itself, and users write such texts into their logs.
 * @param take is called with each place, in their order
 */
export function placesOf(
  text: ArrayLike<number>,
  wanted: ArrayLike<number>,
  take: (at: number) => void,
): void {
  const { length } = wanted;
  if (length === 0) return;
  const borders = bordersOf(wanted);
  for (let at = 0, same = 0; at < text.length; at++) {
    while (same > 0 && wanted[same] !== text[at]) same = borders[same - 1] ?? 0;
    if (wanted[same] === text[at]) same++;
    if (same < length) continue;
    take(at + 1 - length);
    same = borders[length - 1] ?? 0;
  }
}

/** The last place of a text in another one, -1 if there is none. */
export function lastPlaceOf(text: ArrayLike<number>, wanted: ArrayLike<number>): number {
  let last = -1;
  placesOf(text, wanted, (at) => {
    last = at;
  });
  return last;
}

/** The length of the longest beginning of a text with which each of its beginnings ends, too (Knuth, Morris and Pratt). */
function bordersOf(text: ArrayLike<number>): Uint32Array {
  const borders = new Uint32Array(text.length);
  for (let at = 1, same = 0; at < text.length; at++) {
    while (same > 0 && text[same] !== text[at]) same = borders[same - 1] ?? 0;
    if (text[same] === text[at]) same++;
    borders[at] = same;
  }
  return borders;
}

/** The units of a text, for a search in it. */
export function unitsOf(text: string): Uint16Array {
  const units = new Uint16Array(text.length);
  for (let at = 0; at < units.length; at++) units[at] = text.charCodeAt(at);
  return units;
}
