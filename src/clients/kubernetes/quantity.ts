const suffixes: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * The value of a Kubernetes quantity ("500m", "2Gi", 2); undefined where it is none.
 * Source: apimachinery's resource.Quantity, Kubernetes 1.36.
 */
export function quantityOf(written: unknown): number | undefined {
  if (typeof written !== 'string' && typeof written !== 'number') return undefined;
  const match = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/.exec(
    String(written),
  );
  if (match === null) return undefined;
  const [, digits = '', exponent = '0', suffix = ''] = match;
  return Number(digits) * 10 ** Number(exponent) * (suffixes[suffix] ?? 1);
}

/** Cores as Kubernetes writes them: thousandths, since it refuses finer ones. */
export function cores(count: number): string {
  const thousandths = Math.max(1, Math.round(count * 1000));
  return thousandths % 1000 === 0 ? String(thousandths / 1000) : `${thousandths}m`;
}

export function mebibytes(count: number): string {
  return `${Math.max(1, Math.ceil(count))}Mi`;
}
