import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { collectionPath } from '../../clients/kubernetes/paths.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import { type Clock, isoSeconds } from '../../util/clock.ts';
import { beginningOfOwn } from '../../util/beginning.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { withoutEnd } from '../../util/without-end.ts';
import { toReason } from '../../worker/errors.ts';
import type { Meta } from './cluster.ts';
import {
  apiVersion,
  type HtcJobCondition,
  htcJobKind,
  type HtcJobStatus,
} from '../../clients/htcjob/resource.ts';

const kind = { group: '', version: 'v1', resource: 'events' };

/** How many Events are written per second, and at once: a thousand resources that wait fill those of no cluster. */
const rate = { perSecond: 10, burst: 100 };
/** Pause between two lines of the log about Events that are left out, ms. */
const leftOutEvery = 60_000;
/** Longest name of an object that goes before the rest of an Event's, which may have 253 characters. */
const longestName = 230;
/** Longest message, and longest reason. Source: Kubernetes' validation of events. */
const longest = 1024;
const longestReason = 128;

export interface Note {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const isNormal: ReadonlySet<string> = new Set(['Complete', 'Suspended']);

/** The Events by which `kubectl describe htcj` tells of a change of the status. */
export function notesOf(before: HtcJobStatus | undefined, after: HtcJobStatus): readonly Note[] {
  // Another writer may have left thousands of conditions.
  const held = new Map<string, string>();
  for (const { type, status, reason } of before?.conditions ?? [])
    if (status === 'True') held.set(type, reason);
  const wasTrue = ({ type, reason }: HtcJobCondition) => held.get(type) === reason;
  const begun: Note[] =
    before?.startTime === undefined && after.startTime !== undefined
      ? [{ type: 'Normal', reason: 'Submitted', message: `jobs were submitted: ${idsIn(after)}` }]
      : [];
  const news = (after.conditions ?? []).filter((one) => one.status === 'True' && !wasTrue(one));
  return [
    ...begun,
    ...news.map(({ type, reason, message }): Note => ({
      type: isNormal.has(type) ? 'Normal' : 'Warning',
      reason,
      message,
    })),
  ];
}

function idsIn({ jobIds = [] }: HtcJobStatus): string {
  const [first = '', ...others] = jobIds.filter((id) => id !== '');
  return others.length === 0 ? first : `${first} to ${others.at(-1) ?? ''}`;
}

/** Writes Events. One that is not written changes nothing. */
export class EventWriter {
  readonly #client: Pick<KubernetesClient, 'create'>;
  readonly #parts: { readonly clock: Clock; readonly random: () => number; readonly log: Log };
  readonly #factory: string;
  readonly #bucket: TokenBucket;
  /** Events that were left out since the log told of some, and when that was, monotonic ms. */
  #left = { count: 0, told: -Infinity };

  constructor(
    client: Pick<KubernetesClient, 'create'>,
    factory: string,
    parts: { readonly clock: Clock; readonly random: () => number; readonly log: Log },
  ) {
    this.#client = client;
    this.#factory = factory;
    this.#parts = parts;
    this.#bucket = new TokenBucket(rate.perSecond, rate.burst, parts.clock);
    // Those of before a restart are no reason to hold back the first ones.
    this.#bucket.take(-rate.burst);
  }

  write({ namespace, name, uid }: Meta, notes: readonly Note[], signal: AbortSignal): void {
    const { clock, random, log } = this.#parts;
    for (const { type, reason, message } of notes) {
      if (this.#bucket.available < 1) {
        this.#leaveOut(`${namespace}/${name}`);
        return;
      }
      this.#bucket.take(1);
      const at = isoSeconds(clock.now());
      const unique = Math.floor(random() * 2 ** 48).toString(16);
      const event = {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: `${withoutEnd(name.slice(0, longestName), '.-')}.${unique}`, namespace },
        involvedObject: { apiVersion, kind: htcJobKind, namespace, name, uid },
        type,
        // As of a status: see `writtenStatus`.
        reason: beginningOfOwn(reason, longestReason),
        message: beginningOfOwn(message, longest),
        source: { component: 'thresher' },
        firstTimestamp: at,
        lastTimestamp: at,
        count: 1,
        reportingComponent: 'thresher',
        reportingInstance: this.#factory,
      };
      this.#client
        .create(collectionPath(kind, namespace), event, { signal, once: true })
        .catch((error: unknown) => {
          log.debug('event not written', { htcjob: `${namespace}/${name}`, ...toReason(error) });
        });
    }
  }
  #leaveOut(htcjob: string): void {
    const { clock, log } = this.#parts;
    const { count, told } = this.#left;
    this.#left = { count: count + 1, told };
    if (clock.monotonic() - told < leftOutEvery) return;
    this.#left = { count: 0, told: clock.monotonic() };
    log.warn('Events of HTCJobs are left out: there are too many', { htcjob, count: count + 1, ...rate });
  }
}
