import type { Explanation } from './explanation.ts';

/** Why no more workers of a queue are submitted. */
export const reasons = {
  'queue-refused': {
    meaning: 'The configuration of this queue has errors; it submits nothing.',
    remedy: 'Mend what the messages at start name; `thresher check-config QUEUE` shows them again.',
  },
  'queue-incomplete': {
    meaning:
      'Nothing is wrong with what is written for this queue, but something that it needs is not there: a plugin, or a file.',
    remedy: 'See the message; `thresher check-config QUEUE` shows all that is missing.',
  },
  'credential-unknown': {
    meaning: 'A credential that the queue needs was not looked at yet: the daemon has just started.',
    remedy: 'Wait a moment.',
  },
  'credential-bad': {
    meaning:
      'A credential that the queue needs is missing, broken, or not valid yet. Nothing is submitted with it.',
    remedy: '`thresher credentials` shows all; see the message for what is wrong, and what renews it.',
  },
  'credential-ending': {
    meaning: 'A credential that the queue needs ends before `credmanager.minLifetime`, or has ended.',
    remedy: 'Renew it; submission goes on at once. `thresher credentials` shows what keeps it.',
  },
  'plugin-timeout': {
    meaning: 'A call of a plugin did not come back in time.',
    remedy: 'Look at the endpoint it speaks to; other queues go on.',
  },
  'file-timeout': {
    meaning:
      'A file or directory did not answer in time: its disk, or the server of its network file system, hangs.',
    remedy:
      'Look at the file system that the message names (`df`, `mount`); thresher asks again and other queues go on.',
  },
  'plugin-failed': {
    meaning: 'A call of a plugin failed as a whole.',
    remedy: 'See the message; it is tried again with growing pauses.',
  },
  'daemon-not-running': {
    meaning: 'No daemon runs on this state directory; what is shown is the last known state.',
    remedy: 'Start it.',
  },
  'demand-none': {
    meaning: 'Nothing asks for workers of this queue.',
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
    meaning: '`runMode` is `slave`: the PanDA server says how many workers there are to be.',
    remedy: 'Set `"runMode": "self"` to fill the queue without the server.',
    ordinary: true,
  },
  'queue-status': {
    meaning: '`queueStatus` is neither `online` nor `test`.',
    remedy: 'Set it to `online` when the queue is to work again.',
    ordinary: true,
  },
  paused: {
    meaning: 'An operator paused the queue.',
    remedy: '`thresher resume QUEUE`.',
    ordinary: true,
  },
  draining: {
    meaning: 'An operator drains the queue: what has not started is cancelled, what runs may end.',
    remedy: '`thresher resume QUEUE`.',
    ordinary: true,
  },
  'queue-limit': {
    meaning: 'As many workers are queued (pending, submitted, idle) as `nQueueLimitWorker` allows.',
    remedy: 'Usual where the resource is full; otherwise look why queued workers do not start.',
    ordinary: true,
  },
  'max-workers': {
    meaning: 'As many workers are alive as `maxWorkers` allows (unset counts as 0, as in Harvester).',
    remedy: 'Set or raise `maxWorkers` if the resource can take more.',
    ordinary: true,
  },
  'ratio-of-none': {
    meaning:
      '`nQueueLimitWorkerRatio`, `...CoresRatio` or `...MemoryRatio` is a share of what runs, and none runs: waiting does not help.',
    remedy: 'Set the `Min` that the message names to what is to be queued at least.',
    ordinary: true,
  },
  'queue-limit-resource-type': {
    meaning: 'The resource type has its part of what may be queued while `nQueueLimitWorkerMin` counts.',
    remedy: 'Usual where a queue serves several resource types.',
    ordinary: true,
  },
  'queue-limit-cores': {
    meaning: 'As many cores are queued as `nQueueLimitWorkerCores`, its `Ratio` or its `Min` allow.',
    remedy: 'Usual where the resource is full; raise the limit if one worker alone is above it.',
    ordinary: true,
  },
  'queue-limit-memory': {
    meaning: 'As much memory (MB) is queued as `nQueueLimitWorkerMemory`, its `Ratio` or its `Min` allow.',
    remedy: 'Usual where the resource is full; raise the limit if one worker alone is above it.',
    ordinary: true,
  },
  'submission-rate': {
    meaning:
      '`submissionRate` of the queue, or `submitter.submissionRate` of the factory, is used up for the moment.',
    remedy: 'Usual while a queue fills up; raise the rate if the backend can take more.',
    ordinary: true,
  },
  'submission-backoff': {
    meaning: 'The last submissions failed in part; fewer are tried at once until all go through again.',
    remedy: 'See the message for what the backend said.',
  },
  'black-hole': {
    meaning:
      'Many of the last workers ended as soon as they had started: the resource may swallow them, so fewer are tried.',
    remedy:
      'Look at `thresher logs ID` of some of them. It mends itself; `submitter.blackHoleLifetime: 0` ends the guard.',
  },
  'black-hole-pause': {
    meaning:
      'All of the last workers ended as soon as they had started; now one is tried every `submitter.blackHolePause`.',
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
      '`maxNewWorkersPerCycle` or `submitter.maxNewWorkers` cut this cycle; the rest follows in the next.',
    remedy: 'Usual while a queue fills up.',
    ordinary: true,
  },
  'backend-room': {
    meaning: 'The backend has no room for more workers now.',
    remedy: 'Usual where the resource is full; see the message for its limit.',
    ordinary: true,
  },
  'not-listed': {
    meaning:
      'What lives on the backend has not been listed since the daemon started: it could be submitted twice.',
    remedy: 'Usual for a moment after the start; otherwise see the message.',
    ordinary: true,
  },
  'status-unknown': {
    meaning:
      'The last status query failed, was partial or is too old. Unknown is not zero: nothing is submitted.',
    remedy: 'Look at the backend; submission goes on with the next complete answer.',
  },
  preflight: {
    meaning: 'The submitter found something that would make every submission fail.',
    remedy: 'See the message.',
  },
  'pid-namespace-missing': {
    meaning:
      'No PID namespace can be made for local workers here. A worker can see and end all processes of its user: the PanDA pilot does so with orphans, the daemon among them, unless `PILOT_NOKILL` is set, as it is by default.',
    remedy:
      'Run workers as a user of their own, or let the kernel make namespaces (`user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`); `"pidNamespace": "none"` silences this.',
    note: true,
  },
  'pid-namespace-required': {
    meaning: '`pidNamespace` is `required`, and no PID namespace can be made here. Nothing is submitted.',
    remedy:
      'See the message for why; let the kernel make namespaces (`user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`), install util-linux, or set `"pidNamespace": "auto"`.',
  },
  'shutting-down': { meaning: 'The daemon is stopping.', remedy: 'Start it again.', ordinary: true },
  'reload-refused': {
    meaning: 'The queue file was changed and has errors; the queue goes on with its former configuration.',
    remedy: 'Mend what the message names; the file is read again when it changes, or on SIGHUP.',
  },
  'queue-removed': {
    meaning: 'The queue is no longer in the configuration; its workers are followed to their end.',
    remedy: 'Put it back to submit again.',
    ordinary: true,
  },
} as const satisfies Record<string, Explanation>;
