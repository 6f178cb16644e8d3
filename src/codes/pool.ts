import type { Explanation } from './explanation.ts';

/** Errors of `thresher pool`. */
export const poolErrors = {
  'pool-option': {
    meaning: 'An option of `thresher pool` has a value that cannot be.',
    remedy: 'Write the value that the message asks for.',
  },
  'pool-exists': {
    meaning: 'The directory for the key and the tokens of a pool is in use already.',
    remedy:
      'Use its files with `--apply`, name another directory with `--directory`, or make new ones with `--force`: all Pods of the pool need a restart then.',
  },
  'pool-files': {
    meaning: 'Key or tokens of a pool cannot be written or read.',
    remedy: 'See the message; the directory must belong to the user of the command, and be closed to others.',
  },
  'pool-refused': {
    meaning:
      'The API server refuses an object of the pool in a dry run, or a conflict would take fields from another program. thresher changed nothing.',
    remedy: 'Change the option that the message points at, or the object in the cluster.',
  },
  'pool-half-applied': {
    meaning: 'The API server took some objects of the pool and then failed.',
    remedy: 'Repeat the command: what is there already does not change.',
  },
  'pool-token': {
    meaning: 'No token of a HTCondor pool can be made or written.',
    remedy: 'See the message, which names the key, the option or the file.',
  },
  'pool-learn': {
    meaning:
      'No template ad can be learnt from the pool: no slot of it fits, or the slot cannot stand for an empty worker.',
    remedy:
      'See the message. Learn from a worker that has joined the pool, drains not, and has one partitionable slot.',
  },
  'pool-scale': {
    meaning:
      'The number of fixed workers of a pool was not changed, or is not reached yet. No busy worker was ended.',
    remedy: 'See the message. The same command goes on where it ended.',
  },
  'pool-demand': {
    meaning: 'The settings name no pool whose demand could be shown, or no queue asks for workers by it.',
    remedy: 'Give a queue `"demand": {"name": "htcondor-idle", ...}`: see docs/pool.md.',
  },
} as const satisfies Record<string, Explanation>;
