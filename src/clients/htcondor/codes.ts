import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** What HTCondor's tools say, or why they say nothing. */
export const htcondorErrors = {
  'condor-no-tool': {
    meaning: 'A command of HTCondor is not there, or may not be executed.',
    remedy: 'Install HTCondor, or put the directory of its commands on the PATH of the daemon.',
  },
  'condor-schedd-unknown': {
    meaning: 'The collector knows no schedd of this name, or there is no local one.',
    remedy: 'Check `condorSchedd` and `condorPool` against `condor_status -schedd`.',
  },
  'condor-unreachable': {
    meaning: 'The collector or the schedd does not answer, or the connection broke.',
    remedy: 'Look whether its daemons run, and whether a firewall is between; it is tried again.',
  },
  'condor-auth': {
    meaning:
      'The schedd or collector does not accept who the daemon says it is, or that user may not do this.',
    remedy:
      'See the message; check the token directory (`condor_token_list`): a file that is not owned by the user of the daemon is skipped without a word.',
  },
  'condor-limit': {
    meaning:
      'The schedd takes no more jobs of this user or of one submit (`MAX_JOBS_PER_OWNER` and the like).',
    remedy: 'Lower `nQueueLimitWorker`, or ask who runs the schedd.',
  },
  'condor-disk-full': {
    meaning: 'There is no room on the disk of the schedd, or on ours.',
    remedy: 'Make room in the spool of the schedd, or in the directory named.',
  },
  'condor-submit-wrong': {
    meaning: 'HTCondor cannot read what was submitted; the message names the line.',
    remedy: 'Mend the template; `condor_submit -dry-run - FILE` shows what HTCondor makes of it.',
  },
  'condor-constraint-wrong': {
    meaning: 'HTCondor cannot read an expression that jobs are chosen with.',
    remedy: 'See the message for the expression.',
  },
  'condor-timeout': {
    meaning: 'A command of HTCondor did not end in time and was killed; what it asked for may still be done.',
    remedy: 'Look whether the schedd hangs; nothing is done twice.',
  },
  'condor-given-up': {
    meaning:
      'A command of HTCondor was given up by the daemon before it ended, for instance because it stops.',
    remedy: 'Nothing to do.',
  },
  'condor-no-job': {
    meaning: 'The job is not in the queue of the schedd, or does not run.',
    remedy: 'None needed where it was to be removed; else it has ended.',
  },
  'condor-failed': {
    meaning: 'A command of HTCondor failed for another reason.',
    remedy: 'See its own words in the message.',
  },
  'condor-answer': {
    meaning: 'What a command of HTCondor wrote cannot be read, or is cut off. Nothing is concluded from it.',
    remedy: 'Run the command of the message by hand as the user of the daemon.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcondorErrors> {}
}
