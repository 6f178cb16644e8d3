import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** What became of a worker on HTCondor; what other backends have too is in workers.ts. */
export const htcondorWorkerErrors = {
  'htcondor-value': {
    meaning: 'A value cannot be written into a submit description: HTCondor has no quotes for what is in it.',
    remedy: 'Change the option or the name that the message shows.',
  },
  'htcondor-fenced': {
    meaning: 'An attempt at the worker had been given up before it was sent; nothing was submitted.',
    remedy: 'Nothing to do: it is tried again.',
  },
  'htcondor-submit-lives': {
    meaning:
      'Something of an earlier submission may still arrive: its `condor_submit` does not end, or a job of it cannot be removed.',
    remedy:
      'See the message for the process or the schedd; the worker waits, and nothing is submitted twice.',
  },
  'htcondor-submit-elsewhere': {
    meaning:
      'A `condor_submit` was started on another machine, from where the state directory was taken; whether it still runs cannot be seen here.',
    remedy: 'End it there, then remove the file that the message names.',
  },
  'htcondor-held-limit': {
    meaning: 'As many jobs of the queue are held as `maxHeldJobs` allows.',
    remedy: '`condor_q -hold` shows why; release or remove them.',
  },
  'htcondor-held': {
    meaning: 'The job was held for longer than `heldTimeout`, or for a reason that no waiting mends.',
    remedy: 'See the message, which has the reason of HTCondor.',
  },
  'htcondor-removed': {
    meaning: 'The job was removed from the queue: by its `periodic_remove`, an operator, or the factory.',
    remedy: 'See the message, which has the reason of HTCondor.',
  },
  'htcondor-input': {
    meaning: 'HTCondor could not bring the files of the job to its machine, or read them.',
    remedy: 'See the message for the file; check `executableFile`, `transfer_input_files` and permissions.',
  },
  'htcondor-output': {
    meaning: 'HTCondor could not bring the output of the job back, or write it.',
    remedy: 'See the message for the file; check that `logDir` exists, and its owner and space.',
  },
  'htcondor-start': {
    meaning: 'HTCondor could not start the pilot.',
    remedy: 'See the message; often a program that is missing or may not be executed, or a container image.',
  },
  'htcondor-credential': {
    meaning: 'The proxy or token of the job is missing, over, or refused by the CE.',
    remedy: 'Look at what renews it: `thresher credentials`.',
  },
  'htcondor-ce': {
    meaning: 'The CE does not know the job, cannot be reached, or refused it.',
    remedy: 'See the message; look at the CE, and whether its queue takes such jobs.',
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

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcondorWorkerErrors> {}
}
