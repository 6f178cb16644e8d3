/**
 * Slips of the pen between two words: letters that are missing, too many, wrong, or two that changed places.
 * Source: optimal string alignment distance.
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/**
 * The candidate that `word` probably stands for: at most two edits away, and no more than one in four letters, or the
 * same but for capitals. Longer differences are other words: `condorScheddNew` is no misspelt `condorSchedd`.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  return slips(word, candidates, Math.min(2, Math.floor(word.length / 4)))[0];
}

/** For a message about an unknown word: the candidate that it probably stands for, else all candidates. */
export function whatIsMeant(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return meant === undefined ? `there are ${known.join(', ') || 'none'}` : `did you mean "${meant}"?`;
}

/** Candidates that may be meant, likeliest first; those that begin like `word` are among them. For names that people give. */
export function similar(word: string, candidates: Iterable<string>, atMost = 5): string[] {
  const all = [...candidates];
  const close = slips(word, all, Math.max(1, Math.floor(word.length / 3)));
  const lower = word.toLowerCase();
  const longer = all.filter((candidate) => lower.length > 1 && candidate.toLowerCase().startsWith(lower));
  return [...new Set([...close, ...longer])].slice(0, atMost);
}

function slips(word: string, candidates: Iterable<string>, allowed: number): string[] {
  const lower = word.toLowerCase();
  const found: { candidate: string; distance: number }[] = [];
  for (const candidate of new Set(candidates)) {
    if (candidate === word) continue;
    const sameButCase = candidate.toLowerCase() === lower;
    if (!sameButCase && Math.abs(candidate.length - word.length) > allowed) continue;
    const distance = sameButCase ? 0 : editDistance(word, candidate);
    if (distance <= allowed) found.push({ candidate, distance });
  }
  // The sort is stable: of equals the first stays first.
  return found.sort((a, b) => a.distance - b.distance).map(({ candidate }) => candidate);
}
