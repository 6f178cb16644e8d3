import type { Log } from '../../plugins/contracts/index.ts';
import type { Command, CommandResult, OpenCommand } from '../../store/commands.ts';
import type { KillFilter } from '../../store/workers.ts';
import type { Clock } from '../../util/clock.ts';
import { queuedStatuses } from '../../worker/status.ts';
import { toReason } from '../../worker/errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LiveWorker } from '../ledger/live-table.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Emit } from '../events.ts';

export interface SweepResult {
  readonly count: number;
  /** The failures that kept some queues or connections from being swept. */
  readonly errors: readonly string[];
  /** The workers that were left in place on purpose, and why. */
  readonly kept: readonly string[];
}

export interface CommandTargets {
  /** Names of queues that are configured or still have workers. */
  queues(): ReadonlySet<string>;
  /** Whether the configuration that a worker is followed with leads to where it is. */
  leads(worker: LiveWorker): boolean;
  /** Something about this queue changed that its submitter should look at. */
  wakeSubmitter(queue: string): void;
  /** Sweeps all queues now; @returns how many workers were removed. */
  sweepNow(): Promise<SweepResult>;
  /** Removes what the last listings called orphans; @returns how many are gone. */
  removeOrphans(): Promise<SweepResult>;
  /** Where several daemons share the factory. Absent: there is no other. */
  readonly shared?: SharedCommands;
}

/** One of the daemons that share a factory carries out commands. The others heed what it wrote down of their queues. */
export interface SharedCommands {
  isInCharge(): boolean;
  /** Another daemon may have steered queues that this one has. */
  steeredElsewhere(): void;
}

export interface CommandParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly events: Emit;
}

/** Carries out what operators ask on the command line. */
export class CommandAgent {
  readonly #parts: CommandParts;
  readonly #targets: CommandTargets;
  /** Whether commands may be open without a sign of it: at the start, and after a failed pass. */
  #lookAnyway = true;
  #wasInCharge = true;
  /** Sweeps under way, by their command. */
  readonly #sweeping = new Set<number>();

  constructor(parts: CommandParts, targets: CommandTargets) {
    this.#parts = parts;
    this.#targets = targets;
  }

  /** Only what steers queues, before anything runs: the rest needs running agents. */
  async carryOutControls(): Promise<void> {
    if (this.#targets.shared?.isInCharge() === false) return;
    for (const open of await this.#parts.store.commands.open()) {
      if (['pause', 'drain', 'resume'].includes(open.command.kind)) await this.#finish(open);
    }
  }

  async pass(): Promise<void> {
    const { store, events } = this.#parts;
    // Another process writes here only to leave a command.
    const { shared } = this.#targets;
    const isInCharge = shared?.isInCharge() ?? true;
    // A daemon that comes to be in charge looks for what its predecessor left.
    if (isInCharge && !this.#wasInCharge) this.#lookAnyway = true;
    this.#wasInCharge = isInCharge;
    if (!store.changedElsewhere() && !this.#lookAnyway) return;
    this.#lookAnyway = true;
    const commands = await store.commands.open();
    events.emit('writtenElsewhere', { commands: commands.length });
    if (shared !== undefined) {
      await this.#parts.ledger.heedKills();
      shared.steeredElsewhere();
    }
    if (!isInCharge) {
      this.#lookAnyway = false;
      return;
    }
    for (const open of commands) {
      // A sweep waits for backends, some of which may be dead: no other command waits for it.
      if (open.command.kind === 'sweep') this.#sweepBeside(open);
      else await this.#finish(open);
    }
    this.#lookAnyway = false;
  }

  #sweepBeside(open: OpenCommand): void {
    if (this.#sweeping.has(open.id)) return;
    this.#sweeping.add(open.id);
    this.#finish(open)
      .catch((error: unknown) => {
        this.#lookAnyway = true;
        this.#parts.log.error('sweep failed', { ...toReason(error) });
      })
      .finally(() => this.#sweeping.delete(open.id));
  }

  async #finish({ id, command }: OpenCommand): Promise<void> {
    const { clock, log, store } = this.#parts;
    const now = clock.now();
    const takenAt = await store.commands.take(id, now);
    const { ok, message } = await this.#carryOut(command, takenAt < now ? takenAt : undefined);
    log.info('command carried out', { ...command, ok, result: message });
    await store.commands.finish(id, { ok, message });
  }

  async #carryOut(command: Command, before: number | undefined): Promise<CommandResult> {
    try {
      return await this.#do(command, before);
    } catch (error) {
      return { ok: false, message: toReason(error).message };
    }
  }

  /** @param before when a daemon that died on it had taken it up: no workers that were made since are meant */
  async #do(command: Command, before: number | undefined): Promise<CommandResult> {
    switch (command.kind) {
      case 'pause':
        return this.#control(command.queue, { mode: 'paused', reason: command.reason });
      case 'drain': {
        const result = await this.#control(command.queue, { mode: 'draining', reason: command.reason });
        if (!result.ok) return result;
        // Queued workers do not begin any more; running ones may end by themselves.
        const filter = { queue: command.queue, statuses: queuedStatuses };
        const asked = await this.#parts.ledger.requestKill(filter, `drain: ${command.reason}`);
        return { ok: true, message: `${result.message}; ${asked} queued workers are cancelled` };
      }
      case 'resume':
        return this.#control(command.queue, null);
      case 'kill': {
        const { ids } = command;
        const { live } = this.#parts.ledger;
        const these = ids.flatMap((id) => live.get(id) ?? []);
        return this.#kill(these, { ids }, (asked) => `${asked} of ${ids.length} workers`);
      }
      case 'kill-queue': {
        const { queue, statuses } = command;
        const isMeant = (worker: LiveWorker) =>
          worker.queue === queue && (statuses?.includes(worker.status) ?? true);
        const these = [...this.#parts.ledger.live.all()].filter(isMeant);
        const filter = { queue, statuses, madeUntil: before };
        return this.#kill(these, filter, (asked) => `${asked} workers of ${queue}`);
      }
      case 'sweep': {
        const { count, errors, kept } = await (command.orphans
          ? this.#targets.removeOrphans()
          : this.#targets.sweepNow());
        const done = command.orphans ? `${count} orphans were removed` : `${count} workers were swept`;
        return { ok: errors.length === 0, message: [done, ...kept, ...errors].join('; ') };
      }
    }
  }

  /** Asks for these ends. What no configuration leads to is not said to be under way: nothing can end it. */
  async #kill(
    workers: readonly LiveWorker[],
    filter: KillFilter,
    what: (asked: number) => string,
  ): Promise<CommandResult> {
    const { ledger } = this.#parts;
    const reason = 'killed by an operator';
    const beyond = workers.filter((worker) => !this.#targets.leads(worker));
    // It is written down: should a configuration lead there again, these end.
    const beyondIds = beyond.map(({ workerId }) => workerId);
    if (beyond.length > 0) await ledger.requestKill({ ids: beyondIds, madeUntil: filter.madeUntil }, reason);
    const asked = await ledger.requestKill(filter, reason);
    const message = `${what(asked)} are being ended`;
    if (beyond.length === 0) return { ok: true, message };
    const places = [...new Set(beyond.map(({ placement }) => placement))];
    const which = beyondIds.length > 5 ? `${beyondIds.slice(0, 5).join(', ')} ...` : beyondIds.join(', ');
    const why = `${beyond.length} cannot be ended (${which}): no configuration leads to ${places.join(', ')} any more; put a queue with this connection into the queue file, or end them there by hand`;
    return { ok: false, code: 'worker-unreachable', message: `${message}; ${why}` };
  }

  async #control(
    queue: string,
    control: { readonly mode: 'paused' | 'draining'; readonly reason: string } | null,
  ): Promise<CommandResult> {
    const { store, clock } = this.#parts;
    const known = this.#targets.queues().has(queue);
    const done =
      known && (await store.queues.setControl(queue, control && { ...control, since: clock.now() }));
    if (!done) return { ok: false, message: `there is no queue ${queue}` };
    this.#targets.wakeSubmitter(queue);
    return { ok: true, message: `${queue} is ${control?.mode ?? 'resumed'}` };
  }
}
