import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Why a queue gets no workers from the PanDA server. */
export const pandaReasons = {
  'panda-starting': {
    meaning:
      'The link to the PanDA server has just started: thresher asks which worker ids the server knows before it makes workers for it.',
    remedy: 'Wait a moment. If the server does not answer, the message says so.',
  },
  'panda-no-order': {
    meaning:
      'The PanDA server has given no order for the site of the queue, or none for 15 minutes. It orders workers only for queues of type unified with the workflow `pull_ups`, whose `harvester` in CRIC is the id of this instance, and whose statistics are at most an hour old.',
    remedy:
      'Compare `harvester` of the queue in CRIC with `master.harvester_id`; orders come each 5 minutes. `thresher panda` shows when statistics were taken last.',
  },
  'panda-order-zero': {
    meaning: 'The last order of the PanDA server asks for no new worker.',
    remedy: 'Nothing to do: the server orders workers when it has jobs for the site.',
    ordinary: true,
  },
  'panda-order-fulfilled': {
    meaning: 'Every worker that the last order of the PanDA server asks for was made.',
    remedy: 'Nothing to do: the next order comes within 5 minutes.',
    ordinary: true,
  },
  'panda-jobs-unknown': {
    meaning:
      'The queue counts the activated jobs of its site itself (`runMode: self`), and the PanDA server has not told their number, or not for an hour.',
    remedy: 'See the message, and `thresher panda` for the calls of the server that fail.',
  },
  'panda-jobs-served': {
    meaning: 'As many workers are queued as the site has activated jobs.',
    remedy: 'Nothing to do.',
    ordinary: true,
  },
  'panda-queue-unserved': {
    meaning:
      'Workers of the queue need jobs that the factory fetches (`mapType` is not `NoJob`), which thresher does not do.',
    remedy: 'Set `"mapType": "NoJob"` if its pilots fetch their own jobs, or leave the queue to Harvester.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof pandaReasons> {}
}
