import {
  commandFlawOf,
  countingSpec,
  countingStatus,
  decidingOf,
  flawOf,
  finalizer,
  type HtcJob,
  type HtcJobMeta,
  type HtcJobScript,
  type HtcJobSpec,
  type HtcJobStatus,
  type JobOutput,
  misfitOf,
} from '../../clients/htcjob/resource.ts';
import { presentIn } from '../../clients/kubernetes/objects.ts';
import { sizeOf } from '../../util/json.ts';

/** Longest spec that stays in memory as a whole, characters: tens of thousands of HTCJobs may wait, and a spec may have 1.5 MB. */
const longestKept = 4096;
/** Finalizers that are kept: the API server bounds neither their number nor their length. */
const mostFinalizers = { count: 20, length: longestKept };

/** The short parts of a spec, which say when and how often its jobs run. The others say what they are. */
export interface FollowedSpec extends Omit<ReturnType<typeof decidingOf>, 'output'> {
  readonly queue?: number;
  readonly script: Pick<HtcJobScript, 'queue'>;
  readonly output?: Pick<JobOutput, 'directory'>;
}

export interface FollowedMeta extends HtcJobMeta {
  /** Of many finalizers ours alone is here. */
  readonly hasMoreFinalizers?: true;
}

/** The parts of a HTCJob that stay in memory. */
export interface Followed {
  readonly metadata: FollowedMeta;
  readonly spec: FollowedSpec;
  readonly status?: HtcJobStatus;
  /** The whole spec, where it is short and its jobs may still be asked for: else it is read again when it is needed. */
  readonly whole?: HtcJobSpec;
  /** Characters of its script. */
  readonly scriptLength: number;
  /** Why the object cannot be run as it is. */
  readonly flaw?: string;
  /** The schema of today lets the flaw through, so that its server takes a status of it. */
  readonly hasStatusTaken?: true;
  /** Why it is not begun. Where its jobs run, the field counts as far as it can. */
  readonly misfit?: string;
}

/**
 * The parts of an object that are followed. A list holds all objects at once, and kubectl and the server keep the script, which may
 * have 1 MB, a second and a third time in annotations and managed fields.
 */
export function kept(object: HtcJob): Followed {
  const { metadata, spec } = object;
  const status = countingStatus(object);
  const { namespace, name, uid, resourceVersion, generation, finalizers } = metadata;
  const { creationTimestamp, deletionTimestamp } = metadata;
  const flaw = flawOf(object);
  const hasStatusTaken = flaw !== undefined && flaw === commandFlawOf(object);
  const misfit = flaw === undefined ? misfitOf(spec) : undefined;
  const isOpen = !status?.completionTime && !deletionTimestamp;
  return {
    metadata: {
      namespace,
      name,
      uid,
      resourceVersion,
      ...(generation != null && { generation }),
      ...finalizersOf(finalizers),
      ...(creationTimestamp && { creationTimestamp }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: flaw === undefined ? followed(spec) : emptySpec,
    ...(status !== undefined && { status }),
    ...(flaw === undefined && isOpen && !isLong(sizeOf(spec, longestKept)) && { whole: countingSpec(spec) }),
    scriptLength: flaw === undefined ? spec.script.source.length : 0,
    ...(flaw !== undefined && { flaw }),
    ...(hasStatusTaken && { hasStatusTaken }),
    ...(misfit !== undefined && { misfit }),
  };
}

function finalizersOf(
  written: readonly string[] | null | undefined,
): Pick<FollowedMeta, 'finalizers' | 'hasMoreFinalizers'> {
  if (!written) return {};
  const finalizers = presentIn(written);
  const { count, length } = mostFinalizers;
  if (finalizers.length <= count && finalizers.join('').length <= length) return { finalizers };
  return { finalizers: finalizers.filter((one) => one === finalizer), hasMoreFinalizers: true };
}

export const emptySpec: FollowedSpec = { script: {} };

function followed(spec: HtcJobSpec): FollowedSpec {
  const { output, ...others } = decidingOf(spec);
  const { queue, script } = spec;
  const directory = output?.directory;
  return {
    ...others,
    ...(queue !== undefined && { queue }),
    script: { ...(script.queue !== undefined && { queue: script.queue }) },
    ...(output !== undefined && { output: { ...(directory !== undefined && { directory }) } }),
  };
}

export function isLong(size: number): boolean {
  return size > longestKept;
}
