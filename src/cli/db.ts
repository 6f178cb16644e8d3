import type { Command } from 'commander';
import { addDbBackup } from './db-backup.ts';
import { addDbCheck } from './db-check.ts';
import { addDbPrune } from './db-prune.ts';
import type { Environment } from './environment.ts';

export function addDb(program: Command, environment: Environment): void {
  const db = program.command('db').description('the database: its backup, its check, and what is over in it');
  for (const add of [addDbBackup, addDbCheck, addDbPrune]) add(db, environment);
}
