import type { Context } from '../../src/plugins/contracts/index.ts';
import { files } from './operator-files.ts';
import { requirements } from './samples.ts';
import { systemClock } from '../../src/util/clock.ts';

/** A context as the daemon gives it to plugins; each call is a daemon of its own. */
export function pluginContext(changes: Partial<Context> = {}): Context {
  const nothing = () => undefined;
  const context: Context = {
    factoryId: 'thresher-test',
    harvesterId: 'test-harvester',
    queue: 'Q',
    configId: 1,
    requirements,
    queueLimit: () => 100,
    slave: false,
    stateDir: '/nonexistent',
    configDir: '/nonexistent',
    clock: systemClock,
    files,
    random: Math.random,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    ...changes,
  };
  // By this `partOf` knows contexts of one daemon, however often they were spread.
  return { ...context, daemon: {} } as Context;
}
