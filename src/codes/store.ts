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
  'store-unreachable': {
    meaning:
      'PostgreSQL does not answer, or ended the connection. thresher submits nothing meanwhile, and loses nothing.',
    remedy: 'See the message, and the log of PostgreSQL; the daemon goes on by itself once it answers.',
  },
  'store-login': {
    meaning: 'PostgreSQL refuses the login, or the database is not there.',
    remedy:
      'Check `database.url` and `database.passwordFile`, and `pg_hba.conf` on the server. `docs/scale-out.md` says how to make the database.',
  },
  'store-unfit': {
    meaning: 'thresher cannot use this PostgreSQL server, or not through this pooler.',
    remedy:
      'Use PostgreSQL 14 or newer with the encoding UTF8, directly or through a pooler in session mode.',
  },
  'store-outcome-unknown': {
    meaning: 'PostgreSQL was lost before it said whether it had written. The daemon ends.',
    remedy:
      'None where the service manager starts the daemon again, as the units of thresher do: it settles everything that is open.',
  },
  'store-promoted': {
    meaning:
      'PostgreSQL failed over: the address leads to a server that was promoted, or restored from a backup, while the daemon ran. That server may lack the last commits, so the daemon ends.',
    remedy:
      'None where the service manager starts the daemon again, as the units of thresher do: it finds workers without a row by their marks.',
  },
  'store-taken': {
    meaning:
      'Another daemon of this factory has taken over, since this one did not renew its lease in time: it was paused, cut off, or very slow. This one ends, and the service manager starts it as a standby.',
    remedy:
      'None, if the two are meant to stand in for each other. Otherwise look for what held it up: the load of its machine, the network, the database.',
  },
  'lease-expired': {
    meaning:
      'The daemon could not renew its lease in PostgreSQL in time, so another one may have the factory. It begins nothing more until it knows.',
    remedy: 'Make the database reachable. The daemon goes on by itself, or ends if a standby has taken over.',
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
  'copy-target': {
    meaning: 'thresher cannot copy the database there, and has changed nothing.',
    remedy: 'Name an empty database: `thresher db copy` never mixes rows.',
  },
  'copy-failed': {
    meaning: 'The copy of the database is not what it was made of. Nothing is left of the copy.',
    remedy: 'See the message; the first database is unchanged.',
  },
  'store-row': {
    meaning: 'The database does not take a row for what is in it.',
    remedy:
      'See the message. If the row was made of an object on a backend (`thresher orphans` names it), see what its mark says: somebody changed it, or copied the object.',
  },
  'store-failed': {
    meaning: 'The database refused an operation for another reason.',
    remedy: 'See the message.',
  },
} as const satisfies Record<string, Explanation>;
