import type { LoadedSettings } from '../config/settings/settings.ts';
import { openStoreBeside, type Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import { readFactoryId } from './factory-file.ts';
import { type StateDir, stateDirAt } from './state-dir.ts';

/**
 * Opens what a daemon keeps, whether it runs or not.
 * @param known the factory's id where the caller has it: to find it out reads the database
 * @throws ThresherError `store-missing` when no daemon ever ran there
 */
export async function openBesideDaemon(
  settings: LoadedSettings,
  access: 'read' | 'write',
  known?: string,
): Promise<{ dir: StateDir; factoryId: string; store: Store }> {
  const dir = stateDirAt(settings.stateDir);
  const factoryId = known ?? readFactoryId(dir);
  if (factoryId === undefined) {
    throw new ThresherError('store-missing', `no daemon ever ran on the state directory ${dir.path}`, {
      path: dir.path,
    });
  }
  return { dir, factoryId, store: await openStoreBeside(dir.database, factoryId, access) };
}
