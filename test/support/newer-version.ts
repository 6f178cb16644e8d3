/** Makes a later version of a program that starts, by one more migration: `node --import newer-version.ts ...`. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as migrations from '../../src/store/sqlite/migrations.ts';
import { modules } from './program.ts';

const { directory, extension } = modules();
const url = pathToFileURL(join(directory, `store/sqlite/migrations.${extension}`)).href;
const { steps } = (await import(url)) as typeof migrations;
Object.assign(steps, {
  '9999-later': ['ALTER TABLE workers ADD COLUMN later TEXT', 'CREATE TABLE later (id INTEGER PRIMARY KEY)'],
});
