import type { Context } from '../../src/plugins/contracts/index.ts';
import { files } from './operator-files.ts';
import { requirements } from './samples.ts';
import { systemClock } from '../../src/util/clock.ts';

/** A context as the daemon gives it to plugins; each call is a daemon of its own. */
export function pluginContext(changes: Partial<Context> = {}): Context {
  const shared = new Map<string, unknown>();
  const nothing = () => undefined;
  return {
    factoryId: 'thresher-test',
    harvesterId: 'test-harvester',
    queue: 'Q',
    configId: 1,
    requirements,
    queueLimit: () => 100,
    slave: false,
    connection: '',
    stateDir: '/nonexistent',
    configDir: '/nonexistent',
    clock: systemClock,
    files,
    random: Math.random,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    share: <T>(key: string, make: () => T): T => {
      if (!shared.has(key)) shared.set(key, make());
      return shared.get(key) as T;
    },
    ...changes,
  };
}
