import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of the jobs of HTCJobs and of their events. */
export const htcjobJobErrors = {
  'htcjob-event-key': {
    meaning: 'thresher cannot use the file with the key that signs the tokens of HTCJobs.',
    remedy:
      'See the message; write 32 or more random bytes into the file, and let the user of the daemon read it.',
  },
  'htcjob-event': {
    meaning:
      'thresher refused an event of a job: it is no CloudEvent of a HTCJob, or has no token of its job.',
    remedy:
      'See the message. Nothing is to be done where a stranger sent it; if all events are refused, the key of the tokens has changed.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcjobJobErrors> {}
}
