import type { Explanation } from './explanation.ts';

/** Faults of the state directory and the database. */
export const storeErrors = {
  'state-dir-network': {
    meaning: 'The state directory is on a network file system, where SQLite loses data.',
    remedy: 'Choose a local disk with `master.stateDir` or `--state-dir`.',
  },
  'state-dir-unusable': {
    meaning: 'thresher cannot make the state directory, or cannot write to it.',
    remedy: 'Check its owner and permissions, and that the disk is mounted read-write.',
  },
  'store-full': {
    meaning: 'The disk with the database is full. thresher submits nothing meanwhile, and loses nothing.',
    remedy: 'Free space; the daemon goes on by itself.',
  },
  'store-readonly': {
    meaning: 'thresher cannot write to the database.',
    remedy: 'Check owner and permissions of the state directory and that the disk is mounted read-write.',
  },
  'store-corrupt': {
    meaning: 'The database file is damaged or is not a database.',
    remedy: 'Move it away and start again: thresher finds living workers by their mark and adopts them.',
  },
  'store-newer': {
    meaning: 'A newer version of thresher wrote the database.',
    remedy: 'Start that version again, or give this one another state directory.',
  },
  'store-missing': {
    meaning: 'The state directory has no database: no daemon ever ran there.',
    remedy: 'Check `--config` and `--state-dir`, or start the daemon.',
  },
  'store-inconsistent': {
    meaning: '`thresher db check` found faults; each is on the standard output.',
    remedy:
      'For damage, and for rows that contradict each other: stop the daemon and restore a backup, or move the database away. For a wrong version: start the daemon that fits.',
  },
  'backup-target': {
    meaning: 'thresher cannot write a backup to this file, and has changed nothing.',
    remedy: 'Name a new file in an existing directory, or use `--force` to replace an older backup.',
  },
  'backup-failed': {
    meaning: 'thresher could not write the backup. An older one of this name is unchanged.',
    remedy: 'See the message; usually the disk is full.',
  },
  'store-failed': {
    meaning: 'The database refused an operation for another reason.',
    remedy: 'See the message.',
  },
} as const satisfies Record<string, Explanation>;
