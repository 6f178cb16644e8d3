/** `node --import count-programs.ts ...`: writes every program that the process starts into a file, `BENCH_PROGRAMS`: its name, and the time in ms UTC. */
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { onProgram } from './programs.ts';

const { BENCH_PROGRAMS: file } = process.env;
if (file !== undefined)
  onProgram((name) => {
    appendFileSync(file, `${basename(name)} ${Date.now()}\n`);
  });
