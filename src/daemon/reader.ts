import type { LoadedSettings } from '../config/settings/settings.ts';
import { openStoreBeside, type Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import { databaseOf } from './database-place.ts';
import { type Holder, runningDaemon } from './lock.ts';
import { readFactoryId } from './factory-file.ts';
import { type StateDir, stateDirAt } from './state-dir.ts';

/** The daemon that has the factory now. On PostgreSQL it may run on another machine, and the one here may be a standby. */
export async function daemonOn(
  store: Pick<Store, 'leader'>,
  dir: StateDir,
): Promise<Holder | 'unknown' | undefined> {
  if (store.leader === undefined) return runningDaemon(dir);
  return (await store.leader()) === undefined ? undefined : 'unknown';
}

/**
 * Opens what a daemon keeps, whether it runs or not.
 * @param known the factory's id where a daemon asks, for its HTTP server or as a standby: to find it out reads the database
 * @throws ThresherError `store-missing` when no daemon ever ran there
 */
export async function openBesideDaemon(
  settings: LoadedSettings,
  access: 'read' | 'write',
  known?: string,
): Promise<{ dir: StateDir; factoryId: string; store: Store }> {
  const dir = stateDirAt(settings.stateDir);
  const factoryId = known ?? readFactoryId(settings);
  if (factoryId === undefined) {
    throw new ThresherError('store-missing', `no daemon ever ran on the state directory ${dir.path}`, {
      path: dir.path,
    });
  }
  const asker = known === undefined ? 'command' : 'daemon';
  return { dir, factoryId, store: await openStoreBeside(databaseOf(settings), factoryId, access, asker) };
}
