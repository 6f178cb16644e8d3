import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporaryDirectory } from './temporary.ts';

const checkout = resolve(import.meta.dirname, '../..');

/** When a file was written last, ms; a file that is missing was written before all others. */
const writtenAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/**
 * Whether `dist/` holds what the sources say: each of its files is there and younger than its source and than the
 * compiler's options. A file that no source stands behind any more does no harm: no other file imports it.
 */
export function isBuilt(root: string): boolean {
  const options = ['tsconfig.json', 'tsconfig.build.json'].map((name) => writtenAt(join(root, name)));
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .every((path) => {
      const built = writtenAt(join(root, 'dist', path.replace(/\.ts$/, '.js')));
      return built > Math.max(writtenAt(join(root, 'src', path)), ...options);
    });
}

/** Where a program's modules are. */
export interface Modules {
  readonly directory: string;
  readonly extension: 'ts' | 'js';
}

/** `dist/` where it is up to date: Node starts it in half the time. Otherwise the sources: old code is never tested. */
export function modules(root = checkout): Modules {
  if (isBuilt(root)) return { directory: join(root, 'dist'), extension: 'js' };
  return { directory: join(root, 'src'), extension: 'ts' };
}

let installed: string | undefined;

/** The program as tests start it: `bin/thresher` of this checkout, which runs its sources, or of a tree that has `dist/` alone. */
export function program(): string {
  const { directory, extension } = modules();
  if (extension === 'ts') return join(checkout, 'bin/thresher');
  // The directory of an earlier test file is removed with that file's others.
  if (installed === undefined || !existsSync(installed)) installed = install(directory);
  return installed;
}

function install(dist: string): string {
  const tree = temporaryDirectory();
  mkdirSync(join(tree, 'bin'));
  cpSync(join(checkout, 'bin/thresher'), join(tree, 'bin/thresher'));
  symlinkSync(dist, join(tree, 'dist'));
  symlinkSync(join(checkout, 'node_modules'), join(tree, 'node_modules'));
  // Tests run it as other users, too.
  for (const path of [tree, join(tree, 'bin')]) chmodSync(path, 0o755);
  return join(tree, 'bin/thresher');
}
