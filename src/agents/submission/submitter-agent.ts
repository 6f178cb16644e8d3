import { applyLimits, backendLimiter, total } from '../../limits/limiters.ts';
import type { Preflight, Source } from '../../plugins/contracts/index.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Origin } from '../../worker/worker.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import type { WaitingBoard } from '../sources/waiting-board.ts';
import { keyOf, withoutOrigins } from './entries.ts';
import { IntentRecorder, type Recorded, type RecorderParts } from './intend.ts';
import { type LimitOptions, type LimitParts, QueueLimits } from './limit.ts';
import { concludePass, type Conclusion, type Pass } from './pass.ts';
import { complete, completed, type Refused } from './payloads.ts';
import { PreflightLog } from './preflight-log.ts';
import { IntentSettler, type SettlerParts } from './settle.ts';
import { type AskerParts, SourceAsker, type Wanted } from './source-asker.ts';
import { IntentSender, type SenderParts } from './submit.ts';
import { type Waiting, whyWaiting } from './why-waiting.ts';

export interface SubmitterOptions extends LimitOptions {
  /** Writes down after each pass why no more were submitted. A failure is one of the pass. */
  report(reasons: readonly Reason[]): Promise<void>;
}

export type SubmitterParts = LimitParts &
  SettlerParts &
  AskerParts &
  RecorderParts &
  SenderParts & {
    /** Learns why requests wait. */
    readonly waiting: WaitingBoard;
  };

/** Keeps one queue at its number of workers. `pass.ts` says what a pass looks at; each phase has a file of its own. */
export class SubmitterAgent {
  readonly #runtime: QueueRuntime;
  readonly #parts: SubmitterParts;
  readonly #options: SubmitterOptions;
  readonly #limits: QueueLimits;
  readonly #settler: IntentSettler;
  readonly #asker: SourceAsker;
  readonly #recorder: IntentRecorder;
  readonly #sender: IntentSender;
  readonly #preflight: PreflightLog;
  /** Submissions of new workers of which some were accepted. */
  #submissions = 0;

  constructor(runtime: QueueRuntime, parts: SubmitterParts, options: SubmitterOptions) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#options = options;
    this.#limits = new QueueLimits(runtime, parts, options);
    this.#sender = new IntentSender(runtime, parts, this.#limits);
    this.#settler = new IntentSettler(runtime, parts, this.#limits, this.#sender);
    this.#asker = new SourceAsker(runtime, parts);
    this.#recorder = new IntentRecorder(runtime, parts);
    this.#preflight = new PreflightLog(runtime.config.name, parts.log);
  }

  /** @returns in how many ms the next pass is due, where that is sooner than usual */
  async pass(): Promise<number | undefined> {
    try {
      const { reasons, nextIn } = await this.#run();
      await this.#options.report(reasons);
      return nextIn;
    } catch (error) {
      const reason = toReason(error);
      if (this.#runtime.current) this.#parts.waiting.failed(this.#runtime.config.name, reason);
      await this.#options.report([reason]);
      throw error;
    }
  }

  async #run(): Promise<Conclusion> {
    const { closed, unknown } = await this.#limits.closed();
    const refused = unknown === undefined ? await this.#settle() : undefined;
    const before = this.#submissions;
    const conclusion = this.#runtime.current
      ? await this.#submitNew(closed)
      : { reasons: [onlyFollowed], nextIn: undefined };
    // If new ones were accepted, it is not the backend that refuses.
    if (refused !== undefined && this.#submissions === before) throw refused;
    if (refused !== undefined)
      this.#parts.log.warn('workers that were tried again were refused, and new ones accepted', {
        queue: this.#runtime.config.name,
        ...toReason(refused),
      });
    return conclusion;
  }

  /** @returns why those that were tried again were not accepted: what is wrong with them keeps no others from their submission */
  async #settle(): Promise<ThresherError | undefined> {
    try {
      await this.#settler.settle();
      return undefined;
    } catch (error) {
      if (error instanceof ThresherError && error.code === 'submit-failed') return error;
      throw error;
    }
  }

  async #submitNew(closed: Reason | undefined): Promise<Conclusion> {
    const asked = this.#sources();
    const asking = await this.#asker.ask(() => this.#limits.room());
    if (asking.entries.length === 0) return this.#wantNothing(asking, closed);
    const limits = await this.#limits.look(asking.entries);
    const allowed = applyLimits(asking.entries, limits);
    if (total(allowed.groups) === 0) return this.#conclude({ wanted: asking, first: allowed });

    const preflight = await this.#askBackend();
    const roomOnly = [...limits, backendLimiter(preflight)];
    const judged = await this.#asker.judge(asking.entries, (some) => applyLimits(some, roomOnly).groups);
    // Those behind them have their room in this pass already.
    const isNews = judged.isNews && asking.beyond.size > 0;
    const toServe = withRefused(asking, { ...judged, isNews });
    if (toServe.entries.length === 0) return this.#wantNothing(toServe, closed);
    const first = applyLimits(toServe.entries, limits);
    // Payloads of workers that the backend has no room for are not brought.
    const brought = await this.#asker.bring(applyLimits(first.groups, [backendLimiter(preflight)]).groups);
    // Where some did not come, others have their room.
    const came = completed(first.groups, brought);
    const last = await this.#asker.judge(came, (some) => applyLimits(some, roomOnly).groups);
    const wanted = withRefused(withRefused(toServe, brought), last);
    const toMake = withRefused({ ...wanted, entries: came }, last).entries;
    const { final, recorded } = await this.#limits.exclusively(async () => {
      const limitsNow = [...(await this.#limits.lookAgain(wanted.entries)), backendLimiter(preflight)];
      // A source that was made anew meanwhile has not counted these: it would ask for others in their place, and both would come.
      const now = this.#sources();
      const standing = toMake.filter(({ kind }) => now.get(kind) === asked.get(kind));
      const final = applyLimits(standing, limitsNow);
      const groups = complete(final.groups, last.judged);
      if (total(groups) === 0 || this.#runtime.replaced === true) return { final, recorded: nothing };
      const recorded = await this.#recorder.record(groups);
      this.#limits.intentsRecorded(recorded.workers.length);
      return { final, recorded };
    });
    const served = this.#noteServed(recorded);
    const { workers: intents, conflicts } = recorded;
    if (intents.length === 0) return this.#conclude({ wanted, first, final, conflicts }, served);

    // Before the submission: should it fail, these requests are those that wait.
    this.#noteWaiting(wanted, whyWaiting([first, final]), served);
    await this.#parts.ledger.inFlight.during(intents, () => this.#sender.sendNew(intents));
    this.#submissions++;
    const rest = withoutOrigins(wanted.entries, served);
    const closing = applyLimits(rest, await this.#limits.look(rest));
    const again = wanted.again || [...brought.outcomes.values()].includes('left');
    return this.#conclude({ wanted: { ...wanted, again }, first, final, closing, conflicts }, served);
  }

  /** Those that run now, by kind. */
  #sources(): ReadonlyMap<string, Source> {
    return new Map(this.#runtime.sources.map(({ kind, source }) => [kind, source]));
  }

  /** The queue's own state comes first in any case. */
  #wantNothing(wanted: Wanted, closed: Reason | undefined): Conclusion {
    this.#noteWaiting(wanted, []);
    const { reasons, standing, again } = wanted;
    const why = [...reasons, ...standing];
    const nextIn = again ? 0 : undefined;
    return { reasons: closed === undefined ? why : [closed, ...why], nextIn };
  }

  /** @returns the keys of the origins that wait no more */
  #noteServed({ named, conflicts }: Recorded): ReadonlySet<string> {
    const byKind = (origins: readonly Origin[]) => Map.groupBy(origins, ({ kind }) => kind);
    for (const [kind, origins] of byKind(named)) this.#asker.recorded(kind, origins);
    for (const [kind, origins] of byKind(conflicts)) this.#asker.conflicted(kind, origins);
    return new Set([...named, ...conflicts].map((origin) => keyOf(origin.kind, origin)));
  }

  async #askBackend(): Promise<Preflight> {
    const { config, submitter } = this.#runtime;
    const preflight = await this.#parts.calls.call(`preflight of ${config.name}`, (signal) =>
      submitter.preflight(signal),
    );
    this.#preflight.takeProblems(preflight.problems);
    this.#preflight.takeNotes(preflight.notes ?? []);
    return preflight;
  }

  #conclude(pass: Pass, served: ReadonlySet<string> = new Set()): Conclusion {
    const { wanted, first, final, closing } = pass;
    this.#noteWaiting(wanted, whyWaiting([first, final, closing]), served);
    const connections = [...this.#runtime.connected.values()].map(({ connection }) => connection.note);
    const notes = [...this.#preflight.notes, ...connections.filter((note) => note !== undefined)];
    return concludePass(pass, notes, this.#limits.nextIn);
  }

  /** Writes down for the sources which of their requests wait, and why. */
  #noteWaiting(wanted: Wanted, why: readonly Waiting[], served: ReadonlySet<string> = new Set()): void {
    const counts = new Map(wanted.beyond);
    for (const { kind, requests } of withoutOrigins(wanted.entries, served))
      if (requests !== undefined) counts.set(kind, (counts.get(kind) ?? 0) + requests.length);
    this.#parts.waiting.set(this.#runtime.config.name, { why: [...wanted.refused, ...why], counts });
  }
}

/** A request whose payload was refused counts as one that is refused at once; others have its room in a pass that is due now. */
function withRefused(wanted: Wanted, { refused, reasons, isNews }: Refused): Wanted {
  const keys = refused.flatMap(({ kind, requests }) => requests.map(({ origin }) => keyOf(kind, origin)));
  return {
    ...wanted,
    entries: withoutOrigins(wanted.entries, new Set(keys)),
    refused: [...wanted.refused, ...refused],
    standing: [...wanted.standing, ...reasons],
    again: wanted.again || isNews,
  };
}

const onlyFollowed: Reason = { code: 'queue-removed', message: 'followed with an earlier configuration' };
const nothing: Recorded = { workers: [], named: [], conflicts: [] };
