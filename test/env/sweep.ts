/**
 * Ends what killed tests have left, and removes their directories. `scripts/test` marks all that it starts with its own process; each directory of
 * a test names the process that made it, and a server that gets no environment names that directory.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive, killAll, processesNaming, recordOf } from './kubernetes/processes.ts';

const places = [tmpdir(), '/dev/shm'].filter((place) => existsSync(place));
const isOver = ([, maker]: RegExpExecArray): boolean => recordOf(Number(maker)) === undefined;

function leftovers() {
  const marked = processesNaming(/THRESHER_TEST_RUN=(\d+):(\d+)/).filter(({ matches }) =>
    matches.every(([, pid, startTicks]) => !isAlive({ pid: Number(pid), startTicks: Number(startTicks) })),
  );
  // A pager that shows a file there has a terminal.
  const named = processesNaming(/\/thresher-test-(\d+)-/).filter(
    ({ hasTerminal, matches }) => !hasTerminal && matches.every(isOver),
  );
  return [...marked, ...named];
}

// A process may have started another one just before its end.
for (let left = leftovers(); left.length > 0; left = leftovers()) {
  console.error(`test-env: ends ${left.length} processes of tests that were killed`);
  await killAll(left);
}
for (const place of places)
  for (const entry of readdirSync(place)) {
    const match = /^thresher-test-(\d+)-/.exec(entry);
    if (match === null || !isOver(match)) continue;
    try {
      rmSync(join(place, entry), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    } catch (error) {
      // A directory of another user does not concern this run.
      console.error(`test-env: ${join(place, entry)} stays: ${String(error)}`);
    }
  }
