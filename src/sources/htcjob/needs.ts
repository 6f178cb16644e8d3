import type { Request } from '../../plugins/contracts/index.ts';
import type { HtcJobSpec, JobRequests } from '../../clients/htcjob/resource.ts';

const units: Readonly<Record<string, number>> = {
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

/** Megabytes (2^20 bytes), rounded up, of a quantity of Kubernetes; undefined for what is none. */
export function megabytes(quantity: string | number): number | undefined {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([kMGTPE]i?|Ki)?$/.exec(String(quantity)) ?? [];
  const factor = units[unit];
  if (number === '' || factor === undefined) return undefined;
  return Math.ceil((Number(number) * factor) / 2 ** 20);
}

/** Needs of one job, where the resource names them: the others are those of the queue. */
export function requirementsOf({
  requests = {},
}: Pick<HtcJobSpec, 'requests'>): NonNullable<Request['requirements']> {
  const size = (of: JobRequests['memory']) => (of === undefined ? undefined : megabytes(of));
  const [memory, disk] = [size(requests.memory), size(requests.disk)];
  return {
    ...(requests.cpus !== undefined && { nCore: requests.cpus }),
    ...(memory !== undefined && { minRamCount: memory }),
    ...(disk !== undefined && { maxDiskCount: disk }),
  };
}
