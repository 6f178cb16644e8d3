import type { Explanation } from './explanation.ts';

/** What keeps the state from being kept. */
export const storeErrors = {
  'state-dir-network': {
    meaning: 'The state directory is on a network file system, where SQLite loses data.',
    remedy: 'Choose a local disk with `master.stateDir` or `--state-dir`.',
  },
  'state-dir-unusable': {
    meaning: 'The state directory cannot be made or written.',
    remedy: 'Check owner, permissions and that the disk is mounted read-write.',
  },
  'store-full': {
    meaning: 'The disk with the database is full. Nothing is submitted meanwhile and nothing is lost.',
    remedy: 'Free space; the daemon goes on by itself.',
  },
  'store-readonly': {
    meaning: 'The database cannot be written.',
    remedy: 'Check owner and permissions of the state directory and that the disk is mounted read-write.',
  },
  'store-corrupt': {
    meaning: 'The database file is damaged or is not a database.',
    remedy: 'Move it away and start again: living workers are found by their mark and adopted.',
  },
  'store-newer': {
    meaning: 'The database was written by a newer version of thresher.',
    remedy: 'Start that version again, or give this one another state directory.',
  },
  'store-missing': {
    meaning: 'There is no database in the state directory: no daemon ever ran there.',
    remedy: 'Check `--config` and `--state-dir`, or start the daemon.',
  },
  'store-inconsistent': {
    meaning: '`thresher db check` found something wrong; each finding is on the standard output.',
    remedy:
      'Damage, and rows that contradict each other: stop the daemon and restore a backup, or move the database away. A version: start the daemon that fits.',
  },
  'backup-target': {
    meaning: 'A backup cannot be written to this file. Nothing was touched.',
    remedy: 'Name a new file in a directory that is there, or `--force` to replace an older backup.',
  },
  'backup-failed': {
    meaning: 'A backup could not be written. An older one of this name is as it was.',
    remedy: 'See the message; usually the disk is full.',
  },
  'store-failed': {
    meaning: 'The database refused an operation for another reason.',
    remedy: 'See the message.',
  },
} as const satisfies Record<string, Explanation>;
