import { quantityOf } from '../../../clients/kubernetes/quantity.ts';
import type { Container, Resources } from '../../../clients/interlink/wire.ts';
import { mostOfJob } from '../../../worker/worker.ts';
import { type Findings, problem, shown } from './problem.ts';

/** Needs of the whole job; undefined: no container says. */
export interface PodNeeds {
  /** Whole cores. */
  readonly cpus?: number;
  /** MiB. */
  readonly memory?: number;
  /** KiB, HTCondor's unit. */
  readonly disk?: number;
  readonly gpus?: number;
}

const kinds = {
  cpu: ['cpu'],
  memory: ['memory'],
  disk: ['ephemeral-storage'],
  gpu: ['nvidia.com/gpu', 'amd.com/gpu', 'gpu.intel.com/i915'],
} as const;
type Kind = keyof typeof kinds;

/** The needs of all jobs are added up. Memory and disk: bytes. */
const largest: Readonly<Record<Kind, number>> = {
  cpu: mostOfJob.cpus,
  memory: mostOfJob.memory * 2 ** 20,
  disk: mostOfJob.disk * 2 ** 10,
  gpu: mostOfJob.gpus,
};

/**
 * The job needs the sum of its containers, or an init container's need where that is more: init containers run before the others.
 * A limit counts before a request, because HTCondor ends a job that uses more than it asked for.
 */
export function needsOf(
  containers: readonly { readonly container: Container; readonly at: string; readonly isInit: boolean }[],
  findings: Findings,
): PodNeeds {
  const need = (kind: Kind): number | undefined => {
    const of = (init: boolean) =>
      containers
        .filter(({ isInit }) => isInit === init)
        .map(({ container, at }) => amount(kind, container.resources, `${at}/resources`, findings));
    const sum = of(false).reduce(added, undefined);
    const all = [sum, ...of(true)].filter((one) => one !== undefined);
    if (all.length === 0) return undefined;
    const most = Math.max(...all);
    if (most > largest[kind])
      findings.problems.push(
        problem(
          '/pod/spec/containers',
          `the containers ask for ${most} of ${kind}; a job may have ${largest[kind]}`,
        ),
      );
    return most;
  };
  const needs = { cpu: need('cpu'), memory: need('memory'), disk: need('disk'), gpu: need('gpu') };
  return {
    ...(needs.cpu === undefined ? {} : { cpus: Math.max(1, Math.ceil(needs.cpu)) }),
    ...(needs.memory === undefined ? {} : { memory: Math.max(1, Math.ceil(needs.memory / 2 ** 20)) }),
    ...(needs.disk === undefined ? {} : { disk: Math.max(1, Math.ceil(needs.disk / 2 ** 10)) }),
    ...(needs.gpu === undefined || needs.gpu === 0 ? {} : { gpus: Math.ceil(needs.gpu) }),
  };
}

/** The vendors of the GPUs that a container asks for, as options of apptainer. */
export function gpuOptions({ resources }: Container): readonly string[] {
  const asked = { ...(resources?.requests ?? {}), ...(resources?.limits ?? {}) };
  const has = (name: string) => (quantityOf(asked[name] ?? 0) ?? 0) > 0;
  return [...(has('nvidia.com/gpu') ? ['--nv'] : []), ...(has('amd.com/gpu') ? ['--rocm'] : [])];
}

/** Resources that HTCondor has no request for, by name. */
export function unknownResources({ resources }: Container): readonly string[] {
  const known: readonly string[] = Object.values(kinds).flat();
  const names = Object.keys({ ...(resources?.requests ?? {}), ...(resources?.limits ?? {}) });
  return names.filter((name) => !known.includes(name));
}

function amount(
  kind: Kind,
  resources: Resources | null | undefined,
  at: string,
  { problems }: Findings,
): number | undefined {
  const amounts = kinds[kind].map((name) => {
    const written = resources?.limits?.[name] ?? resources?.requests?.[name];
    if (written === undefined) return undefined;
    const value = quantityOf(written);
    const isAmount = value !== undefined && Number.isFinite(value) && value >= 0;
    if (!isAmount)
      problems.push(
        problem(at, `${name} is ${shown(String(written))}, which is no amount; write such as 500m or 1.5Gi`),
      );
    return isAmount ? value : undefined;
  });
  return amounts.reduce(added, undefined);
}

function added(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one + other;
}
