import { failureCauses } from '../src/plugins/kubernetes/state/failure-causes.ts';
import { pendingRules } from '../src/plugins/kubernetes/state/pending-rules.ts';
import { stateRows } from '../src/plugins/kubernetes/state/pod-state.ts';

/** docs/kubernetes-states.md: the tables by which a Job and its Pods become a worker's state. */
export function kubernetesStatesPage(): string {
  const row = (...cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# States of Jobs and Pods',
    '',
    '<!-- Generated from the sources by `npm run docs`. -->',
    '',
    'A worker on Kubernetes is one Job. thresher reads one status from the Job and its newest Pod. It looks at all conditions,',
    'in any order. In each table the first match counts. Node, times and exit status come from the cluster:',
    "from the pilot's container, which is the first one, or the one that the queue names (`pilotContainer`).",
    '',
    '## States',
    '',
    row('Job and Pod', 'Worker status', 'Native status'),
    row('---', '---', '---'),
    ...stateRows.map(({ seen, status, native }) =>
      row(seen, `\`${status}\``, typeof native === 'string' ? `\`${native}\`` : 'the reason'),
    ),
    '',
    'If thresher sees neither Job nor Pod, it looks both up by name. Only then the worker is `missed` (`lost`).',
    '',
    '## Waiting',
    '',
    'A waiting worker has a reason, and some reasons have an end: thresher then deletes the Job, and the worker has `failed` with the code.',
    'The time counts from the first moment at which the reason may have been there. `pendingRules` of the queue come first. A worker',
    'whose reason no rule names waits until `podQueueTimeLimit` (`k8s-queue-time`), counted from the creation of the Pod, or of the Job if it has',
    'no Pod. A suspended Job waits as long as it is suspended. Of a Pod that a watch told of, no more counts than has passed here since; a daemon',
    'that starts takes the time of the Pod at its first look, also where that is of a clock that was behind, and is right by now.',
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
    'Causes for which a worker has failed. A pilot that ends with exit status 0 has finished, also when a process of it was killed for',
    "memory on the way. With `payloadType: atlas_pilot_wrapper` exit statuses 1, 2, 64 and 80 have Harvester's texts.",
    '',
    row('Job and Pod', 'Code'),
    row('---', '---'),
    ...failureCauses.map(({ seen, code }) => row(seen, `\`${code}\``)),
    '',
  ].join('\n');
}
