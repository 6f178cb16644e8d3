import type { Explanation } from './explanation.ts';

/** Errors of workers of any backend. */
export const workerErrors = {
  'submit-failed': {
    meaning: 'The backend refused the worker `maxSubmissionAttempts` times.',
    remedy: 'See the message.',
  },
  'never-started': {
    meaning:
      'The submission created nothing on the backend: the daemon died during it, or the backend lost it.',
    remedy: 'Nothing to do: another worker takes its place.',
  },
  'payload-lost': {
    meaning:
      'The database has no payload for the worker any more, or not all of it, and no attempt had started the worker. A backup leaves secret files out, so this happens after a restore, or when the database was deleted.',
    remedy: 'Ask for the work again: a request by a new name gets a new worker.',
  },
  'access-point-failed': {
    meaning: "thresher could not make the worker's accessPoint directory.",
    remedy: 'Check the owner, the permissions and the free space of its parent directory.',
  },
  'exit-status': {
    meaning: 'The worker ended with an exit status other than 0; 128+n usually means signal n.',
    remedy: 'See `thresher logs ID` and `thresher logs ID --stderr`.',
  },
  'exit-status-lost': {
    meaning:
      'The worker is gone and left no exit status: the machine restarted, or a process other than thresher killed the worker.',
    remedy: "Look at the machine's log for a restart or the out-of-memory killer.",
  },
  walltime: {
    meaning: 'The worker ran longer than its `maxWalltime`, so thresher ended it.',
    remedy: 'Raise `maxWalltime` if that is too short.',
  },
  killed: {
    meaning: 'An operator or the factory ended the worker.',
    remedy: 'None needed.',
  },
  'ended-unseen': {
    meaning:
      'The backend did not know the worker any more when the daemon first looked. The worker ended, or another client removed it, while no daemon ran or after the backup that the database was restored from. Throttlers do not count the worker.',
    remedy:
      'None needed after a restore or a long stop; otherwise find the client that removes workers from the backend.',
  },
  'late-creation': {
    meaning:
      'The worker ended, and an earlier request to create it may still reach the backend. thresher keeps the object that rejects this request until then, even if `sweeper.keepFinished` and its like are shorter.',
    remedy: 'Nothing to do: the next sweep looks again, within a few minutes.',
  },
  'output-awaited': {
    meaning:
      'The worker ended, and left an output that its source has not taken yet, or that cannot be fetched from its schedd yet. thresher keeps the worker for that, for 10 days at most, even if `sweeper.keepFinished` and its like are shorter.',
    remedy:
      'The message has the words of `condor_transfer_data` where a fetch failed: a full disk, a directory that is not there, a token that has expired. Otherwise see the source for the reason: `thresher htcjob show` says it for a HTCJob. Each sweep tries again.',
  },
  'sweep-awaited': {
    meaning: 'The worker ended, its source needs nothing more of it, and no sweep has come to it yet.',
    remedy: 'Nothing to do: the next sweep of its queue removes it, if the queue is in the queue file.',
  },
  'end-unclear': {
    meaning:
      'A worker was to end, and its backend does not have it any more; but what it says of its end is a status of a living worker. The worker counts as living.',
    remedy:
      'See the message, and the job in the history of the backend (`condor_history`). thresher asks again; correct the history, or remove the entry, and the worker ends.',
  },
  'worker-unreachable': {
    meaning:
      'No configuration leads to the connection of the worker any more: no queue of the file, and no earlier configuration in the database. thresher can neither see nor end the worker.',
    remedy:
      'Put a queue with this connection into the queue file (with `queueStatus: offline`, so that it submits nothing): thresher then carries out a requested end of the worker. Or end the worker on the backend by hand.',
  },
  'payload-wrong': {
    meaning:
      'A payload has a wrong form: a name that leads out of its directory, a text with a NUL character, two files of one name. thresher starts no worker with it.',
    remedy:
      'The message names the place in the payload and what would be right. Correct the request, and ask again.',
  },
  'payload-too-large': {
    meaning:
      'A payload is larger than every backend takes: 1 MiB in all, 100 files, 100,000 bytes in arguments and variables.',
    remedy:
      'Send less: let the worker fetch large files, pack many into an archive, and put long arguments into a file.',
  },
  'payload-value-missing': {
    meaning:
      'The template of the queue names `${payload.KEY}`, and the payload of the worker has no such value. A worker without a payload has none.',
    remedy:
      'Ask for the worker with this value, or remove the placeholder from the template. Only a source that gives payloads can use such a queue.',
  },
  lost: {
    meaning: 'The backend no longer knows the worker, and a fresh look by name confirmed it.',
    remedy:
      'Find the user or program that removed the worker from the backend; otherwise the backend lost it.',
  },
} as const satisfies Record<string, Explanation>;
