import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

/** A directory of its own, removed after the run. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-test-'));
  made.push(directory);
  return directory;
}

const endings: (() => Promise<void>)[] = [];

/** Does this at the end of the file of tests, before its temporary directories go: a process runs several files, one after the other. */
export function atEndOfFile(ending: () => Promise<void>): void {
  endings.push(ending);
}

export const mochaHooks = {
  beforeAll() {
    if (process.env.NODE_V8_COVERAGE === undefined) return;
    // Coverage counts what runs in the processes of mocha. A program that a test starts would write down 15 MB when it ends.
    delete process.env.NODE_V8_COVERAGE;
    // Mocha gives its workers a second to end, and then this signal. One of them may need longer to write its coverage.
    process.on('SIGTERM', () => undefined);
  },
  async afterAll() {
    for (const ending of endings.splice(0)) await ending();
    for (const directory of made) rmSync(directory, { recursive: true, force: true });
  },
};
