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
      'Another operator of HTCJobs holds the Lease, or this daemon cannot read or write it. Two operators would submit jobs twice. HTCJobs that this factory has claimed go on while another one holds it.',
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
    remedy:
      'Set `spec.queueName`, or `queue` of `sources.htcjob`, to a queue with `"demand": "htcjob"`. The spec can change until the HTCJob has `status.uniqId`; later, create it anew.',
  },
  'htcjob-namespace': {
    meaning: 'The queue takes no HTCJobs of this namespace.',
    remedy:
      'Name another queue in `spec.queueName`, or add the namespace to `namespaces` in the `demand` of the queue.',
  },
  'htcjob-secret': {
    meaning: 'A Secret that a HTCJob names, or a key of it, is not there, or the operator may not read it.',
    remedy:
      'Create it, or bind the ClusterRole `thresher-htcjob-secrets` to the operator in its namespace; the jobs are submitted then. Or mark it as `optional` in `spec.secrets`, as long as the HTCJob has no `status.uniqId`.',
  },
  'htcjob-not-imported': {
    meaning: 'htc-operator submitted the jobs of this HTCJob: to submit them again would run them twice.',
    remedy:
      '`thresher htcjob import FILE`, with the table of htc-operator, takes it over. Where the table is lost, delete the HTCJob and create it anew.',
  },
  'htcjob-not-adopted': {
    meaning: 'A job that htc-operator submitted has its mark, and thresher has not listed the schedd since.',
    remedy: 'Wait for the next listing (`sweeper.listInterval`), or start thresher again.',
  },
  'htcjob-no-machine': {
    meaning:
      'Its job has waited for five minutes in the queue of HTCondor, and asks for more cores, GPUs or memory than any machine has that the collector knows.',
    remedy:
      'Ask for less (`spec.requests`), or wait for a machine that has it: the job stays in the queue. `condor_q -better-analyze` says more, and `queueTimeLimit` of the queue ends such jobs.',
  },
  'htcjob-unreported': {
    meaning:
      "A job of htc-operator has ended, and its script's return code is unknown: the job ends with the exit status of the program that sends its event.",
    remedy:
      'Run `thresher htcjob import FILE` again when the table of htc-operator has the result; `--unreported` says how a job counts whose event was lost.',
  },
  'htcjob-import-file': {
    meaning: 'The file is no SQLite database with the table of htc-operator.',
    remedy: 'Name a copy of its `/data/sqlite/htcjobs.db`.',
  },
  'htcjob-import-queue': {
    meaning:
      'thresher cannot tell which of its queues follows the jobs of htc-operator, or the queue is none of HTCondor.',
    remedy:
      'Name a queue with `"demand": "htcjob"` and the HTCondorSubmitter, which leads to the schedd of htc-operator, by `--queue`.',
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
