/** `node --import count-programs.ts ...`: writes the name of every program that the process starts into a file, `BENCH_PROGRAMS`. */
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { onProgram } from './programs.ts';

const { BENCH_PROGRAMS: file } = process.env;
if (file !== undefined)
  onProgram((name) => {
    appendFileSync(file, `${basename(name)}\n`);
  });
