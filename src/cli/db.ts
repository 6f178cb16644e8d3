import type { Command } from 'commander';
import { addDbBackup } from './db-backup.ts';
import { addDbCheck } from './db-check.ts';
import { addDbCopy } from './db-copy.ts';
import { addDbPrune } from './db-prune.ts';
import type { Environment } from './environment.ts';

export function addDb(command: Command, environment: Environment): void {
  for (const add of [addDbBackup, addDbCheck, addDbCopy, addDbPrune]) add(command, environment);
}
