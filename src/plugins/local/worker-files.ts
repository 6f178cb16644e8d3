import type { Static, TSchema } from 'typebox';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import { mostAttempts } from '../../worker/marked.ts';
import type { Worker } from '../../worker/worker.ts';
import type { ProcessId } from './processes.ts';

/** The process of a shim that began an attempt. */
export interface ShimClaim extends ProcessId {
  readonly by: 'shim';
  /** When it began, ms UTC, by the claim's file; undefined where only the process is known. */
  readonly at?: number;
}

/** Decides whether an attempt runs: the first who makes the claim file, the attempt's shim or a fence. */
export type Claim = ShimClaim | { readonly by: 'fence' };

/** Our mark on a worker directory, and all that is needed to make its row again. */
export interface Marked {
  readonly factory: string;
  readonly worker: Worker;
  /** Its share of `maxSlots`, and of `maxMemory` below. */
  readonly cpu: number;
  readonly memory: number;
}

/** Why we ended a worker, written down before the first signal. */
export type EndReason = 'killed' | 'walltime';

/** How a worker's command ended. */
export interface Exit {
  readonly status: number;
  /** No PID namespace could be made or entered, and the command never began. */
  readonly noNamespace?: true;
  /** ms UTC */
  readonly at: number;
}

/** Linux gives out no larger ones. Source: PID_MAX_LIMIT of the kernel. */
const largestPid = 4_194_304;

const text = (maxLength: number) => Type.String({ maxLength });
const name = Type.String({ minLength: 1, maxLength: 4096 });
const amount = Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const count = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) => Type.Integer({ minimum, maximum });

/** `worker.json`. Other keys may stand beside these: a later version may have written them. */
const MarkedFile = Type.Object({
  factory: name,
  cpu: amount,
  memory: amount,
  worker: Type.Object({
    workerId: count(1),
    name,
    queue: name,
    computingSite: name,
    origin: Type.Object({ kind: name, uid: name, index: count(0) }),
    requirements: Type.Object({
      nCore: amount,
      minRamCount: amount,
      maxDiskCount: amount,
      maxWalltime: amount,
      resourceType: text(4096),
      jobType: text(4096),
      pilotType: text(4096),
      prodSourceLabel: text(4096),
    }),
    placement: text(65_536),
    configId: count(0),
    // Each attempt up to this one is looked for by its claim.
    attempt: count(1, mostAttempts),
    accessPoint: Type.Optional(name),
    groupId: Type.Optional(name),
    payloadId: Type.Optional(name),
  }),
});

const ShimClaimFile = Type.Object({
  by: Type.Literal('shim'),
  pid: count(2, largestPid),
  startTicks: count(0),
  bootId: Type.String({ minLength: 1, maxLength: 100 }),
});

const FenceFile = Type.Object({ by: Type.Literal('fence') });

/** A file's content, or what is wrong with it. */
export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string };

/** Reads the mark of a worker. `workerId`: of the directory, which the mark must name. */
export function parseMarked(content: string, workerId: number): Parsed<Marked> {
  const parsed = parse(MarkedFile, content);
  if (!parsed.ok) return parsed;
  const { factory, worker, cpu, memory } = parsed.value;
  if (worker.workerId !== workerId)
    return { ok: false, why: `it names worker ${worker.workerId} in the directory of worker ${workerId}` };
  return { ok: true, value: { factory, worker: identified(worker), cpu, memory } };
}

export function parseClaim(content: string): Parsed<Claim> {
  const fence = parse(FenceFile, content);
  if (fence.ok) return { ok: true, value: { by: 'fence' } };
  const shim = parse(ShimClaimFile, content);
  if (!shim.ok) return shim;
  const { pid, startTicks, bootId } = shim.value;
  return { ok: true, value: { by: 'shim', pid, startTicks, bootId } };
}

/** Undefined for what is no exit status: a power cut may leave the file's name without its content. */
export function parseExit(content: string): Omit<Exit, 'at'> | undefined {
  const [, digits, missing] = /^(\d{1,3})( no-namespace)?$/.exec(content.trim()) ?? [];
  const status = Number(digits);
  if (digits === undefined || status > 255) return undefined;
  return missing === undefined ? { status } : { status, noNamespace: true };
}

export function parseEndReason(content: string): EndReason {
  return content.trim() === 'walltime' ? 'walltime' : 'killed';
}

/** The id that a name of a directory stands for. Only one name does: "7" is worker 7; "07" and "7e0" are none. */
export function workerIdOf(directoryName: string): number | undefined {
  const id = /^[1-9]\d{0,15}$/.test(directoryName) ? Number(directoryName) : undefined;
  return id !== undefined && Number.isSafeInteger(id) ? id : undefined;
}

/** Without what is not ours to believe from a file, such as a handle. */
function identified(worker: Worker): Worker {
  const { workerId, name, queue, computingSite, origin, requirements } = worker;
  const { placement, configId, attempt, accessPoint, groupId, payloadId } = worker;
  return {
    workerId,
    name,
    queue,
    computingSite,
    origin,
    requirements,
    placement,
    configId,
    attempt,
    ...(accessPoint === undefined ? {} : { accessPoint }),
    ...(groupId === undefined ? {} : { groupId }),
    ...(payloadId === undefined ? {} : { payloadId }),
  };
}

function parse<T extends TSchema>(schema: T, content: string): Parsed<Static<T>> {
  try {
    const checked = check(schema, JSON.parse(content));
    if (checked.ok) return checked;
    const [first] = checked.problems;
    return { ok: false, why: `${first?.pointer ?? ''}: ${first?.message ?? 'it is wrong'}` };
  } catch (error) {
    // Also a stack that overflows: brackets may stand in each other as deep as the file is long.
    if (error instanceof SyntaxError || error instanceof RangeError)
      return { ok: false, why: `it is no JSON that can be read (${error.message.slice(0, 100)})` };
    throw error;
  }
}
