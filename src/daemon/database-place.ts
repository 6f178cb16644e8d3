import type { LoadedSettings } from '../config/settings/settings.ts';
import type { DatabasePlace } from '../store/store.ts';
import { stateDirAt } from './state-dir.ts';

/** Where the database of these settings is. */
export function databaseOf({ postgresql, stateDir }: LoadedSettings): DatabasePlace {
  return postgresql ?? stateDirAt(stateDir).database;
}
