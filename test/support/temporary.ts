import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { stalledShare } from './stalled.ts';

// A run of the suite draws the same cases each time: a new case that fails belongs to the change that made it fail, not to a later one.
fc.configureGlobal({ seed: Number(process.env['THRESHER_TEST_SEED'] ?? 20_261_126) });

const made: string[] = [];

/** Name of a new directory of the tests up to its random end. The process id tells the next run whether the tests that made it still run. */
export const ownedPrefix = (parent = tmpdir()): string => join(parent, `thresher-test-${process.pid}-`);

/** A directory of its own, removed after the run. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(ownedPrefix());
  made.push(directory);
  return directory;
}

/** Removes a directory. Processes that are about to end may still write into it: this tries again, and leaves what it cannot remove to the next run. */
export function removeDirectory(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  } catch (error) {
    console.error(`${directory} stays: ${String(error)}`);
  }
}

const endings: (() => Promise<void>)[] = [];

/** Does this at the end of the file of tests, before its temporary directories go: a process runs several files, one after the other. */
export function atEndOfFile(ending: () => Promise<void>): void {
  endings.push(ending);
}

/** A line of files.jsonl: when the files of a run began, failed and ended. The reporter hears of all this only at the end of a file. */
export interface Moment {
  readonly file: string;
  readonly what: 'began' | 'failed' | 'ended';
  /** ms since the epoch. */
  readonly at: number;
  /** Of the test that failed, with those of its groups. */
  readonly title?: string;
  /** Share of the minute before in which a process waited for a processor, %. */
  readonly stalled?: number | null;
}

/** Notes a moment for test/support/gate.ts. */
function note(file: string | undefined, more: Omit<Moment, 'file' | 'at'>): void {
  const results = process.env['THRESHER_TEST_RESULTS'];
  if (results === undefined || file === undefined) return;
  const moment: Moment = { file, at: Date.now(), ...more };
  appendFileSync(join(results, 'files.jsonl'), `${JSON.stringify(moment)}\n`);
}

/** The file that runs: each has a run of its own in the process of mocha that takes it. */
const fileOf = ({ test }: Mocha.Context): string | undefined =>
  test?.parent?.suites[0]?.file ?? test?.parent?.tests[0]?.file;

/** Gives its file to each hook that stands outside of all groups: mocha gives it none, and a failure of it would belong to no file. */
function ownHooks({ test }: Mocha.Context, file: string | undefined): void {
  const root = test?.parent as unknown as Record<string, { file?: string }[]> | undefined;
  if (root === undefined || file === undefined) return;
  for (const kind of ['_beforeAll', '_beforeEach', '_afterEach', '_afterAll'])
    for (const hook of root[kind] ?? []) hook.file ??= file;
}

export const mochaHooks = {
  beforeAll(this: Mocha.Context) {
    const file = fileOf(this);
    ownHooks(this, file);
    note(file, { what: 'began' });
    if (process.env.NODE_V8_COVERAGE === undefined) return;
    // Coverage counts what runs in the processes of mocha. A program that a test starts would write down 15 MB when it ends.
    delete process.env.NODE_V8_COVERAGE;
    // Mocha gives its workers a second to end, and then this signal. One of them may need longer to write its coverage.
    process.on('SIGTERM', () => undefined);
  },
  afterEach(this: Mocha.Context) {
    const { currentTest } = this;
    if (currentTest?.state !== 'failed') return;
    note(currentTest.file, { what: 'failed', title: currentTest.fullTitle(), stalled: stalledShare() });
  },
  async afterAll(this: Mocha.Context) {
    note(fileOf(this), { what: 'ended' });
    for (const ending of endings.splice(0)) await ending();
    for (const directory of made.splice(0)) removeDirectory(directory);
  },
};
