import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { debianLayer, imported, requireNode, sameBytes } from './layers.ts';
import { digestOf, Image, type Layer } from './oci.ts';

const run = promisify(execFile);
const source = join(import.meta.dirname, '../../../templates/kubernetes/htcondor-pool/image');

/** As the Containerfile ends. */
const config = {
  User: '900:900',
  Entrypoint: ['/usr/local/bin/htcondor-pool'],
  Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
  ExposedPorts: { '9618/tcp': {} },
};

/** They do what the Containerfile does around apt-get: a user with a number of our choice, and no settings of the package's. */
const hooks = [
  `--essential-hook=echo "condor:x:900:900::/var/lib/condor:/usr/sbin/nologin" >>"$1/etc/passwd"; echo "condor:x:900:" >>"$1/etc/group"`,
  `--customize-hook=rm -f "$1"/etc/condor/config.d/*`,
];

/** What `test-env kubernetes image` prints. */
export interface PoolImage {
  /** `localhost/htcondor-pool:DIGITS`, another name for other files, so that checkouts side by side have images of their own. */
  readonly image: string;
}

/**
 * Makes the image of an HTCondor pool from templates/kubernetes/htcondor-pool/image, without a registry, and brings it to the
 * real node. What is there already is not made again.
 * @throws Failure if no node runs, or a package could not be fetched.
 */
export async function importPoolImage(directory: string): Promise<PoolImage> {
  requireNode(directory);
  const root = join(directory, 'pool-image');
  mkdirSync(root, { recursive: true });
  const scratch = mkdtempSync(join(root, 'making-'));
  try {
    const base = await debianLayer(root, 'the image of a pool', ['condor', 'ca-certificates'], hooks);
    const made = new Image(config, [base, await scriptLayer(scratch)]);
    return { image: await imported(directory, 'htcondor-pool', made, scratch) };
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** The scripts, the settings and the directories. */
async function scriptLayer(scratch: string): Promise<Layer> {
  const files = join(scratch, 'files');
  const path = join(scratch, 'scripts.tar');
  mkdirSync(files);
  // It is the root directory of the image.
  chmodSync(files, 0o755);
  await run('sh', [join(source, 'install.sh'), files]);
  await run('tar', ['-C', files, ...sameBytes, '-cf', path, '.']);
  return { path, digest: await digestOf(path) };
}
