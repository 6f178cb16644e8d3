import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of workers on HTCondor; workers.ts has those that backends share. */
export const htcondorWorkerErrors = {
  'htcondor-value': {
    meaning:
      'A value cannot stand in a submit description: HTCondor cannot quote a character in it, or one job may not ask for so much (4096 cores, 1000 GPUs, 64 TiB of memory).',
    remedy: 'Change the option or the name that the message shows.',
  },
  'htcondor-fenced': {
    meaning: 'thresher gave an attempt up before it sent it, and submitted nothing.',
    remedy: 'Nothing to do: thresher tries the worker again.',
  },
  'htcondor-submit-lives': {
    meaning:
      'A job of an earlier submission may still arrive: its `condor_submit` does not end, or thresher cannot remove a job of it.',
    remedy:
      'See the message for the process or the schedd; the worker waits, and thresher submits nothing twice.',
  },
  'htcondor-submit-elsewhere': {
    meaning:
      'A `condor_submit` runs or ran on the machine that the state directory was moved from, and thresher cannot see here whether it still runs.',
    remedy: 'End it there, then remove the file that the message names.',
  },
  'htcondor-payload': {
    meaning:
      'The template of the queue leaves no way to give a payload to a job: the message says which of its lines stands against it.',
    remedy: 'Change the template as the message says. thresher does not try the worker again.',
  },
  'htcondor-payload-unwritten': {
    meaning:
      'thresher cannot write the payload of a worker into the state directory, where its job reads it.',
    remedy: 'See the message; mostly a full disk or missing permissions below `htcondor/payloads`.',
  },
  'htcondor-owner': {
    meaning:
      'A job with the mark of a worker is of a user that thresher is not known to have been, and thresher never got the number of the job: it cannot tell whether the job is its own, submitted with an earlier credential.',
    remedy:
      'If the message says that `condor_ping` does not answer, have it do so (`condor_ping -type SCHEDD QMGMT_WRITE_CMD`, as the user of the daemon). If thresher submitted as that user before, let the job end. Else remove it from the queue (`condor_rm`). If the history of the schedd still has it then, end the worker (`thresher kill`): a new one takes its place.',
  },
  'htcondor-owners-file': {
    meaning:
      'The file below `htcondor/owners` of the state directory that has the users as whom thresher has submitted to a schedd cannot be read, or is not as thresher wrote it. Without it jobs of its own might count as those of others, so nothing of this schedd is looked up.',
    remedy:
      'Write the users into it as the message says. Where thresher has always submitted as the user of today, remove the file: it is made anew.',
  },
  'htcondor-other-queue': {
    meaning:
      'The schedd has another job queue than the one in which thresher has its jobs: its spool is not mounted, or was lost, or another schedd answers to its name, as that of a machine that took the factory over. Or it answers to another name alone. Its jobs may run on, so thresher concludes of none that it is not there, and submits nothing.',
    remedy:
      'Mount the spool again and restart the schedd. If another schedd has the jobs, name that one in `condorSchedd`. If the queue is gone for good, remove what the message names: workers whose jobs the schedd does not have then count as lost.',
  },
  'htcondor-held-limit': {
    meaning: '`maxHeldJobs` of the jobs of the queue are held.',
    remedy: 'See `condor_q -hold` for the causes; release or remove the jobs.',
  },
  'htcondor-held': {
    meaning: 'The job was held for longer than `heldTimeout`.',
    remedy: 'See the message, which has the reason of HTCondor.',
  },
  'htcondor-queue-time': {
    meaning: 'The job was idle in the queue, or in that of its CE, for longer than `queueTimeLimit`.',
    remedy:
      'See `condor_q -better-analyze` for jobs that wait like it, and `GridJobStatus` and the CE for those that wait there. Ask for less, or raise the limit in the monitor section of the queue.',
  },
  'htcondor-removing': {
    meaning:
      'A removed job has been in the queue for more than ten minutes: HTCondor cannot end its remote part, which may run on. Its worker counts as living.',
    remedy:
      'See whether its CE can be reached and takes the credential. HTCondor tries again by itself; a job that was held meanwhile goes on with `condor_release`. `condor_rm -forcex` forgets the job though its remote part may run: only when nothing of it can run any more (docs/htcondor.md).',
  },
  'htcondor-end-contradicted': {
    meaning:
      'By the log of job events a job has ended, and five minutes later the queue of its schedd says that it waits or runs. Its worker counts as living, and gets no replacement: HTCondor runs a job again whose shadow or schedd broke before the end was in the queue.',
    remedy:
      'Nothing to do where the job runs again. If it does not (`condor_q`, and the log of the schedd), its shadow or the schedd hangs: have HTCondor end the job (`condor_rm`, or a restart of the schedd).',
  },
  'htcondor-removed': {
    meaning: 'The `periodic_remove` of the job, an operator or the factory removed the job from the queue.',
    remedy: 'See the message, which has the reason of HTCondor.',
  },
  'htcondor-input': {
    meaning: 'HTCondor could not transfer the files of the job to its machine, or could not read them.',
    remedy: 'See the message for the file; check `executableFile`, `transfer_input_files` and permissions.',
  },
  'htcondor-output': {
    meaning: 'HTCondor could not transfer the output of the job back, or could not write it.',
    remedy: 'See the message for the file; check that `logDir` exists, and its owner and space.',
  },
  'htcondor-start': {
    meaning: 'HTCondor could not start the pilot.',
    remedy: 'See the message; often a program that is missing or may not be executed, or a container image.',
  },
  'htcondor-credential': {
    meaning: 'The proxy or token of the job is missing or has ended, or the CE refused it.',
    remedy: 'Look at its manager: `thresher credentials`.',
  },
  'htcondor-ce': {
    meaning: 'The CE no longer shows the job, does not answer, cannot be spoken to, or refused the job.',
    remedy:
      'See the message; look at the CE, whether its queue takes such jobs, and whether the job still runs there. Where it could not be spoken to, look at the access point and release the job.',
  },
  'htcondor-memory': {
    meaning: 'The pilot used more memory than it asked for.',
    remedy: 'Raise `minRamCount`, or `request_memory` of the template.',
  },
  'htcondor-disk': {
    meaning: 'The pilot used more disk than it asked for.',
    remedy: 'Raise `maxDiskCount`, or `request_disk` of the template.',
  },
} as const satisfies Record<string, Explanation>;

/** Mistakes in the queue file that only this backend can see. */
export const htcondorMistakes = {
  'ce-not-from-cric': {
    meaning:
      'The queue has `ceEndpoint` or `ceHostname` beside `useCRICGridCE`, and CRIC names no CEs for it, or its data are not configured. thresher uses them; Harvester ignores them and takes the CEs of CRIC.',
    remedy:
      'Add `panda_queues.json` to `cacher.data` of the settings, write the CEs into `ceList`, or set `useCRICGridCE` to `false` to use these.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcondorWorkerErrors>, Table<typeof htcondorMistakes> {}
}
