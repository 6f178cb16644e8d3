import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from '../support/temporary.ts';

export const root = join(import.meta.dirname, '../..');

/** What the tools read beside the sources. */
const configuration = [
  '.c8rc.json',
  '.dependency-cruiser.cjs',
  '.gitignore',
  '.mocharc.cjs',
  '.prettierignore',
  '.prettierrc.json',
  'eslint.config.js',
  'package.json',
  'tsconfig.build.json',
  'tsconfig.json',
];

export type Files = Readonly<Record<string, string>>;

/** A tree with this project's configuration and packages, copies of some of its paths, and files of its own. */
export function copiedTree(copied: readonly string[], planted: Files = {}): string {
  const tree = realpathSync(temporaryDirectory());
  for (const path of [...configuration, ...copied]) {
    cpSync(join(root, path), join(tree, path), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  plant(tree, planted);
  return tree;
}

export function plant(tree: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
}

/** The checks of scripts/test by name, each with its very command line. */
export function steps(): Map<string, string[]> {
  const script = readFileSync(join(root, 'scripts/test'), 'utf8');
  return new Map(
    [...script.matchAll(/^(?:step|aside) (\S+) (.+)$/gm)].map(([, name = '', command = '']) => [
      name,
      command.split(' '),
    ]),
  );
}

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  /** Both streams. */
  readonly output: string;
}

/** Runs a check of scripts/test in a tree, as scripts/test does. */
export async function runStep(
  name: string,
  tree: string,
  more: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  const command = steps().get(name);
  if (command === undefined) throw new Error(`scripts/test has no step ${name}`);
  return run([...command, ...more], tree, undefined, environment);
}

export async function run(
  command: readonly string[],
  cwd: string,
  path = `${join(cwd, 'node_modules/.bin')}:${process.env.PATH ?? ''}`,
  environment: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  // These tests may themselves run under c8, which would take the coverage of every tool.
  const unset = {
    NODE_V8_COVERAGE: undefined,
    NODE_OPTIONS: undefined,
    FORCE_COLOR: undefined,
    // Nor are they the run that made an environment of its own.
    THRESHER_OWN_ENVIRONMENT: undefined,
    THRESHER_TEST_TIER: undefined,
    THRESHER_TEST_DURATIONS: undefined,
    THRESHER_TEST_RESULTS: undefined,
    THRESHER_TEST_RUN: undefined,
    THRESHER_TEST_ENVIRONMENT: undefined,
  };
  const options = {
    cwd,
    env: { ...process.env, ...unset, PATH: path, NO_COLOR: '1', ...environment },
    // A busy machine may take minutes for all of them; a tool that hangs would take the test's own time otherwise.
    timeout: 200_000,
    maxBuffer: 64 * 1024 * 1024,
  };
  const [file = '', ...args] = command;
  return new Promise((resolve, reject) => {
    execFile(file, args, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : error.code;
      const output = stdout + stderr;
      if (typeof status === 'number') resolve({ status, stdout, output });
      else reject(new Error(`${command.join(' ')} did not end by itself: ${output}`, { cause: error }));
    });
  });
}

/** Whether a path is in a tree. */
export const has = (tree: string, path: string): boolean => existsSync(join(tree, path));
