import type { Explanation } from './explanation.ts';

/** What became of a worker. */
export const workerErrors = {
  'submit-failed': {
    meaning: 'The backend refused the worker, as often as `maxSubmissionAttempts` allows.',
    remedy: 'See the message.',
  },
  'never-started': {
    meaning: 'The submission left nothing behind (the daemon died in it, or the backend lost it).',
    remedy: 'Nothing to do: another takes its place.',
  },
  'no-free-slot': {
    meaning: 'The last free slot of this machine went to another queue in the same moment.',
    remedy: 'Nothing to do: it is tried again.',
  },
  'spawn-failed': {
    meaning: 'The process could not be started.',
    remedy: 'See the message: a process limit, missing memory or a missing directory.',
  },
  'access-point-failed': {
    meaning: "The worker's accessPoint directory could not be made.",
    remedy: 'Check owner, permissions and space.',
  },
  'exit-status': {
    meaning: 'The worker ended with an exit status other than 0; 128+n usually means signal n.',
    remedy: '`thresher logs ID` and `thresher logs ID --stderr`.',
  },
  'exit-status-lost': {
    meaning:
      'The worker is gone and left no exit status: the machine restarted, or it was killed from outside.',
    remedy: "Look at the machine's log for a restart or the out-of-memory killer.",
  },
  walltime: {
    meaning: 'The worker ran longer than its `maxWalltime` and was ended.',
    remedy: 'Raise `maxWalltime` if that is too short.',
  },
  killed: {
    meaning: 'An operator or the factory asked for its end.',
    remedy: 'None needed.',
  },
  'ended-unseen': {
    meaning:
      'The backend did not know the worker any more when the daemon first looked: the worker ended, or another client removed it from the backend, while no daemon ran or after the backup that the database was restored from. Throttlers do not count the worker.',
    remedy:
      'None needed after a restore or a long stop; otherwise find the client that removes workers from the backend.',
  },
  'late-creation': {
    meaning:
      'The worker ended, and an earlier request to create it may still reach the backend. What turns that away stays until then, also where `sweeper.keepFinished` and its like are shorter.',
    remedy: 'Nothing to do: the next sweep looks again, within a few minutes.',
  },
  'worker-unreachable': {
    meaning:
      'The worker is on a connection to which no configuration leads any more: no queue of the file, and no earlier configuration in the database. thresher can neither see nor end it.',
    remedy:
      'Put a queue with this connection into the queue file (`queueStatus: offline` will do, so that it submits nothing): thresher then ends the worker if its end was asked for. Or end it on the backend by hand.',
  },
  lost: {
    meaning: 'The backend no longer knows the worker, and a fresh look by name confirmed it.',
    remedy: 'Somebody removed it behind the factory, or the backend lost it.',
  },
} as const satisfies Record<string, Explanation>;
