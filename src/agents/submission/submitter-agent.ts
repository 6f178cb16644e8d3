import { applyLimits, backendLimiter, total } from '../../limits/limiters.ts';
import type { Preflight } from '../../plugins/contracts/index.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { QueueRuntime } from '../queue-runtime.ts';
import { IntentRecorder, type RecorderParts } from './intend.ts';
import { type LimitOptions, type LimitParts, QueueLimits } from './limit.ts';
import { concludePass, type Conclusion, type Pass, type Wanted } from './pass.ts';
import { PreflightLog } from './preflight-log.ts';
import { IntentSettler, type SettlerParts } from './settle.ts';
import { IntentSender, type SenderParts } from './submit.ts';
import { scaleDemand } from './worker-maker.ts';

export interface SubmitterOptions extends LimitOptions {
  /** Writes down after each pass why no more were submitted. A failure is one of the pass. */
  report(reasons: readonly Reason[]): Promise<void>;
}

export type SubmitterParts = LimitParts & SettlerParts & RecorderParts & SenderParts;

/** Keeps one queue at its number of workers. `pass.ts` says what a pass looks at; each phase has a file of its own. */
export class SubmitterAgent {
  readonly #runtime: QueueRuntime;
  readonly #parts: SubmitterParts;
  readonly #options: SubmitterOptions;
  readonly #limits: QueueLimits;
  readonly #settler: IntentSettler;
  readonly #recorder: IntentRecorder;
  readonly #sender: IntentSender;
  readonly #preflight: PreflightLog;

  constructor(runtime: QueueRuntime, parts: SubmitterParts, options: SubmitterOptions) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#options = options;
    this.#limits = new QueueLimits(runtime, parts, options);
    this.#sender = new IntentSender(runtime, parts, this.#limits);
    this.#settler = new IntentSettler(runtime, parts, this.#limits, this.#sender);
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
      await this.#options.report([toReason(error)]);
      throw error;
    }
  }

  async #run(): Promise<Conclusion> {
    const { closed, unknown } = await this.#limits.closed();
    if (unknown === undefined) await this.#settler.settle();
    if (!this.#runtime.current) {
      const removed = { code: 'queue-removed', message: 'followed with an earlier configuration' };
      return { reasons: [removed], nextIn: undefined };
    }
    const wanted = await this.#want();
    // The queue's own state comes first, and no limit says it where nothing is wanted.
    if (closed !== undefined && total(wanted.groups) === 0)
      return { reasons: [closed, ...wanted.reasons], nextIn: undefined };
    const first = applyLimits(wanted.groups, await this.#limits.look(wanted.groups));
    if (total(first.groups) === 0) return this.#conclude({ wanted, first });

    const preflight = await this.#askBackend();
    const { final, intents } = await this.#limits.exclusively(async () => {
      const limits = [...(await this.#limits.lookAgain(wanted.groups)), backendLimiter(preflight)];
      const final = applyLimits(first.groups, limits);
      if (total(final.groups) === 0) return { final, intents: [] };
      const intents = await this.#recorder.record(final.groups);
      this.#limits.intentsRecorded(intents.length);
      return { final, intents };
    });
    if (intents.length === 0) return this.#conclude({ wanted, first, final });

    await this.#parts.ledger.inFlight.during(intents, () => this.#sender.sendNew(intents));
    const closing = applyLimits(wanted.groups, await this.#limits.look(wanted.groups));
    return this.#conclude({ wanted, first, final, closing });
  }

  async #want(): Promise<Wanted> {
    const { config, sources, requirements } = this.#runtime;
    const { mapType, runMode } = config.options;
    const queue = { name: config.name, requirements, mapType, runMode };
    const answers = [];
    for (const { kind, source, own, options } of sources) {
      answers.push(
        await this.#parts.calls.call(`${kind} of ${config.name}`, (signal) =>
          source.wanted({ ...queue, own, options }, signal),
        ),
      );
    }
    return {
      groups: scaleDemand(
        answers.flatMap(({ groups }) => groups),
        config.worker,
      ),
      reasons: answers.flatMap(({ reasons }) => reasons),
    };
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

  #conclude(pass: Pass): Conclusion {
    const connections = [...this.#runtime.connected.values()].map(({ connection }) => connection.note);
    const notes = [...this.#preflight.notes, ...connections.filter((note) => note !== undefined)];
    return concludePass(pass, notes, this.#limits.nextIn);
  }
}
