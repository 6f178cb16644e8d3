import { eventRows } from '../src/plugins/htcondor/state/events.ts';
import { holdRules } from '../src/plugins/htcondor/state/hold-rules.ts';
import { stateRows } from '../src/plugins/htcondor/state/job-state.ts';

/** docs/htcondor-states.md: the tables by which a job of HTCondor becomes a worker's state. */
export function htcondorStatesPage(): string {
  const row = (...cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# States of jobs of HTCondor',
    '',
    '<!-- Generated from the sources by `npm run docs`. -->',
    '',
    'A worker on HTCondor is one job. What its ClassAd shows, from the queue or from the history, becomes one status; in each',
    'table the first match counts. Node and times are those of HTCondor. A job that was removed or ended by a signal is',
    'never a success.',
    '',
    '## States',
    '',
    row('What is seen', 'Worker status', 'Native status'),
    row('---', '---', '---'),
    ...stateRows.map(({ seen, status, native }) => row(seen, `\`${status}\``, `\`${native}\``)),
    '',
    'Any other `JobStatus`, or none: nothing is known, and the worker stays as it was.',
    '',
    '## Failures',
    '',
    'The exit status of a worker is that of its pilot, and 128+n where signal n ended it. Errors: `exit-status` (with',
    "`payloadType: atlas_pilot_wrapper` exit statuses 1, 2, 64 and 80 have Harvester's texts), `exit-status-lost` where the ad",
    'has no `ExitCode`, and `htcondor-removed` for a removed job, with `RemoveReason` and the last reason for a hold.',
    '',
    '## Held jobs',
    '',
    'A held job may be released again, so its worker waits with it, until it is given up: the job is then removed, and the',
    'worker has the status and the code. The time counts from `EnteredCurrentStatus`. `thresher worker ID` shows',
    '`HoldReason`, `HoldReasonCode` and `HoldReasonSubCode`.',
    '',
    row('Reason', 'Given up', 'Worker status', 'Code'),
    row('---', '---', '---', '---'),
    ...holdRules
      .filter(({ seen }) => seen !== '')
      .map(({ seen, after, status, code }) => {
        if (after === 'wait') return row(seen, 'never', '', '');
        const when =
          after === undefined ? 'after `heldTimeout`' : after === 0 ? 'at once' : `after ${after} s`;
        return row(seen, when, `\`${status}\``, `\`${code}\``);
      }),
    '',
    '## Events',
    '',
    "Where a log of job events is read, too, an event changes what is known of the job's ad, and the tables above judge",
    'that. After 5 or 9 nothing changes it any more; events that are not here change nothing.',
    '',
    row('Event', 'What it means'),
    row('---', '---'),
    ...Object.values(eventRows).map(({ number, seen }) => row(String(number), seen)),
    '',
  ].join('\n');
}
