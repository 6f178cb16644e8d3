import { countOf } from '../../clients/htcjob/numbers.ts';
import { type HtcJobStatus, jobCount } from '../../clients/htcjob/resource.ts';
import { type Clock, isoSeconds } from '../../util/clock.ts';
import type { Reason } from '../../worker/reason.ts';
import type { HtcJobCluster } from './cluster.ts';
import { type EventWriter, notesOf } from './events.ts';
import type { Notices } from './notices.ts';
import { camelCase } from './status.ts';
import type { Tracked } from './tracked.ts';

interface Parts {
  readonly cluster: HtcJobCluster;
  readonly clock: Clock;
  readonly events: Pick<EventWriter, 'write'>;
  readonly notices: Pick<Notices, 'unimported'>;
}

const notImported: Reason = {
  code: 'htcjob-not-imported',
  message: 'htc-operator submitted its jobs: "thresher htcjob import" takes them over',
};

/**
 * A resource of htc-operator waits for its import, and says so. Only one whose jobs have all ended may go before that.
 * @returns its version; undefined where it is gone
 */
export async function awaitImport(
  tracked: Tracked,
  { cluster, clock, events, notices }: Parts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { status = {}, meta, isDeleting, spec, flaw } = tracked;
  const { active, succeeded, failed, reason } = status;
  const ended = countOf(succeeded) + countOf(failed);
  // A status without a count of living jobs tells it by the others, where the spec says how many there are. One that counts no end at all may be
  // of jobs that are being submitted.
  const areAll = active === undefined && flaw === undefined && ended >= jobCount(spec);
  if (isDeleting && ended > 0 && (active === 0 || areAll)) return cluster.setFinalizer(meta, false, signal);
  const { code, message } = notImported;
  if (reason !== undefined) {
    // A status of ours without its counts would take them from one whose factory another writer took away: an Event says it.
    if (reason !== camelCase(code)) notices.unimported(tracked, camelCase(code), message, signal);
    return meta.resourceVersion;
  }
  const why = { reason: camelCase(code), message, lastTransitionTime: isoSeconds(cluster.now(clock.now())) };
  const said: HtcJobStatus = {
    reason: why.reason,
    conditions: [{ type: 'Waiting', status: 'True', ...why }],
  };
  const version = await cluster.applyStatus(meta, said, signal);
  events.write(meta, notesOf(undefined, said), signal);
  return version;
}
