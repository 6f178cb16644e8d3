import type { RetrievedPodData } from '../../clients/interlink/wire.ts';
import type { Request, SourceHost } from '../../plugins/contracts/index.ts';
import { hasCode } from '../../util/files.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { bounds } from './bounds.ts';
import type { TrackedPod } from './pods/tracked-pod.ts';

/** The least time between two batches of Pods, ms. Pods that come meanwhile share a submission, and so one `condor_submit`. */
export const batchInterval = 200;

/** How long one batch may take to be planned, ms: nothing else runs meanwhile. The rest is of the next batch. */
const planTime = 50;

/** How long after a body could not be read the next ones are read, ms. */
const readPause = 10_000;
/** Bodies that are read before Pods are planned. */
const readAtOnce = 100;

export interface PodRequestsParts {
  readonly host: Pick<SourceHost, 'clock' | 'log'>;
  /** The least time between two batches, ms. */
  readonly batchInterval: number;
  /** The body of a Pod, from its file; undefined: it gets no job after all, and is wanted no more. */
  readonly read: (pod: TrackedPod) => Promise<RetrievedPodData | undefined>;
  /** Makes a Pod a request; undefined: it cannot become a job any more. */
  readonly plan: (pod: TrackedPod, data: RetrievedPodData) => Request | undefined;
}

/** The requests of Pods that wait for jobs. It plans each Pod once, and asks for new Pods in batches. */
export class PodRequests {
  readonly #parts: PodRequestsParts;
  /** Pods that were asked for and wait on. The plan of a Pod holds its Secrets, so it goes as soon as the Pod waits no more. */
  #asked: ReadonlyMap<TrackedPod, Request | undefined> = new Map();
  /** Pods that wait for room in memory. */
  #far = 0;
  /** Monotonic ms: earlier than that no new Pod is asked for. */
  #nextBatch = -Infinity;
  #isWaking = false;
  #isReading = false;
  /** Monotonic ms. */
  #readAgainAt = -Infinity;

  constructor(parts: PodRequestsParts) {
    this.#parts = parts;
  }

  /** Why some of the Pods are not asked for. */
  get reason(): Reason | undefined {
    if (this.#far === 0) return undefined;
    const most = bounds.waitingBytes / 1024 / 1024;
    const message = `${this.#far} Pods wait until others have their jobs: ConfigMaps, Secrets and all else of those that wait have more than ${most} MiB`;
    return { code: 'interlink-memory', message };
  }

  /** @param wake is called when Pods of the next batch may be asked for, if there are any */
  of(waiting: readonly TrackedPod[], wake: () => void): readonly Request[] {
    const { host, plan, batchInterval: interval } = this.#parts;
    const { clock } = host;
    const now = clock.monotonic();
    const near = nearOf(waiting);
    this.#far = waiting.length - near.length;
    const before = this.#asked;
    const isNew = (pod: TrackedPod) => !before.has(pod) && pod.body !== undefined;
    let isOpen = now >= this.#nextBatch;
    if (isOpen && near.some(isNew)) this.#nextBatch = now + interval;
    const asked = new Map<TrackedPod, Request | undefined>();
    const unread: TrackedPod[] = [];
    for (const pod of near) {
      const { body } = pod;
      // The same object says to the daemon that nothing in the request has changed.
      if (before.has(pod)) asked.set(pod, before.get(pod));
      else if (body === undefined) unread.push(pod);
      else if (isOpen) {
        asked.set(pod, plan(pod, body));
        pod.body = undefined;
        isOpen = clock.monotonic() - now < planTime;
      }
    }
    this.#asked = asked;
    if (asked.size + unread.length < near.length)
      this.#wakeIn(this.#nextBatch - now, wake).catch(() => undefined);
    if (unread.length > 0) this.#read(unread, wake).catch(() => undefined);
    return [...this.#asked.values()].filter((request) => request !== undefined);
  }

  async #wakeIn(ms: number, wake: () => void): Promise<void> {
    if (this.#isWaking) return;
    this.#isWaking = true;
    await this.#parts.host.clock.sleep(ms);
    this.#isWaking = false;
    wake();
  }

  /** Beside the passes, since the file system may hang. One file that is damaged keeps no other Pod from its job. */
  async #read(pods: readonly TrackedPod[], wake: () => void): Promise<void> {
    const { host, read } = this.#parts;
    const { clock, log } = host;
    if (this.#isReading || clock.monotonic() < this.#readAgainAt) return;
    this.#isReading = true;
    const failed: string[] = [];
    let first: unknown;
    let count = 0;
    for (const pod of pods)
      try {
        const isWanted = () => pod.isWanted;
        if (!isWanted()) continue;
        const body = await read(pod);
        if (isWanted()) pod.body = body;
        if (++count % readAtOnce === 0) wake();
      } catch (error) {
        first ??= error;
        failed.push(pod.record.uid);
        if (hasCode(error, 'file-timeout')) break;
      }
    this.#isReading = false;
    if (failed.length > 0) {
      this.#readAgainAt = clock.monotonic() + readPause;
      log.warn('Pods wait for jobs, and their files cannot be read', {
        pods: failed.slice(0, 10),
        count: failed.length,
        ...toReason(first),
      });
    }
    if (count > 0) wake();
  }
}

/** Pods whose bodies, and what is planned of them, may be in memory at once. The largest wait, of these the last: a few hold up no other. */
function nearOf(waiting: readonly TrackedPod[]): readonly TrackedPod[] {
  let bytes = waiting.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0);
  if (bytes <= bounds.waitingBytes) return waiting;
  const far = new Set<TrackedPod>();
  for (const pod of waiting.toReversed().sort((one, other) => other.bodyBytes - one.bodyBytes)) {
    if (bytes <= bounds.waitingBytes) break;
    far.add(pod);
    pod.body = undefined;
    bytes -= pod.bodyBytes;
  }
  return waiting.filter((pod) => !far.has(pod));
}
