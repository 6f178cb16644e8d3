import type { Requirements } from '../../../worker/worker.ts';
import type { JobRequests, SpecProblem } from '../resource.ts';

const units: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};
const megabyte = 2 ** 20;

export interface Sizes {
  readonly requirements: Partial<Requirements>;
  /** Commands for HTCondor: no other backend has them in the needs of a worker. */
  readonly commands: Readonly<Record<string, string>>;
  readonly problems: readonly SpecProblem[];
}

/** The needs of each job, as workers have them: HTCondor and thresher count memory and disk in MiB, rounded up. */
export function sizesOf(requests: JobRequests = {}): Sizes {
  const problems: SpecProblem[] = [];
  const { cpus, gpus } = requests;
  const megabytes = (name: 'memory' | 'disk'): number | undefined => {
    const written = requests[name];
    if (written === undefined) return undefined;
    const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)(\w*)$/.exec(String(written).trim()) ?? [];
    const bytes = Number(digits) * (Object.hasOwn(units, unit) ? (units[unit] ?? NaN) : NaN);
    if (Number.isFinite(bytes) && bytes >= 1) return Math.max(1, Math.ceil(bytes / megabyte));
    const message = `requests.${name} is ${JSON.stringify(written)}; it must be bytes, such as 512Mi or 2G`;
    problems.push({ at: `/spec/requests/${name}`, message });
    return undefined;
  };
  const minRamCount = megabytes('memory');
  const maxDiskCount = megabytes('disk');
  return {
    requirements: {
      ...(cpus !== undefined && { nCore: Math.max(1, Math.ceil(cpus)) }),
      ...(minRamCount !== undefined && { minRamCount }),
      ...(maxDiskCount !== undefined && { maxDiskCount }),
    },
    commands: gpus === undefined || gpus < 1 ? {} : { request_gpus: String(Math.ceil(gpus)) },
    problems,
  };
}
