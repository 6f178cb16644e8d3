import { eventRows } from '../src/plugins/htcondor/state/events.ts';
import { holdRules } from '../src/plugins/htcondor/state/hold-rules.ts';
import { defaultQueueTimeLimit } from '../src/plugins/htcondor/schema.ts';
import { stateRows } from '../src/plugins/htcondor/state/job-state.ts';

/** docs/htcondor-states.md: the tables by which a job of HTCondor becomes a worker's state. */
export function htcondorStatesPage(): string {
  const row = (...cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# States of jobs of HTCondor',
    '',
    '<!-- Generated from the sources by `npm run docs`. -->',
    '',
    'A worker on HTCondor is one job. thresher reads one status from its ClassAd, in the queue or in the history. In each',
    'table the first match counts. Node and times come from HTCondor; an end that it has before the submission or the start, or',
    'in the future, is put between these and now. A job that was removed, or that a signal ended, is',
    'never a success.',
    '',
    '## States',
    '',
    row('Job', 'Worker status', 'Native status'),
    row('---', '---', '---'),
    ...stateRows.map(({ seen, status, native }) => row(seen, `\`${status}\``, `\`${native}\``)),
    '',
    'With any other `JobStatus`, or none, the state is unknown, and the worker stays as it was.',
    '',
    '## Failures',
    '',
    'The exit status of a worker is that of its pilot, and 128+n if signal n ended it. Errors: `exit-status` (with',
    "`payloadType: atlas_pilot_wrapper` exit statuses 1, 2, 64 and 80 have Harvester's texts), `exit-status-lost` if the ad",
    'has no `ExitCode`, and `htcondor-removed` for a removed job, with `RemoveReason` and the last reason for a hold.',
    '',
    '## Held jobs',
    '',
    'HTCondor may release a held job, so its worker waits with it, until thresher gives it up: thresher then removes the job, and the',
    'worker has the status and the code. The time counts from `EnteredCurrentStatus`. `thresher worker ID` shows',
    '`HoldReason`, `HoldReasonCode` and `HoldReasonSubCode`.',
    '',
    row('Reason', 'Given up', 'Worker status', 'Code'),
    row('---', '---', '---', '---'),
    ...holdRules
      .filter(({ seen }) => seen !== '')
      .map(({ seen, after, status, code }) => {
        if (after === 'wait') return row(seen, 'never', '', '');
        const when = after === undefined ? 'after `heldTimeout`' : 'at once';
        return row(seen, when, `\`${status}\``, `\`${code}\``);
      }),
    '',
    '## Waiting jobs',
    '',
    'thresher gives up a job that the queue shows as idle (`JobStatus` 1) for `queueTimeLimit`: it removes the job, and the worker has failed',
    '(`htcondor-queue-time`). The time counts from `EnteredCurrentStatus` by the clock of the schedd, so a job that ran and was evicted counts from',
    'its return to the queue. A job of a grid universe is idle while it waits at its CE (`GridJobStatus` says how). A job that starts at that moment',
    'goes on, and while the schedd does not answer no job is given up. After an hour `thresher worker ID` shows since when a job waits (`Waiting`).',
    'One that never started, and has waited for five minutes, is compared with the machines that the collector knows, every ten minutes anew: where it asks for more cores, GPUs or memory than any has, its native status is `too-large`, and `Waiting` says so. It waits on, since such a machine may join.',
    '',
    `The limit is ${defaultQueueTimeLimit} s for pilots: workers that a source asks for by number or the PanDA server orders. Other workers may wait for as long`,
    'as they like: HTCJobs, Pods of interLink, requests of operators, those of `htcondor-idle` and of other sources that name their workers, and',
    'jobs whose mark does not say which they are. A `queueTimeLimit` in the monitor section is for all jobs of its queue; 0 is no limit.',
    '',
    '## Events',
    '',
    "If thresher also reads a log of job events, an event changes the job's known ad, and the tables above judge the ad.",
    'After event 5 or 9 the ad changes no more, but for a later start (event 1). Other events than these change nothing.',
    '',
    'Events 5 and 9 end no worker by themselves: HTCondor runs a job again whose shadow or schedd broke behind them. They count as soon as a',
    'question to the queue that began after they were read agrees: the job is not there any more (how it ended is what the log said), or',
    'is there with `JobStatus` 4. Until then the worker is what the queue says. After five minutes of that the end counts no more, and the daemon',
    'warns (`htcondor-end-contradicted`); a job that is there as removed waits until it has left.',
    '',
    'An end becomes doubtful where the log tells more of the job behind it, where it was read while the schedd had another queue, and where the',
    'queue says anything else meanwhile than that the job runs or brings back its output (event 5) or is being removed (9), or says that for',
    'more than ten seconds. How a doubtful one ended is what the history',
    'says, and what the log said where the history does not know the job.',
    '',
    row('Event', 'Meaning'),
    row('---', '---'),
    ...Object.values(eventRows).map(({ number, seen }) => row(String(number), seen)),
    '',
  ].join('\n');
}
