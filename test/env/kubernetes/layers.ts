import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';
import { inContainerd, nodeStatus } from './node.ts';
import { digestOf, type Image, type Layer } from './oci.ts';

const run = promisify(execFile);
const baseScript = join(import.meta.dirname, 'debian-base.sh');
/** Debian 13 has HTCondor 23.9. */
const suite = 'trixie';

/** A file has the same bytes in a layer whoever makes it, and whenever. */
export const sameBytes = ['--sort=name', '--mtime=@0', '--numeric-owner', '--format=gnu'];

/** @throws Failure if no node runs that takes images */
export function requireNode(directory: string): void {
  if (nodeStatus(directory)?.running !== true)
    throw new Failure('there is no node for the image: ./scripts/test-env kubernetes start --node');
}

/**
 * A layer that is made once and kept. @param make writes it to the path
 * @param key another key is another layer
 */
export async function keptLayer(
  root: string,
  name: string,
  key: string,
  make: (path: string) => Promise<void>,
): Promise<Layer> {
  const made = createHash('sha256').update(key).digest('hex').slice(0, 12);
  const path = join(root, `${name}-${made}.tar`);
  const stamp = `${path}.sha256`;
  if (!existsSync(stamp)) {
    await make(path);
    writeFileSync(stamp, await digestOf(path));
  }
  return { path, digest: readFileSync(stamp, 'utf8') };
}

/** Debian with packages and what they depend on: from nothing in about a minute. @param options for mmdebstrap */
export function debianLayer(
  root: string,
  what: string,
  packages: readonly string[],
  options: readonly string[],
): Promise<Layer> {
  const args = [packages.join(','), ...options];
  const key = JSON.stringify([readFileSync(baseScript, 'utf8'), suite, ...args]);
  return keptLayer(root, `base-${suite}`, key, async (path) => {
    console.error(`test-env: unpacking Debian ${suite} for ${what}`);
    try {
      await run(baseScript, [suite, path, ...args], { maxBuffer: 64 * 1024 * 1024 });
    } catch (error) {
      const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
      throw new Failure(said || String(error));
    }
  });
}

/** Brings an image to the node, unless it is there. @returns its name, another one for other files */
export async function imported(
  directory: string,
  name: string,
  made: Image,
  scratch: string,
): Promise<string> {
  const image = `localhost/${name}:${made.digest.slice(0, 16)}`;
  const known = await inContainerd(directory, ['images', 'ls', '-q', `name==${image}`]);
  if (known.trim() !== image) {
    const archive = join(scratch, 'image.tar');
    await made.write(image, archive);
    await inContainerd(directory, ['images', 'import', archive]);
  }
  return image;
}
