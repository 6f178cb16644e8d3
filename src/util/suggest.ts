/** The known word that a misspelt one most likely means; undefined where none is near. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const near = known
    .map((candidate) => ({
      candidate,
      distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
    }))
    // A third of the letters may be wrong: beyond that a guess is no help.
    .filter(({ candidate, distance }) => distance <= Math.max(word.length, candidate.length) / 3)
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.candidate;
}

/** How many letters must be added, removed or replaced to make `b` of `a` (Levenshtein). */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1];
    for (const [j, other] of b.split('').entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
