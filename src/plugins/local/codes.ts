import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** The work directory of local workers; workers.ts has the codes that other backends share. */
export const localWorkerErrors = {
  'local-root-lost': {
    meaning:
      'The work directory of local workers vanished, or another one is in its place: a mount is missing, or it was removed. Its workers may live; nothing is concluded of them, and nothing is submitted or removed.',
    remedy:
      'Mount it again or put it back. If it is gone for good, end what lives of its workers and remove the file that the message names: thresher then begins anew in what is there.',
  },
  'local-directory-damaged': {
    meaning:
      'Something in the work directory is not what thresher wrote there, or is gone: it is left as it is, and the other workers go on. A worker that still has processes is followed by them.',
    remedy:
      'Look at the path that the message names; remove it by hand once nothing of it is needed. `thresher orphans` lists directories that cannot say whose they are.',
  },
  'pid-namespace-failed': {
    meaning:
      'The PID namespace of a local worker could not be made or entered, so its command never began: a limit on namespaces or processes is reached, or an administrator forbade them since they were tried.',
    remedy:
      "See the worker's stderr. thresher tries namespaces again before it submits the next: where none can be made, `pidNamespace` says whether workers go without.",
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof localWorkerErrors> {}
}
