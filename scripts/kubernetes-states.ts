import { failureCauses } from '../src/plugins/kubernetes/state/failure-causes.ts';
import { pendingRules } from '../src/plugins/kubernetes/state/pending-rules.ts';
import { stateRows } from '../src/plugins/kubernetes/state/pod-state.ts';

/** docs/kubernetes-states.md: the tables by which a Job and its Pods become a worker's state. */
export function kubernetesStatesPage(): string {
  const row = (...cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# What Jobs and Pods mean',
    '',
    '<!-- Generated from the sources by `npm run docs`. -->',
    '',
    'A worker on Kubernetes is one Job. What the Job and its newest Pod show becomes one status; all conditions are looked at,',
    'in whatever order they stand. In each table the first match counts. Node, times and exit status are those of the cluster:',
    "of the pilot's container, which is the first, or the one named in the queue (`pilotContainer`).",
    '',
    '## States',
    '',
    row('What is seen', 'Worker status', 'Native status'),
    row('---', '---', '---'),
    ...stateRows.map(({ seen, status, native }) =>
      row(seen, `\`${status}\``, typeof native === 'string' ? `\`${native}\`` : 'the reason'),
    ),
    '',
    'Neither Job nor Pod: looked up once more by name, and only then `missed` (`lost`).',
    '',
    '## Waiting',
    '',
    'What a worker waits for, and when it is given up. Its Job is then deleted, and the worker has `failed` with the code.',
    'The time counts from when the reason may first have been there. `pendingRules` of the queue go first; what no rule',
    'names waits until `podQueueTimeLimit` (`k8s-queue-time`), counted from the creation of the Pod, or of the Job where there is',
    'none. A suspended Job waits as long as it is suspended.',
    '',
    row('Reason', 'After', 'Then', 'Code', 'Why'),
    row('---', '---', '---', '---', '---'),
    ...pendingRules.map(({ reason, graceSeconds, then, code, about }) =>
      row(
        reason.source
          .replace(/^\^\(?|\)?\$$/g, '')
          .split('|')
          .map((name) => `\`${name}\``)
          .join(', '),
        then === 'wait' ? '' : `${graceSeconds} s`,
        then,
        then === 'wait' ? '' : `\`${code}\``,
        about,
      ),
    ),
    '',
    '## Failures',
    '',
    'Why a worker has failed. A pilot that ends with exit status 0 has finished, also when a process of it was killed for',
    "memory on the way. With `payloadType: atlas_pilot_wrapper` exit statuses 1, 2, 64 and 80 have Harvester's texts.",
    '',
    row('What is seen', 'Code'),
    row('---', '---'),
    ...failureCauses.map(({ seen, code }) => row(seen, `\`${code}\``)),
    '',
  ].join('\n');
}
