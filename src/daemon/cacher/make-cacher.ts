import { cacheDirectory } from '../../config/cric/cache-place.ts';
import { cacheItemsOf } from '../../config/settings/cache-items.ts';
import { harvesterIdOf } from '../../config/settings/machine.ts';
import type { LoadedSettings } from '../../config/settings/settings.ts';
import type { Log, PandaServer } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import type { RunConfiguration } from '../configuration.ts';
import type { LoopSet } from '../loop-set.ts';
import { stateDirAt } from '../state-dir.ts';
import { StateFile } from '../state-file.ts';
import { Cacher } from './cacher.ts';
import { CacherService } from './cacher-service.ts';
import { Fetching } from './fetching.ts';

export interface CacherSetting {
  readonly settings: LoadedSettings;
  readonly server: PandaServer | undefined;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly log: Log;
}

/** A cacher by the settings, and what it fetches with, which the caller closes. */
export function makeCacher({ settings, server, clock, files, log }: CacherSetting) {
  const { timeout, refreshInterval, certificateFor = [] } = settings.values.cacher;
  const { items } = cacheItemsOf(settings);
  const fetching = new Fetching({ clock, files, timeout: timeout * 1000, server, certificateFor });
  const directory = cacheDirectory(settings.stateDir);
  const cacher = new Cacher({
    directory,
    items,
    harvesterId: harvesterIdOf(settings.values.master),
    fetching,
    clock,
    log,
    refreshInterval: refreshInterval * 60_000,
  });
  return { cacher, items, fetching };
}

export interface CacherServiceSetting extends CacherSetting {
  readonly loops: Pick<LoopSet, 'add'>;
  readonly first: RunConfiguration;
  /** Hears that files have another content. */
  readonly renewed: () => Promise<void>;
  /** The health may be another. */
  readonly changed: () => void;
}

/** A pass without progress is stuck so long after the time of its fetches, ms. */
const stuckGrace = 120_000;

/** The cacher as a service of a daemon. */
export function makeCacherService(setting: CacherServiceSetting): CacherService {
  const { settings, clock, loops, first, renewed, changed, log } = setting;
  const { sleepTime, timeout, warnAge } = settings.values.cacher;
  const { cacher, items, fetching } = makeCacher(setting);
  return new CacherService({
    cacher,
    items,
    clock,
    loops,
    sleepTime: sleepTime * 1000,
    stuckAfter: items.length * timeout * 1000 + stuckGrace,
    warnAge: warnAge * 3_600_000,
    first,
    renewed,
    changed,
    stateFile: new StateFile(stateDirAt(settings.stateDir).cacher, {
      failure: 'the states of the cacher could not be written',
      log,
    }),
    close: () => fetching.close(),
  });
}
