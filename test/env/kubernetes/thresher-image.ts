import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';
import { debianLayer, imported, keptLayer, requireNode, sameBytes } from './layers.ts';
import { digestOf, Image, type ImageConfig, type Layer } from './oci.ts';

const run = promisify(execFile);
const checkout = resolve(import.meta.dirname, '../../..');
/** Where the Containerfile puts the packages, without the slash at its beginning. */
const place = 'opt/thresher';

/** What the Containerfile of the checkout says of its last stage. */
export interface Recipe {
  /** Debian packages. */
  readonly packages: readonly string[];
  /** The command that makes the user. */
  readonly user: string;
  readonly config: ImageConfig;
}

/** What `test-env kubernetes image --thresher DIST` prints. */
export interface ThresherImage {
  /** `localhost/thresher:DIGITS`, another name for other files. */
  readonly image: string;
}

/** @throws Failure where the Containerfile has no such line any more */
export function recipeIn(containerfile: string): Recipe {
  const [, lastStage = ''] = containerfile.split(/^FROM .*debian:trixie-slim$/m);
  const part = (pattern: RegExp): string => {
    const found = pattern.exec(lastStage)?.[1];
    if (found === undefined) throw new Failure(`the Containerfile has no line like ${String(pattern)}`);
    return found;
  };
  if (!part(/^(COPY --from=build \S+ \S+)$/m).endsWith(` /${place}`))
    throw new Failure(`the Containerfile does not copy the packages to /${place}`);
  return {
    packages: part(/--no-install-recommends (.+?) \\$/m).split(' '),
    user: part(/&& (useradd .+)$/m),
    config: {
      User: part(/^USER (\S+)$/m),
      Entrypoint: JSON.parse(part(/^ENTRYPOINT (.+)$/m)) as string[],
      Env: part(/^ENV (.+)$/m).split(' '),
      ExposedPorts: {},
    },
  };
}

/** The first layer of thresher's image: Debian with the packages of the Containerfile, and its user. */
export function thresherBase(directory: string): Promise<Layer> {
  const { packages, user } = recipe();
  const root = rootIn(directory);
  return debianLayer(root, 'the image of thresher', packages, [`--customize-hook=chroot "$1" ${user}`]);
}

/**
 * Makes the image of thresher with the layers of the Containerfile, without a registry, and brings it to the real node. What is there
 * already is not made again. @param dist the built program
 * @throws Failure if no node runs, or a package could not be fetched.
 */
export async function importThresherImage(directory: string, dist: string): Promise<ThresherImage> {
  requireNode(directory);
  const scratch = mkdtempSync(join(rootIn(directory), 'making-'));
  try {
    const layers = [
      await thresherBase(directory),
      await dependencies(rootIn(directory)),
      await own(scratch, dist),
    ];
    const made = new Image(recipe().config, layers);
    return { image: await imported(directory, 'thresher', made, scratch) };
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

const recipe = (): Recipe => recipeIn(readFileSync(join(checkout, 'Containerfile'), 'utf8'));

function rootIn(directory: string): string {
  const root = join(directory, 'thresher-image');
  mkdirSync(root, { recursive: true });
  return root;
}

/** The packages that thresher needs at work, Node among them, as npm has put them into the checkout. */
function dependencies(root: string): Promise<Layer> {
  const lock = readFileSync(join(checkout, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: Record<string, { dev?: true }> };
  const folders = Object.entries(packages)
    // Packages within packages go along.
    .filter(([path, { dev }]) => /^node_modules\/(?!.*node_modules\/)/.test(path) && dev !== true)
    .map(([path]) => path)
    // Optional ones may be for other systems.
    .filter((path) => existsSync(join(checkout, path)))
    .sort();
  return keptLayer(root, 'packages', JSON.stringify([lock, place]), async (path) => {
    const where = ['-C', checkout, `--transform=s,^,${place}/,S`, '--owner=0', '--group=0'];
    await run('tar', [...where, ...sameBytes, '-cf', path, ...folders]);
  });
}

/** The package as npm would pack and install it. */
async function own(scratch: string, dist: string): Promise<Layer> {
  const root = join(scratch, 'files');
  const modules = join(root, place, 'node_modules');
  const commands = join(modules, '.bin');
  const thresher = join(modules, 'thresher');
  for (const directory of [commands, thresher]) mkdirSync(directory, { recursive: true });
  for (const [name, target] of [
    ['thresher', '../thresher/bin/thresher'],
    ['node', '../node/bin/node'],
  ] as const)
    symlinkSync(target, join(commands, name));
  const { files } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { files: string[] };
  for (const file of ['package.json', ...files]) {
    const from = file === 'dist' ? dist : join(checkout, file);
    cpSync(from, join(thresher, file), { recursive: true });
  }
  // It is the root directory of the image.
  chmodSync(root, 0o755);
  const path = join(scratch, 'own.tar');
  await run('tar', ['-C', root, '--owner=0', '--group=0', ...sameBytes, '-cf', path, '.']);
  return { path, digest: await digestOf(path) };
}
