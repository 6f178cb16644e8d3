import type { Explanation } from './explanation.ts';

/** Errors that keep a daemon from starting. */
export const daemonErrors = {
  'already-running': {
    meaning:
      'Another daemon works on this state directory, or has the factory in PostgreSQL while a command needs it for itself.',
    remedy:
      'Stop that daemon, or give this one another `--state-dir`. A second daemon on the same PostgreSQL database needs a state directory of its own.',
  },
  'log-file-unusable': {
    meaning: 'The daemon cannot write to `log.file`, so its log would be lost.',
    remedy: 'Name a file in a directory that the user of the daemon may write to.',
  },
  'factory-id-changed': {
    meaning:
      '`master.factoryId` differs from the id in the state directory: thresher would forget all living workers.',
    remedy:
      'Set the old id again, or drain first and then remove the file `factory`, and write the new id into `.thresher-factory` in each `workDir` of local workers.',
  },
  'factory-file-damaged': {
    meaning:
      'The file `factory` of the state directory holds no factory id: it is empty, damaged, or no plain file. With a new id thresher would forget all living workers.',
    remedy:
      'Write the id that the message names into the file; thresher takes that id from the database, if there is one.',
  },
  'factory-id-contradicted': {
    meaning:
      'The file `factory` and the database of the state directory belong to different factories, or the database belongs to several and the file is missing.',
    remedy: 'Write the id that the message names into the file, or put the right database in its place.',
  },
  'access-point-foreign': {
    meaning:
      'The mark of an object on a backend names an access point that the configuration of its queue does not give the worker. Anyone with rights on the object can edit the mark, so thresher neither makes nor removes that directory. The `accessPoint` of the queue may also have been changed since the worker was made and its row lost.',
    remedy: 'Look at the directory in the log line, and remove it by hand if it is of the worker.',
  },
  'factory-shared': {
    meaning:
      'thresher found workers with the mark of this factory that this daemon did not make: another daemon works with the same factory id and another state directory. Each fills its queues by itself, beyond the limits.',
    remedy:
      'Stop one of the two; the other follows its workers. To run both, give one another `master.factoryId` and an empty state directory.',
    note: true,
  },
  'service-failing': {
    meaning: 'A part of the daemon does not do its work, and says nothing of the reason.',
    remedy: "See the daemon's log.",
  },
} as const satisfies Record<string, Explanation>;
