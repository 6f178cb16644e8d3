import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';
import { decideReasons } from './decide-codes.ts';

/** Why a queue gets no workers, or fewer, on the demand of a HTCondor pool. */
export const idleReasons = {
  'htcondor-idle-starting': {
    meaning:
      'thresher has just started, and has not looked at the whole pool yet. It asks for no worker before.',
    remedy: 'Wait for one `interval`. If the pool does not answer, the reasons beside this one say so.',
    ordinary: true,
  },
  'htcondor-idle-stale': {
    meaning:
      'The last look at the pool is older than two intervals. What it found may be wrong by now, so thresher asks for no worker.',
    remedy:
      'See the log for the commands of HTCondor that fail or hang, and try `condor_status` and `condor_q` as the user of the daemon.',
  },
  'htcondor-idle-unknown': {
    meaning:
      'A part of the pool gave no answer. What it would have said is unknown, which is not the same as none: nothing grows or shrinks because of it.',
    remedy: 'See the message, which has the words of HTCondor.',
  },
  'htcondor-idle-no-negotiator': {
    meaning:
      'The pool has no negotiator, or it has not ended a cycle yet. Jobs count only once a cycle has passed over them, so none counts.',
    remedy:
      'Wait for a cycle (`NEGOTIATOR_INTERVAL`); if none comes, look at the negotiator of the central manager.',
  },
  'htcondor-idle-schedd-missing': {
    meaning:
      'A schedd is not in the collector that the settings name, or that was there within the last hour. Its jobs are unknown, which is not the same as none.',
    remedy:
      'Start the schedd again, or correct `schedds` of `sources.htcondor-idle`. thresher forgets a schedd that was taken away after an hour.',
  },
  'htcondor-idle-left-out': {
    meaning:
      'A schedd has waiting jobs of more kinds than thresher compares in one look (5,000, shared out among their owners), jobs whose ads cannot be read or are too large, or jobs with which HTCondor fails or does not end when it evaluates what they ask for or matches them with a slot ad; or waiting jobs name more concurrency limits than thresher asks about. These jobs get no workers for now; one with which HTCondor fails is tried again after 20 looks.',
    remedy:
      'Mostly a job asks for something unique, such as its own number in `requirements`: see `condor_q -autocluster`. Else try `condor_q -better-analyze JOB`.',
  },
  'htcondor-idle-collector-young': {
    meaning:
      'The collector of the pool has started within the last `joinTimeout`. It does not know all machines again yet, so thresher adds none.',
    remedy: 'Nothing to do: the machines tell the new collector of themselves.',
    ordinary: true,
  },
  'htcondor-idle-not-joined': {
    meaning:
      'Workers run for longer than `joinTimeout`, and their startd has not joined the pool. They no longer count as capacity, and their failures count for the guard against black holes.',
    remedy:
      'Read `thresher logs ID` of the worker in the message: mostly a wrong token, a wrong `CONDOR_HOST`, or no route to the central manager.',
  },
  'htcondor-idle-slot-ad': {
    meaning: 'The slot ad of a shape cannot be read, or is none, so that nothing can be matched against it.',
    remedy: 'Write it with `thresher pool learn QUEUE`, once a worker of the queue has joined the pool.',
  },
  'htcondor-idle-no-shape': {
    meaning: 'The queue names no slot ad, so that thresher does not know which jobs its workers can take.',
    remedy: 'Set `slotAd` of `demand`, or `shapes`; `thresher pool learn QUEUE` writes the file.',
  },
  'htcondor-idle-no-token': {
    meaning:
      'thresher cannot make tokens for new workers with the signing key, and starts none without: they could not join the pool.',
    remedy: 'See the message: mostly a key that the user of the daemon cannot read.',
  },
  ...decideReasons,
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof idleReasons> {}
}
