import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** The work directory, slots and PID namespaces of local workers; `codes/workers.ts` has the codes that other backends share. */
export const localWorkerErrors = {
  'local-root-lost': {
    meaning:
      'The work directory of local workers vanished, or another one is in its place: a mount is missing, or the directory was removed. Its workers may live, so thresher concludes, submits and removes nothing.',
    remedy:
      'Mount the directory again or put it back. If it is gone for good, end its living workers and remove the file that the message names: thresher then begins with the directory that is there.',
  },
  'local-root-of-other-factory': {
    meaning:
      'The work directory of local workers is of another factory, or has workers of several. Each would take the workers of the other for its own, end them and remove them. thresher concludes, submits and removes nothing there.',
    remedy:
      'Give each factory a `workDir` of its own. If none of the workers of the other one lives, or if this is the same factory under a new id, write the id of this factory into the file that the message names.',
  },
  'local-directory-damaged': {
    meaning:
      'A file or directory in the work directory is missing, or has a content that thresher did not write. thresher leaves it as it is and goes on with the other workers. It follows a worker that still has processes by these.',
    remedy:
      'Look at the path that the message names, and remove it by hand once you no longer need it. `thresher orphans` lists directories without a readable worker id.',
  },
  'local-not-ending': {
    meaning:
      'Processes of a worker that is to end live on after its grace: the kernel waits for a disk, or they became another user, as by sudo, and thresher may not signal them. The worker counts as living until they are gone.',
    remedy: 'End the processes that the message names as root; if they wait for a disk, see to it first.',
  },
  'pid-namespace-failed': {
    meaning:
      'thresher could not make or enter the PID namespace of a local worker, so the command of the worker never began. The machine reached a limit on namespaces or processes, or an administrator has forbidden namespaces since the last trial.',
    remedy:
      "See the worker's stderr. thresher tries namespaces again before it submits the next worker; if it cannot make any, `pidNamespace` says whether workers run without.",
  },
  'no-free-slot': {
    meaning: 'Another queue took the last free slot of this machine in the same moment.',
    remedy: 'Nothing to do: thresher tries the worker again.',
  },
  'needs-too-large': {
    meaning: 'The worker needs more cores than `maxSlots`, or more memory than `maxMemory`, of its queue.',
    remedy: 'Ask for less by a new request, or raise `maxSlots` or `maxMemory`.',
  },
  'spawn-failed': {
    meaning: 'thresher could not start the process.',
    remedy: 'See the message: a process limit, missing memory or a missing directory.',
  },
  'pid-namespace-missing': {
    meaning:
      'thresher cannot make PID namespaces for local workers here. A worker can see and end all processes of its user. The PanDA pilot ends orphans that way, the daemon among them, unless `PILOT_NOKILL` is set, as it is by default.',
    remedy:
      'Run workers as a user of their own, or let the kernel make namespaces (`user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`); `"pidNamespace": "none"` silences this note.',
    note: true,
  },
  'pid-namespace-required': {
    meaning:
      '`pidNamespace` is `required`, and thresher cannot make PID namespaces here. It submits nothing.',
    remedy:
      'See the message for the cause; let the kernel make namespaces (`user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`), install util-linux, or set `"pidNamespace": "auto"`.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof localWorkerErrors> {}
}
