import { accessSync, constants, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';

/** Magic numbers of file systems whose locks or caches SQLite cannot trust. Source: statfs(2), linux/magic.h. */
const networkFileSystems: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x5346414f: 'AFS',
  0x6b414653: 'AFS',
  0x73757245: 'Coda',
  0x00c36400: 'CephFS',
  0x0bd00bd0: 'Lustre',
  0x47504653: 'GPFS',
  0x19830326: 'BeeGFS',
  0x01021997: '9p',
  0x01161970: 'GFS2',
  0x7461636f: 'OCFS2',
};

/** The name of a network file system, by statfs' type; undefined for local ones. */
export function networkFileSystem(type: number): string | undefined {
  // Some are above 2^31 and arrive as negative numbers on some platforms.
  return networkFileSystems[type >>> 0];
}

export interface StateDir {
  readonly path: string;
  readonly database: string;
  readonly lock: string;
  /** The holder of the lock, for people. */
  readonly holder: string;
  readonly factory: string;
  /** The states of the services, for people. */
  readonly services: string;
  /** Why requests of operators wait, for people. */
  readonly requests: string;
  /** The state of the link to the PanDA server, for people. */
  readonly pandaLink: string;
  /** The states of fetched files, for people. */
  readonly cacher: string;
}

export function stateDirAt(path: string): StateDir {
  return {
    path,
    database: join(path, 'thresher.db'),
    lock: join(path, 'daemon.lock'),
    holder: join(path, 'daemon.json'),
    factory: join(path, 'factory'),
    services: join(path, 'services.json'),
    requests: join(path, 'requests.json'),
    pandaLink: join(path, 'panda/status.json'),
    cacher: join(path, 'cacher.json'),
  };
}

/**
 * Makes the state directory usable, or says why it is not.
 * @throws ThresherError `state-dir-unusable`, `state-dir-network`
 */
export function prepareStateDir(path: string, typeOf = (dir: string) => statfsSync(dir).type): StateDir {
  try {
    makeDirectory(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const message = `the state directory ${path} cannot be used: ${messageOf(error)}`;
    throw new ThresherError('state-dir-unusable', message, { path }, { cause: error });
  }
  const network = networkFileSystem(typeOf(path));
  if (network !== undefined) {
    const message = `the state directory ${path} is on ${network}: SQLite needs a local disk`;
    throw new ThresherError('state-dir-network', message, { path, fileSystem: network });
  }
  return stateDirAt(path);
}
