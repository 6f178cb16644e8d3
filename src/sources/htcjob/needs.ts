import { quantityOf } from '../../clients/kubernetes/quantity.ts';
import type { Request } from '../../plugins/contracts/index.ts';
import { mostOfJob } from '../../worker/worker.ts';
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

/** The needs of all jobs are added up: one that no machine has must not be among them. */
export function sizeProblems(requests: JobRequests | null | undefined): readonly SpecProblem[] {
  const { cpus, memory, disk } = requests ?? {};
  const sizes = [
    ['cpus', cpus, cpus, mostOfJob.cpus, String(mostOfJob.cpus)],
    ['memory', memory, megabytes(memory ?? 0), mostOfJob.memory, '64Ti'],
    ['disk', disk, megabytes(disk ?? 0), mostOfJob.disk / 1024, '900Ti'],
  ] as const;
  return sizes.flatMap(([name, written, size, most, right]) => {
    if (written == null || (size ?? 0) <= most) return [];
    const message = `${name} is ${String(written).slice(0, 80)}: no machine has so much; write at most ${right}`;
    return [{ at: `/spec/requests/${name}`, message }];
  });
}
