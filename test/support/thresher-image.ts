import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ThresherImage } from '../env/kubernetes/thresher-image.ts';
import { modules } from './program.ts';
import { temporaryDirectory } from './temporary.ts';

const run = promisify(execFile);
const checkout = resolve(import.meta.dirname, '../..');

/**
 * The name of thresher's image (Containerfile) on the real node, which must run: with the program of this checkout. The first call
 * ever makes it from packages, which takes a minute or two. `imagePullPolicy` must not be Always.
 */
export async function thresherImage(): Promise<string> {
  const testEnv = join(checkout, 'scripts/test-env');
  const { stdout } = await run(testEnv, ['kubernetes', 'image', '--thresher', await built()]);
  return (JSON.parse(stdout) as ThresherImage).image;
}

/** Node runs no sources below node_modules, where the image has thresher. */
async function built(): Promise<string> {
  const { directory, extension } = modules();
  if (extension === 'js') return directory;
  const own = join(temporaryDirectory(), 'dist');
  const compiler = join(checkout, 'node_modules/typescript/bin/tsc');
  const options = ['-p', join(checkout, 'tsconfig.build.json'), '--outDir', own];
  await run(process.execPath, [compiler, ...options]);
  return own;
}
