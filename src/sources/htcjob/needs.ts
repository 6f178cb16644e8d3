import { quantityOf } from '../../clients/kubernetes/quantity.ts';
import type { Request } from '../../plugins/contracts/index.ts';
import type { HtcJobSpec, JobRequests, SpecProblem } from '../../clients/htcjob/resource.ts';

/** Megabytes (2^20 bytes), rounded up, of a quantity of Kubernetes; undefined for what is none. */
export function megabytes(quantity: string | number): number | undefined {
  const bytes = quantityOf(quantity);
  return bytes === undefined ? undefined : Math.ceil(bytes / 2 ** 20);
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

const mostMegabytes = 1_000_000_000;

/** The needs of all jobs are added up: one that no machine has must not be among them. */
export function sizeProblems(requests: JobRequests | null | undefined): readonly SpecProblem[] {
  const { memory, disk } = requests ?? {};
  return Object.entries({ memory, disk }).flatMap(([name, size]) => {
    if (size == null || (megabytes(size) ?? 0) <= mostMegabytes) return [];
    const message = `${name} is ${String(size).slice(0, 80)}: no machine has so much; write less than 900Ti`;
    return [{ at: `/spec/requests/${name}`, message }];
  });
}
