import { type Loop, Progress } from '../../agents/loop.ts';
import { type CacheItem, nameOf } from '../../config/settings/cache-items.ts';
import { type Clock, isoTime } from '../../util/clock.ts';
import { within } from '../../util/within.ts';
import type { Reason } from '../../worker/reason.ts';
import type { RunConfiguration } from '../configuration.ts';
import type { LoopSet } from '../loop-set.ts';
import type { Service, ServicePart } from '../services/service.ts';
import type { StateFile } from '../state-file.ts';
import type { Cacher, ItemState } from './cacher.ts';
import { viewOf } from './cacher-view.ts';

export interface CacherServiceParts {
  readonly cacher: Cacher;
  readonly items: readonly CacheItem[];
  readonly clock: Clock;
  readonly loops: Pick<LoopSet, 'add'>;
  /** Between looks for files whose time has come, ms. */
  readonly sleepTime: number;
  /** A pass without any progress for so long is stuck, ms. */
  readonly stuckAfter: number;
  /** After how long data count as old, ms. */
  readonly warnAge: number;
  /** The configuration that the daemon begins with. */
  readonly first: Pick<RunConfiguration, 'queueFile'>;
  /** Hears that files have another content. */
  readonly renewed: () => Promise<void>;
  /** The health may be another. */
  readonly changed: () => void;
  /** For `thresher cacher`. */
  readonly stateFile: StateFile;
  close(): Promise<void>;
}

/** What the operator calls queues and templates. */
function namesIn({
  queueFile: { verdicts, templates, unlisted },
}: Pick<RunConfiguration, 'queueFile'>): readonly string[] {
  return [...verdicts.map(({ name }) => name), ...templates, ...unlisted];
}

/** How long a stop waits for a fetch under way, ms. */
const patience = 1000;

/** Fetches the files of the cacher while the daemon runs. Nothing waits for it. */
export class CacherService implements Service {
  readonly name = 'cacher';
  readonly required = false;
  readonly #parts: CacherServiceParts;
  readonly #giveUp = new AbortController();
  #loop: Loop | undefined;
  #states: readonly ItemState[] = [];
  /** Queues whose options are partly of CRIC. */
  #ofCric: ReadonlySet<string>;

  constructor(parts: CacherServiceParts) {
    this.#parts = parts;
    this.#ofCric = new Set(parts.first.queueFile.ofCric);
    parts.cacher.names = namesIn(parts.first);
  }

  async begin(): Promise<void> {
    const { cacher, clock, loops, sleepTime, stuckAfter } = this.#parts;
    if (this.#parts.items.length === 0) return;
    this.#states = await cacher.states();
    const progress = new Progress(clock);
    const loop = loops.add({
      name: 'cacher',
      interval: sleepTime,
      longestPause: sleepTime,
      stuckAfter,
      progress,
      pass: () => this.#pass(progress),
    });
    this.#loop = loop;
    // It begins beside the others, so the loops may have been started already.
    loop.start();
  }

  reload(read: RunConfiguration): Promise<void> {
    this.#ofCric = new Set(read.queueFile.ofCric);
    this.#parts.cacher.names = namesIn(read);
    return Promise.resolve();
  }

  async stop(end: number): Promise<void> {
    const { clock, stateFile } = this.#parts;
    this.#giveUp.abort();
    const ended = Promise.all([this.#loop?.stop(), stateFile.stop(), this.#parts.close()]).then(
      () => undefined,
    );
    await within(clock, Math.min(patience, Math.max(0, end - clock.monotonic())), ended);
  }

  /** Old data, or none at all, are trouble. A fetch that failed while the last data are young is not. */
  health(): readonly ServicePart[] {
    if (this.#parts.items.length === 0) return [];
    const troubles = this.#states.flatMap((state) => this.#troubleOf(state) ?? []);
    const failures = this.#states.flatMap(({ failure }) => failure ?? []);
    return [{ name: this.name, trouble: troubles[0], note: failures[0] }];
  }

  /** Reasons that are shown with a queue, because its data are old. */
  notesOn(queue: string): readonly Reason[] {
    if (!this.#ofCric.has(queue)) return [];
    const old = this.#states.filter((state) => state.item.use === 'queue-data' && this.#isOld(state));
    return old.flatMap((state) => this.#troubleOf(state) ?? []);
  }

  async #pass(progress: Progress): Promise<void> {
    const { cacher, renewed, changed, stateFile } = this.#parts;
    const outcomes = await cacher.refresh('due', this.#giveUp.signal);
    progress.made();
    this.#states = await cacher.states();
    stateFile.write(() => this.#states.map(viewOf));
    changed();
    const isNew = [...outcomes].some(([{ use }, outcome]) => use !== 'dump' && outcome === 'new');
    if (isNew) await renewed();
  }

  #troubleOf(state: ItemState): Reason | undefined {
    const { item, fetched, failure } = state;
    if (item.use === 'dump') return undefined;
    if (fetched === undefined) return failure;
    if (!this.#isOld(state)) return undefined;
    const message = `${nameOf(item)} was last fetched at ${isoTime(fetched.checkedAt)} from ${fetched.url}; thresher goes on with that`;
    return { code: 'cache-old', message };
  }

  #isOld({ fetched }: ItemState): boolean {
    return fetched !== undefined && this.#parts.clock.now() - fetched.checkedAt > this.#parts.warnAge;
  }
}
