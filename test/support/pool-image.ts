import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { PoolImage } from '../env/kubernetes/pool-image.ts';

const run = promisify(execFile);
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

let asked: Promise<string> | undefined;

/**
 * The name of the image of an HTCondor pool (templates/kubernetes/htcondor-pool/image) on the real node, which must run. The first
 * call ever makes it from packages, which takes a minute or two; later ones take a second. `imagePullPolicy` must not be Always.
 */
export function poolImage(): Promise<string> {
  asked ??= run(testEnv, ['kubernetes', 'image']).then(
    ({ stdout }) => (JSON.parse(stdout) as PoolImage).image,
  );
  return asked;
}
