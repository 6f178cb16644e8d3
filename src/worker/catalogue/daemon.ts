import type { Explanation } from './explanation.ts';

/** What keeps a daemon from starting. */
export const daemonErrors = {
  'already-running': {
    meaning: 'Another daemon works on this state directory.',
    remedy: 'Stop that one, or give this one another `--state-dir`.',
  },
  'log-file-unusable': {
    meaning: 'The daemon cannot write to `log.file`, so nobody would learn what it does.',
    remedy: 'Name a file in a directory that the user of the daemon may write to.',
  },
  'factory-id-changed': {
    meaning:
      '`master.factoryId` differs from the id in the state directory: living workers would be forgotten.',
    remedy: 'Set the old id again, or drain first and then remove the file `factory`.',
  },
} as const satisfies Record<string, Explanation>;
