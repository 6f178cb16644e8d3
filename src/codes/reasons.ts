import type { Explanation } from './explanation.ts';

/** Why no more workers of a queue are submitted. */
export const reasons = {
  'queue-refused': {
    meaning: 'The configuration of this queue has errors, so the queue submits nothing.',
    remedy: 'Fix the errors listed in the start-up log; `thresher check-config QUEUE` shows them again.',
  },
  'queue-incomplete': {
    meaning: 'The configuration of this queue is correct, but a plugin or a file that it needs is missing.',
    remedy: 'See the message; `thresher check-config QUEUE` shows everything that is missing.',
  },
  'credential-unknown': {
    meaning: 'thresher has not looked at a credential that the queue needs: the daemon has just started.',
    remedy: 'Wait a moment.',
  },
  'credential-bad': {
    meaning:
      'A credential that the queue needs is missing, broken, or not valid yet. thresher submits nothing with it.',
    remedy:
      'See the message for the fault and for the manager that renews the credential; `thresher credentials` shows all credentials.',
  },
  'credential-soon': {
    meaning: 'A credential ends within `credmanager.warnLifetime`. It holds nothing back yet.',
    remedy: 'Renew the credential. `thresher credentials` shows its manager.',
    note: true,
  },
  'credential-ending': {
    meaning: 'A credential that the queue needs ends before `credmanager.minLifetime`, or has ended.',
    remedy: 'Renew the credential; submission goes on at once. `thresher credentials` shows its manager.',
  },
  'plugin-timeout': {
    meaning: 'A call of a plugin did not return in time.',
    remedy: 'Look at the endpoint that the plugin calls; other queues go on.',
  },
  'file-timeout': {
    meaning:
      'A file or directory did not answer in time: its disk, or the server of its network file system, hangs.',
    remedy:
      'Look at the file system that the message names (`df`, `mount`). thresher asks again, and other queues go on.',
  },
  'plugin-failed': {
    meaning: 'A call of a plugin failed as a whole.',
    remedy: 'See the message; thresher repeats the call with growing pauses.',
  },
  'source-failed': {
    meaning:
      'A source failed or did not answer in time when thresher asked it which workers it wants. Its own requests wait; other sources of the queue go on.',
    remedy: 'See the message; thresher asks the source again with growing pauses.',
  },
  'source-flood': {
    meaning: 'A source asks for more than 10,000 workers of one queue at once. The first of them count.',
    remedy: 'Nothing to do: the others follow in later passes, as the first get their workers.',
    ordinary: true,
  },
  'request-refused': {
    meaning: 'A source asks for a worker in a way that thresher does not understand: this request gets none.',
    remedy: 'Correct the source as the message says; its other requests go on.',
  },
  'daemon-not-running': {
    meaning: 'No daemon runs on this state directory; the command shows the last known state.',
    remedy: 'Start the daemon.',
  },
  'source-not-made': {
    meaning: 'A source could not be made, so it asks for nothing. Its queues serve the others.',
    remedy: 'Correct its options, or the module that brings it, and restart the daemon.',
  },
  'demand-none': {
    meaning: 'The queue has no demand: nothing asks for its workers.',
    remedy: 'Set `"demand": "fill"` for the queue, or `submitter.defaultDemand: fill`.',
    ordinary: true,
  },
  'demand-push': {
    meaning:
      'The queue is a push queue (`mapType` is not `NoJob`): its workers need jobs from the PanDA server.',
    remedy: 'Set `"mapType": "NoJob"` if its pilots fetch their own jobs.',
    ordinary: true,
  },
  'demand-slave': {
    meaning: '`runMode` is `slave`: the PanDA server decides how many workers the queue gets.',
    remedy: 'Set `"runMode": "self"` to fill the queue without the server.',
    ordinary: true,
  },
  'cric-status': {
    meaning:
      'CRIC says that the queue is offline, standby or in maintenance, or that it belongs to another instance (`harvester`) or pilot manager.',
    remedy:
      'Change it in CRIC and wait for the cacher, or write `"cricStatus": "online"` into the queue file.',
    ordinary: true,
  },
  'queue-status': {
    meaning: '`queueStatus` is neither `online` nor `test`.',
    remedy: 'Set it to `online` to let the queue submit again.',
    ordinary: true,
  },
  paused: {
    meaning: 'An operator paused the queue.',
    remedy: '`thresher resume QUEUE`.',
    ordinary: true,
  },
  draining: {
    meaning:
      'An operator drains the queue: thresher cancels workers that have not started, and lets running ones end.',
    remedy: '`thresher resume QUEUE`.',
    ordinary: true,
  },
  'queue-limit': {
    meaning: 'As many workers are queued (pending, submitted, idle) as `nQueueLimitWorker` allows.',
    remedy: 'Usual while the resource is full; otherwise find out why queued workers do not start.',
    ordinary: true,
  },
  'max-workers': {
    meaning: 'As many workers are alive as `maxWorkers` allows (unset counts as 0, as in Harvester).',
    remedy: 'Set or raise `maxWorkers` if the resource can take more.',
    ordinary: true,
  },
  'ratio-of-none': {
    meaning:
      '`nQueueLimitWorkerRatio`, `...CoresRatio` or `...MemoryRatio` is a share of the running workers, and none runs: waiting does not help.',
    remedy: 'Set the `Min` that the message names to the smallest number of workers to keep queued.',
    ordinary: true,
  },
  'queue-limit-resource-type': {
    meaning: 'The resource type has its share of the queued workers while `nQueueLimitWorkerMin` counts.',
    remedy: 'Usual if a queue serves several resource types.',
    ordinary: true,
  },
  'queue-limit-cores': {
    meaning: 'As many cores are queued as `nQueueLimitWorkerCores`, its `Ratio` or its `Min` allow.',
    remedy: 'Usual while the resource is full; raise the limit if a single worker exceeds it.',
    ordinary: true,
  },
  'queue-limit-memory': {
    meaning: 'As much memory (MB) is queued as `nQueueLimitWorkerMemory`, its `Ratio` or its `Min` allow.',
    remedy: 'Usual while the resource is full; raise the limit if a single worker exceeds it.',
    ordinary: true,
  },
  'submission-rate': {
    meaning:
      'The queue has used up its `submissionRate`, or the factory its `submitter.submissionRate`, for the moment.',
    remedy: 'Usual while a queue fills up; raise the rate if the backend can take more.',
    ordinary: true,
  },
  'submission-backoff': {
    meaning: 'Some of the last submissions failed; thresher tries fewer at once until all succeed again.',
    remedy: 'See the message for the answer of the backend.',
  },
  'black-hole': {
    meaning:
      'Many of the last workers ended as soon as they had started. The resource may swallow them, so thresher tries fewer.',
    remedy:
      'Look at `thresher logs ID` of some of them. The limit ends by itself when workers live longer; `submitter.blackHoleLifetime: 0` turns the guard off.',
  },
  'black-hole-pause': {
    meaning:
      'All of the last workers ended as soon as they had started; thresher tries one every `submitter.blackHolePause`.',
    remedy:
      'Look at `thresher logs ID` of some of them. The queue goes on by itself as soon as one lives for `submitter.blackHoleLifetime`.',
  },
  throttled: {
    meaning: "The queue's throttler holds it back.",
    remedy: 'See the message for the rule; too many missed workers point to trouble at the site.',
    ordinary: true,
  },
  'max-new-per-cycle': {
    meaning:
      '`maxNewWorkersPerCycle` or `submitter.maxNewWorkers` limits this cycle; the other workers follow in the next.',
    remedy: 'Usual while a queue fills up.',
    ordinary: true,
  },
  'backend-room': {
    meaning: 'The backend has no room for more workers now.',
    remedy: 'Usual while the resource is full; see the message for its limit.',
    ordinary: true,
  },
  'not-listed': {
    meaning:
      'thresher has not listed the workers on the backend since the daemon started. It submits nothing, since it could submit a worker twice.',
    remedy: 'Usual for a moment after the start; otherwise see the message.',
    ordinary: true,
  },
  'status-unknown': {
    meaning:
      'The last status query failed, was incomplete, or is too old. thresher submits nothing until the next complete answer, because the true number of workers is not known.',
    remedy: 'Look at the backend; submission goes on with the next complete answer.',
  },
  preflight: {
    meaning: 'The submitter found a fault that would make every submission fail.',
    remedy: 'See the message.',
  },
  'shutting-down': { meaning: 'The daemon is stopping.', remedy: 'Start it again.', ordinary: true },
  'reload-refused': {
    meaning: 'The changed queue file has errors; the queue goes on with its former configuration.',
    remedy:
      'Fix the errors that the message names; thresher reads the file again when it changes, or on SIGHUP.',
  },
  'queue-removed': {
    meaning: 'The configuration no longer has this queue; thresher follows its workers to their end.',
    remedy: 'Put the queue back to submit again.',
    ordinary: true,
  },
} as const satisfies Record<string, Explanation>;
