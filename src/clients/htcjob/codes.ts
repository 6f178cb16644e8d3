import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Codes of the operator of HTCJobs. */
export const htcjobErrors = {
  'no-such-htcjob': {
    meaning: 'There is no HTCJob of this name, or several namespaces have one.',
    remedy: '`thresher htcjob list` shows their names; NAMESPACE/NAME names one for certain.',
  },
  'htcjob-lease': {
    meaning:
      'Another operator of HTCJobs holds the Lease, or this daemon cannot read or write it. Two operators would submit jobs twice.',
    remedy:
      'Nothing to do if another daemon is to be the operator; else see the message for the right or the server that is missing.',
  },
  'htcjob-unsynced': {
    meaning: 'The operator has not read all HTCJobs of the cluster yet, or cannot follow them.',
    remedy:
      'See the message; mostly a missing right, a missing CRD (`thresher htcjob crd`) or a server that is away.',
  },
  'htcjob-queue': {
    meaning: 'A HTCJob names a queue that takes no HTCJobs, or none where several do.',
    remedy: 'Set `spec.queueName`, or `queue` of `sources.htcjob`, to a queue with `"demand": "htcjob"`.',
  },
  'htcjob-namespace': {
    meaning: 'The queue takes no HTCJobs of this namespace.',
    remedy:
      'Name another queue in `spec.queueName`, or add the namespace to `namespaces` in the `demand` of the queue.',
  },
  'htcjob-secret': {
    meaning: 'A Secret that a HTCJob names, or a key of it, is not there.',
    remedy: 'Create it, or mark it as `optional` in `spec.secrets`; the jobs are submitted then.',
  },
  'htcjob-output': {
    meaning: 'thresher cannot keep the output of a job in `outputDir` of `sources.htcjob`.',
    remedy:
      'See the message: make the directory, mount it, or remove what is in the way below it. thresher tries again.',
  },
  'htcjob-event': {
    meaning:
      'thresher refused an event of a job: it is no CloudEvent of a HTCJob, or has no token of its job.',
    remedy:
      'See the message. Nothing is to be done where a stranger sent it; if all events are refused, the key of the tokens has changed.',
  },
  'htcjob-event-key': {
    meaning: 'thresher cannot use the file with the key that signs the tokens of HTCJobs.',
    remedy:
      'See the message; write 32 or more random bytes into the file, and let the user of the daemon read it.',
  },
} satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcjobErrors> {}
}
