import type { LoadedSettings } from '../../config/settings/settings.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { ShareStore } from '../../store/shares.ts';
import type { Clock } from '../../util/clock.ts';
import { partOf, type RunConfiguration } from '../configuration.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { PluginFactory } from '../plugin-factory.ts';
import type { RunningQueues } from '../running-queues.ts';
import type { SourceService } from '../services/source-service.ts';
import { queueOf, sourceItem, sourceOf } from './item-names.ts';
import { itemsOf } from './items.ts';
import { Sharing, type SharingParts } from './sharing.ts';

export interface OwnPartParts {
  readonly settings: LoadedSettings;
  readonly store: ShareStore;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  readonly plugins: PluginFactory;
  /** Does nothing outside of tests. */
  readonly step: SharingParts['step'];
}

/** What runs here, and is brought in line with the part that this daemon has. */
export interface RunningParts {
  readonly runningQueues: Pick<RunningQueues, 'join' | 'leave'>;
  readonly credentials: Pick<Credentials, 'takeUp'>;
  readonly sourceService: Pick<SourceService, 'sharesChanged'>;
  /** Reads the files again, and takes up this daemon's part of them. */
  takeUp(cause: string): Promise<void>;
}

/** The part of a factory that this daemon has: what was read of the files is cut to it, and what runs follows it. */
export class OwnPart {
  readonly sharing: Sharing;
  readonly #parts: OwnPartParts;
  #running: RunningParts | undefined;
  /** All that was read last. */
  #whole: RunConfiguration | undefined;

  constructor(parts: OwnPartParts) {
    this.#parts = parts;
    const { settings, store, clock, log, step } = parts;
    this.sharing = new Sharing({
      store,
      clock,
      log,
      keepFor: settings.values.database.leaseDuration * 1000,
      release: (items) => this.#release(items),
      changed: (fresh) => this.#changed(fresh),
      step,
    });
  }

  /** This runs from now on; undefined: the daemon is about to stop. */
  runs(running: RunningParts | undefined): void {
    this.#running = running;
  }

  /** Of all that was read, what this daemon has. */
  of(read: RunConfiguration): RunConfiguration {
    const { plugins, settings } = this.#parts;
    const owners = settings.values.database.queueOwners ?? {};
    const { readable, verdicts } = read.queueFile;
    this.sharing.use(
      itemsOf(read, { plugins, owners }),
      itemsOf({ ...read, inUse: [] }, { plugins, owners }),
      readable ? verdicts.map(({ name }) => name) : undefined,
    );
    this.#whole = read;
    return partOf(read, this.sharing.queues);
  }

  async #changed(fresh: ReadonlySet<string>): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    const kinds = [...fresh].flatMap((item) => sourceOf(item) ?? []);
    // What they remember of their last time here is stale.
    for (const kind of kinds) this.#parts.plugins.sources.forget(kind);
    await running.runningQueues.join(new Set([...fresh].flatMap((item) => queueOf(item) ?? [])));
    await running.takeUp('the queues were shared out anew');
    await running.sourceService.sharesChanged();
  }

  async #release(items: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const running = this.#running;
    if (running === undefined) return items;
    const queues = new Set([...items].flatMap((item) => queueOf(item) ?? []));
    const left = await running.runningQueues.leave(queues);
    // A credential is renewed where its queues are.
    if (this.#whole !== undefined)
      await running.credentials.takeUp(this.#parts.settings, partOf(this.#whole, this.sharing.queues));
    const living = new Set([...(await running.sourceService.sharesChanged())].map(sourceItem));
    const isBusy = (item: string) => {
      const queue = queueOf(item);
      return queue === undefined ? living.has(item) : !left.has(queue);
    };
    return new Set([...items].filter(isBusy));
  }
}
