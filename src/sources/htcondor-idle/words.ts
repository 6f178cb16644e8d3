/** `1 job`, `2 jobs`. */
export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}

/** `25 %` for 0.25. */
export function asPercent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}
