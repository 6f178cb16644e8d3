/**
 * Ends what tests left that were killed in the middle, and removes their directories. Each directory of a test names the process that made it,
 * and each server of a test names its directory in its command line or environment.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killAll, processesNaming, recordOf } from './kubernetes/processes.ts';

const places = [tmpdir(), '/dev/shm'].filter((place) => existsSync(place));
const name = /thresher-test-(\d+)-/;
const isOver = ([, owner]: RegExpExecArray): boolean => recordOf(Number(owner)) === undefined;

// One that is killed may have just started another one.
for (;;) {
  const left = processesNaming(new RegExp(`/${name.source}`)).filter(({ matches }) => matches.every(isOver));
  if (left.length === 0) break;
  console.error(`test-env: ends ${left.length} processes of tests that were killed`);
  await killAll(left);
}
for (const place of places)
  for (const entry of readdirSync(place)) {
    const match = name.exec(entry);
    if (match !== null && isOver(match))
      rmSync(join(place, entry), { recursive: true, force: true, maxRetries: 10 });
  }
