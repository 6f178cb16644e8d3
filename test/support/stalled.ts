import { readFileSync } from 'node:fs';

/** Time in which a process waited for a processor, as Linux counts it (pressure stall information). */
function pressure(pattern: RegExp): number | null {
  try {
    const [, value] = pattern.exec(readFileSync('/proc/pressure/cpu', 'utf8')) ?? [];
    return value === undefined ? null : Number(value);
  } catch {
    // The kernel does not count it.
    return null;
  }
}

/** Share of the last minute, %; null: unknown. */
export function stalledShare(): number | null {
  const share = pressure(/^some .*avg60=([\d.]+)/m);
  return share === null ? null : Math.round(share);
}

/** Since the machine began, ms; null: unknown. */
export function stalledTotal(): number | null {
  const total = pressure(/^some .*total=(\d+)/m);
  return total === null ? null : total / 1000;
}
