import type { LoadedSettings } from '../config/settings/settings.ts';
import { openStoreBeside, type Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import { readFactoryId } from './factory-file.ts';
import { type StateDir, stateDirAt } from './state-dir.ts';

/**
 * Opens what a daemon keeps, whether it runs or not.
 * @throws ThresherError `store-missing` when no daemon ever ran there
 */
export async function openBesideDaemon(
  settings: LoadedSettings,
  access: 'read' | 'write',
): Promise<{ dir: StateDir; store: Store }> {
  const dir = stateDirAt(settings.stateDir);
  const id = readFactoryId(dir);
  if (id === undefined) {
    throw new ThresherError('store-missing', `no daemon ever ran on the state directory ${dir.path}`, {
      path: dir.path,
    });
  }
  return { dir, store: await openStoreBeside(dir.database, id, access) };
}
