import { createHash } from 'node:crypto';
import { readPandaTime } from '../../clients/panda/times.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import type { PandaApi, PandaCommand } from '../../clients/panda/api.ts';
import type { ClockDifference } from '../../clients/panda/client.ts';
import type { Desk, Log, WorkerNews } from '../../plugins/contracts/index.ts';
import type { CarriedOut } from '../../plugins/contracts/panda-status.ts';
import { type Clock, givingWay } from '../../util/clock.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import { emptyKeysOf, isMeant, type KillFilter, readCommand, type ServerCommand } from './commands.ts';
import type { LinkMemory } from './memory.ts';
import { latestOrder, type OrderBook } from './order-book.ts';
import type { ServerHealth } from './server-health.ts';
import { isOrdered } from './sites.ts';
import type { Statistician } from './statistician.ts';

export interface CommandRunnerParts {
  readonly api: Pick<PandaApi, 'acquireCommands' | 'acknowledge'>;
  readonly memory: LinkMemory;
  readonly orders: OrderBook;
  readonly statistician: Pick<Statistician, 'ask'>;
  /** Reports workers again, whatever the server heard of them. */
  readonly reportAgain: (workers: readonly WorkerNews[], signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly health: ServerHealth;
  readonly host: string;
  /** undefined where that is not known. */
  readonly serverAhead: () => ClockDifference | undefined;
  /** How many commands one poll takes; with as many, there may be more at once. */
  readonly atOnce: number;
}

/** Commands that are remembered as carried out. An answer that comes twice comes soon. */
const mostDone = 200;
/** The same for those that end workers, which others push out of no memory: one that comes again late ends what was made since. */
const mostKills = 1000;
/** A server that refuses to hear of them takes them for lost: a command comes once all the same. */
const mostUnacknowledged = 500;
/** How often a command is tried: one that fails each time must not come again for good. */
const mostTries = 5;
const givenUp = 'given up';
/** A kill is not meant for workers that were made so long after the server made it, ms: it waited for a daemon that was away. */
const meantFor = latestOrder;
/** Sites that nobody here serves of which commands are logged: a server may name new ones without end. */
const mostStrangers = 100;
/** Outcomes that are kept for operators. */
const mostShown = 20;

/** What became of a command. */
interface Outcome {
  /** In words. */
  readonly text: string;
  /** Nothing was done: no queue here serves this site. */
  readonly stranger?: string;
  /** Nothing was done: no worker is meant. */
  readonly meetsNone?: boolean;
}

/** Takes the commands of the server, stores them before anything else, acknowledges them, and carries each out once. */
export class CommandRunner {
  readonly #parts: CommandRunnerParts;
  #shown: readonly CarriedOut[] = [];
  /** Ids that the server is not known to have acknowledged. */
  #unacknowledged: readonly number[] = [];
  /** Commands by name and site, for sites that no queue here serves: each is logged once. */
  readonly #strangers = new Set<string>();

  constructor(parts: CommandRunnerParts) {
    this.#parts = parts;
  }

  /** The last ones, newest first. */
  get shown(): readonly CarriedOut[] {
    return this.#shown;
  }

  /** After a start: carries out what the last run took and left. The server gives a command once. */
  async resume(desk: Desk, signal: AbortSignal): Promise<void> {
    const left = this.#parts.memory.commands;
    this.#unacknowledged = idsOf(left);
    // A kill may have been carried out, and not written down: it must not end what was made since.
    await this.#carryOut(left, desk, signal, takenAt);
  }

  /** @returns whether there may be more */
  async poll(desk: Desk, signal: AbortSignal): Promise<boolean> {
    const { api, memory, health, atOnce } = this.#parts;
    // The server gives a command once: one that cannot be stored would be lost.
    if (!(await memory.isStored())) return false;
    // Those that failed have their turn before later ones.
    await this.#carryOut(memory.commands, desk, signal, takenAt);
    const outcome = await api.acquireCommands(atOnce, signal);
    health.note('commands', outcome);
    if (outcome.kind === 'failed') return false;
    const taken = this.#parts.clock.now();
    const commands = await this.#notDone(outcome.data.map((command) => ({ ...command, taken })));
    if (commands.length > 0)
      await memory.change((kept) => ({ ...kept, commands: [...kept.commands, ...commands] }));
    this.#unacknowledged = [...this.#unacknowledged, ...idsOf(outcome.data)].slice(-mostUnacknowledged);
    await this.#acknowledge(signal);
    const useful = await this.#carryOut(commands, desk, signal);
    // A server that always has commands that none can read, or the same again, or for sites of others, or for workers that nobody has, or many orders of one
    // site, is asked no sooner for that.
    return outcome.data.length >= atOnce && useful * 2 >= atOnce;
  }

  /** The server gives a command once, but the same may be answered twice on the way. */
  async #notDone<Given extends PandaCommand>(given: readonly Given[]): Promise<Given[]> {
    const { memory } = this.#parts;
    await this.#readAll([...memory.commands, ...given]);
    const known = Map.groupBy(
      [...memory.done, ...memory.kills, ...memory.commands.map(keyOf)],
      (key) => key.split('@')[0] ?? '',
    );
    return given.filter((command) => {
      if (!isNamed(command)) return true;
      const key = keyOf(command);
      const same = known.get(`${command.command_id}`) ?? [];
      known.set(`${command.command_id}`, [...same, key]);
      return !same.some((one) => isSame(one, key));
    });
  }

  /** Each of many takes its time: others have their turn between two of them. */
  async #readAll(commands: readonly PandaCommand[]): Promise<ReadonlyMap<PandaCommand, ServerCommand>> {
    const giveWay = givingWay(this.#parts.clock);
    const read = new Map<PandaCommand, ServerCommand>();
    for (const given of commands) {
      await giveWay();
      read.set(given, meantBy(given));
    }
    return read;
  }

  async #acknowledge(signal: AbortSignal): Promise<void> {
    const ids = this.#unacknowledged;
    if (ids.length === 0) return;
    const outcome = await this.#parts.api.acknowledge(ids, signal);
    this.#parts.health.note('acknowledge', outcome);
    // The server takes an unacknowledged command for a lost one at most, and gives it to none: ids must not pile up.
    if (outcome.kind === 'ok' || !outcome.maybeDone) this.#unacknowledged = [];
  }

  /**
   * In their order: a kill must not reach the workers of a later order. Of several orders of one site the last one alone counts.
   * @returns how many were of use
   */
  async #carryOut(
    commands: LinkMemory['commands'],
    desk: Desk,
    signal: AbortSignal,
    madeUntil: (command: LinkMemory['commands'][number]) => number = () => Infinity,
  ): Promise<number> {
    const { memory, log, clock } = this.#parts;
    const read = await this.#readAll(commands);
    const replaced = replacedIn(read);
    const giveWay = givingWay(clock);
    let useful = 0;
    // What changed nothing is written down with what follows: after a crash it changes nothing again.
    let over: PandaCommand[] = [];
    const writeDown = () => {
      const keys = over.map(keyOf);
      const named = over.filter(isNamed).reverse();
      const [kills, others] = [true, false].map((ends) =>
        named.filter((one) => isKill(read.get(one)) === ends).map(keyOf),
      );
      over = [];
      return memory.change((kept) => ({
        ...kept,
        commands: kept.commands.filter((one) => !keys.includes(keyOf(one))),
        done: [...(others ?? []), ...(kept.done ?? [])].slice(0, mostDone),
        kills: [...(kills ?? []), ...(kept.kills ?? [])].slice(0, mostKills),
      }));
    };
    for (const [given, meant] of read) {
      // Each of many orders takes its time.
      await giveWay();
      if (signal.aborted) break;
      const { command_id: id, command } = given;
      const isReplaced = replaced.has(given);
      const done: Outcome | undefined = isReplaced
        ? { text: 'a later order of the site came with it' }
        : await this.#try(
            given,
            () =>
              this.#obey(meant, { id, meantUntil: this.#meantUntil(given, madeUntil(given)) }, desk, signal),
            signal,
          );
      if (done === undefined) continue;
      const { text: outcome, stranger, meetsNone = false } = done;
      over.push(given);
      if (!isReplaced && meant.kind !== 'unknown' && stranger === undefined) {
        if (!meetsNone) useful++;
        await writeDown();
      }
      const facts = { id, command: fromOutside(command), outcome };
      if (stranger !== undefined) this.#logStranger(meant.kind, stranger, facts);
      else if (meant.kind === 'unknown' || outcome.startsWith(givenUp))
        log.warn('a command of the PanDA server is not carried out', facts);
      else log.info('a command of the PanDA server is carried out', facts);
      this.#shown = [{ at: clock.now(), ...facts }, ...this.#shown].slice(0, mostShown);
    }
    if (over.length > 0) await writeDown();
    return useful;
  }

  /** Once for each site, and of so many sites: they come every five minutes, and a server may name others each time. */
  #logStranger(kind: string, site: string, facts: { readonly outcome: string }): void {
    const key = `${kind} ${site}`;
    if (this.#strangers.has(key) || this.#strangers.size > mostStrangers) return;
    this.#strangers.add(key);
    const { log } = this.#parts;
    if (this.#strangers.size <= mostStrangers)
      log.warn('a command of the PanDA server is for a site that no queue here serves', facts);
    else
      log.warn(
        'the PanDA server gives commands for many sites that no queue here serves: no more are named',
        {
          sites: mostStrangers,
        },
      );
  }

  /**
   * One command that fails stops neither the link nor later commands.
   * @returns undefined: the command failed, and is kept for the next poll
   * @throws what the memory does: then nothing can be carried out
   */
  async #try(
    given: LinkMemory['commands'][number],
    obey: () => Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    const { memory, log, clock } = this.#parts;
    try {
      return await obey();
    } catch (error) {
      // A daemon that stops, or may not act or cannot reach its database now, carries it out after the next start of the link.
      if (signal.aborted || !isOfCommand(error)) throw error;
      const tries = (given.tries ?? 0) + 1;
      const facts = { id: given.command_id, command: fromOutside(given.command), ...toReason(error) };
      log.error('a command of the PanDA server failed', { ...facts, tries, of: mostTries });
      if (tries >= mostTries) return { text: `${givenUp} after ${tries} tries: ${messageOf(error)}` };
      const key = keyOf(given);
      const failed = { ...given, tries, taken: given.taken ?? clock.now() };
      await memory.change((kept) => ({
        ...kept,
        commands: kept.commands.map((one) => (keyOf(one) === key ? failed : one)),
      }));
      return undefined;
    }
  }

  /**
   * Which workers are meant by a command that ends workers. Any server on the way may have told the time, and a wrong one: of its clock and ours
   * the one counts by which the command is older.
   * @param madeUntil ms UTC: no later one is meant in any case
   */
  #meantUntil({ creation_date: created }: PandaCommand, madeUntil: number): MeantUntil {
    const at = readPandaTime(created);
    const until = at === undefined ? Infinity : at + meantFor;
    const ahead = this.#parts.serverAhead()?.ahead ?? 0;
    const [surely, perhaps] = [until - Math.max(0, ahead), until - ahead];
    return { surely: Math.min(madeUntil, surely), perhaps: Math.min(madeUntil, perhaps) };
  }

  async #obey(
    command: ServerCommand,
    { id, meantUntil }: { readonly id: number; readonly meantUntil: MeantUntil },
    desk: Desk,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { orders, statistician, host, reportAgain, clock } = this.#parts;
    switch (command.kind) {
      case 'set-workers': {
        const queues = desk.ownQueues().filter(isOrdered);
        if (queues.some(({ name }) => computingSiteOf(name) === command.site))
          return { text: await orders.take(command, id, desk) };
        const site = fromOutside(command.site);
        return { text: `no queue with runMode slave here serves ${site}`, stranger: command.site };
      }
      case 'kill':
        return killed(command.filter, desk, host, { meantUntil, now: clock.now() });
      case 'kill-ids': {
        const ids = new Set(command.workerIds);
        const meant = (await desk.living()).filter(({ worker }) => ids.has(worker.workerId ?? 0));
        return end(desk, meant, 'the PanDA server counts its pilot as ended');
      }
      case 'activate': {
        const ids = new Set(command.workerIds);
        const meant = (await desk.living()).filter(({ worker }) => ids.has(worker.workerId ?? 0));
        try {
          await reportAgain(meant, signal);
        } catch (error) {
          // The server asks again. A link that ended here would begin with this very command.
          if (signal.aborted) throw error;
          return { text: `the reports failed: ${messageOf(error)}` };
        }
        return { text: `${meant.length} workers reported again`, meetsNone: meant.length === 0 };
      }
      case 'report-statistics': {
        const { site } = command;
        const isServed = desk.ownQueues().some(({ name }) => computingSiteOf(name) === site);
        const isOurs =
          isServed ||
          (await desk.census()).living.some(
            ({ computingSite, queue }) => (computingSite || computingSiteOf(queue)) === site,
          );
        // Names without end would be remembered, and asked of the server each time.
        if (!isOurs) {
          const text = `no queue here serves ${fromOutside(site)}, and none of its workers live`;
          return { text, stranger: site };
        }
        statistician.ask(site);
        return { text: 'statistics follow' };
      }
      case 'unknown':
        return { text: command.why };
    }
  }
}

/** ms UTC by our clock: workers that were made later are not meant. Where the server's clock is behind, it is not known of some. */
interface MeantUntil {
  readonly surely: number;
  readonly perhaps: number;
}

async function killed(
  filter: KillFilter,
  desk: Desk,
  host: string,
  { meantUntil, now }: { readonly meantUntil: MeantUntil; readonly now: number },
): Promise<Outcome> {
  const empty = emptyKeysOf(filter);
  if (empty.length > 0) {
    const text = `no worker is meant: ${empty.join(', ')} is an empty list or absent ("ALL" means all)`;
    return { text, meetsNone: true };
  }
  // Read afresh: those that are pending, those of removed queues, and those whose news still wait are among them.
  const fitting = (await desk.living()).filter((news) => isMeant(news, filter, host));
  // A clock that ran ahead wrote times from the future, and was set right since: no worker was made after now.
  const isBefore = ({ worker }: (typeof fitting)[number], until: number) =>
    Math.min(madeAt(worker), now) <= until;
  const meant = fitting.filter((news) => isBefore(news, meantUntil.surely));
  const spared = fitting.filter((news) => !isBefore(news, meantUntil.surely));
  const outcome = await end(desk, meant, 'the PanDA server asked for its end');
  if (spared.length === 0) return outcome;
  const adopted = spared.filter(({ worker }) => isAdopted(worker)).length;
  const unsure = spared.filter((news) => isBefore(news, meantUntil.perhaps)).length;
  const unknown = adopted === 0 ? '' : `; of ${adopted} it is known only that they were adopted later`;
  const behind =
    unsure === 0 ? '' : `; ${unsure} may be older, since the server's clock shows an earlier time`;
  const text = `${outcome.text}, and ${spared.length} others that fit are spared: they are younger than the command${unknown}${behind}`;
  return { ...outcome, text };
}

/** When a worker was made at the latest, ms UTC. An adopted one was there before, and the start that its backend names, if any, says so. */
function madeAt(worker: WorkerNews['worker']): number {
  const { creationTime, startTime } = worker;
  return Math.min(creationTime ?? 0, (isAdopted(worker) ? startTime : null) ?? Infinity);
}

/** The submitter wrote no time of submission: the worker was found on its backend, as after a loss of the database. */
function isAdopted({ status, submitTime }: WorkerNews['worker']): boolean {
  return status !== 'pending' && submitTime === null;
}

/** A kept command is not meant for workers that were made after it came, ms UTC. */
function takenAt({ taken = Infinity }: LinkMemory['commands'][number]): number {
  return taken;
}

function idsOf(commands: readonly PandaCommand[]): number[] {
  return commands.flatMap(({ command_id: id }) => (id > 0 ? [id] : []));
}

/** Orders behind which a later one of the same site stands: by its number, and by its time where both can be read. */
function replacedIn(commands: ReadonlyMap<PandaCommand, ServerCommand>): ReadonlySet<PandaCommand> {
  const replaced = new Set<PandaCommand>();
  const last = new Map<string, { readonly id: number; readonly at: number | undefined }>();
  for (const [given, read] of [...commands].toReversed()) {
    if (read.kind !== 'set-workers') continue;
    const { command_id: id } = given;
    const { site, createdAt: at } = read;
    const later = last.get(site);
    if (later !== undefined && id < later.id && (at ?? -Infinity) <= (later.at ?? Infinity))
      replaced.add(given);
    else last.set(site, { id, at });
  }
  return replaced;
}

/** Without a number no command can be told from another one. */
function isNamed({ command_id: id }: PandaCommand): boolean {
  return id > 0;
}

/** Whether it ends workers. */
function isKill(meant: ServerCommand | undefined): boolean {
  return meant?.kind === 'kill' || meant?.kind === 'kill-ids';
}

/**
 * Number, time and a sum of what a command says. The time is in it because a server whose database was made anew counts its commands from 1 again; of a
 * command without one the sum tells.
 */
function keyOf(given: PandaCommand): string {
  const known = keys.get(given);
  if (known !== undefined) return known;
  const { command_id: id, command, params, creation_date: created } = given;
  const time = created === undefined ? '' : (readPandaTime(created) ?? `text ${sumOf(created)}`);
  const key = `${id}@${time}@${sumOf(meaningOf(given) ?? [command, params])}`;
  keys.set(given, key);
  return key;
}

/** What a command that ends workers means: the same may be written in several ways. */
function meaningOf(given: PandaCommand): unknown {
  const meant = meantBy(given);
  if (meant.kind === 'kill-ids') return [meant.kind, [...new Set(meant.workerIds)].sort((a, b) => a - b)];
  if (meant.kind !== 'kill') return undefined;
  const values = Object.entries(meant.filter).map(([key, value]) => [
    key,
    value === 'ALL' ? value : [...value].sort(),
  ]);
  return [meant.kind, ...values.sort()];
}

/** The parameters of one may have a megabyte: it is read once. */
function meantBy(given: PandaCommand): ServerCommand {
  const known = readings.get(given);
  if (known !== undefined) return known;
  const meant = readCommand(given);
  readings.set(given, meant);
  return meant;
}

const readings = new WeakMap<PandaCommand, ServerCommand>();
const keys = new WeakMap<PandaCommand, string>();

function sumOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

/** Whether two keys of one number are of one command. */
function isSame(one: string, other: string): boolean {
  const [[, time = '', sum], [, otherTime = '', otherSum]] = [one.split('@'), other.split('@')];
  // A fraction of a second may be lost on the way, cut or rounded.
  const isNear = sum === otherSum && Math.abs(Number(time) - Number(otherTime)) <= 1000;
  if (/^\d+$/.test(time) && /^\d+$/.test(otherTime)) return time === otherTime || isNear;
  return sum === otherSum && (time === otherTime || time === '' || otherTime === '');
}

async function end(desk: Desk, meant: readonly WorkerNews[], reason: string): Promise<Outcome> {
  if (meant.length > 0)
    await desk.end(
      meant.map(({ origin }) => origin),
      reason,
    );
  return { text: `${meant.length} workers are asked to end`, meetsNone: meant.length === 0 };
}

/** Whether a failure is one of the command itself, which may fail each time. */
function isOfCommand(error: unknown): boolean {
  const { code } = toReason(error);
  const isOfDatabase = error instanceof Error && 'code' in error && /SQLITE/.test(String(error.code));
  return !isOfDatabase && !/^(store-|lease-|shutting-down$)/.test(code);
}
