import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Buckets of durations, s: from a pass that finds nothing to do to one that waits for a dead endpoint. */
const passBuckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 300];
/** Observations are written within 50 ms, unless the database is slow or full. */
const delayBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Every metric of the daemon, in a registry of its own. docs/http.md lists them; a test holds the two together. */
export function makeFamilies() {
  const registry = new Registry();
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge<L>({ registers, name, help, labelNames });
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter<L>({ registers, name, help, labelNames });
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: L[]
  ): Histogram<L> => new Histogram<L>({ registers, name, help, buckets, labelNames });
  return {
    registry,
    info: gauge('thresher_info', 'The running program; always 1.', 'version', 'factory'),
    leader: gauge('thresher_leader', '1 while this daemon has the factory, 0 while it is a standby.'),
    workers: gauge('thresher_workers', 'Living workers by status.', 'queue', 'status'),
    workersAtElements: gauge(
      'thresher_workers_at_computing_element',
      'Living workers that were sent to a computing element, by status.',
      'queue',
      'ce',
      'status',
    ),
    ended: counter(
      'thresher_workers_ended_total',
      'Workers that ended since the start, by final status.',
      'queue',
      'status',
    ),
    submissions: counter(
      'thresher_submissions_total',
      'Workers handed to the backend, retries included, by what came of it.',
      'queue',
      'outcome',
    ),
    failures: counter(
      'thresher_failures_total',
      'Why workers failed or were missed and why submissions were not accepted, by error code.',
      'queue',
      'code',
    ),
    limited: gauge('thresher_queue_limited', 'What holds back more workers now: 1 each.', 'queue', 'reason'),
    limit: gauge('thresher_queue_limit', 'Limits of the queue as configured.', 'queue', 'limit'),
    duration: histogram(
      'thresher_loop_duration_seconds',
      'How long passes took.',
      passBuckets,
      'kind',
      'target',
    ),
    age: gauge('thresher_loop_age_seconds', 'Time since a pass ended last.', 'kind', 'target'),
    stuck: gauge('thresher_loop_stuck', '1 while a pass makes no progress at all.', 'kind', 'target'),
    loopFailures: counter(
      'thresher_loop_failures_total',
      'Passes that failed since the start.',
      'kind',
      'target',
    ),
    delay: histogram(
      'thresher_observation_to_database_seconds',
      'From the moment a backend showed a change to the moment it was written down.',
      delayBuckets,
    ),
    credentialLeft: gauge(
      'thresher_credential_remaining_seconds',
      'Until the credential ends; below 0 it has ended.',
      'credential',
      'manager',
    ),
    credentialGood: gauge(
      'thresher_credential_good',
      '1 while the credential is there and valid.',
      'credential',
      'manager',
    ),
    credentialFailing: gauge(
      'thresher_credential_renewal_failing',
      '1 while the last renewal of the credential failed, however long it still lasts.',
      'credential',
      'manager',
    ),
    serviceUp: gauge('thresher_service_up', '1 while a service of the daemon does its work.', 'service'),
    requestsWaiting: gauge(
      'thresher_requests_waiting',
      'Workers that a source asked for by name and that were not submitted yet.',
      'queue',
      'source',
    ),
    newsBacklog: gauge(
      'thresher_news_backlog',
      'Changes of workers that a source did not take yet.',
      'source',
    ),
    orphans: gauge('thresher_orphans', 'Objects with our mark that belong to no worker.'),
    databaseBytes: gauge(
      'thresher_database_bytes',
      'Size of the database; on SQLite with its write-ahead log.',
    ),
  };
}

export type Families = ReturnType<typeof makeFamilies>;
