/** ms */
export const hour = 3_600_000;

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: hour, d: 86_400_000 };

/** "90", "20s", "5m", "1h30m", "500ms" to ms; a bare number is seconds. Undefined when it is none of these. */
export function parseDuration(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/gy)) {
    total += Number(amount) * (units[unit ?? ''] ?? 0);
  }
  return total;
}
