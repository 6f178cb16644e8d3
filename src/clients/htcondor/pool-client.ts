import { type AdText, AdTexts, Lines, ownCopy } from './ad-text.ts';
import { classAdName } from './classad.ts';
import { type ClientOptions, HTCondorClient } from './client.ts';
import { HTCondorError } from './errors.ts';
import { type Ad, JsonObjects } from './json-objects.ts';
import { Matchmaker } from './matchmaker.ts';
import { CondorTools, Kept, mostKept, type ScheddPlace, type Tool } from './tools.ts';

/** How a pool is reached: a schedd without its name. */
export type PoolPlace = Omit<ScheddPlace, 'name' | 'proxyFile'>;

export interface PoolClientOptions extends Omit<ClientOptions, 'place'> {
  readonly place: PoolPlace;
}

/** Kinds of ads that a collector keeps, as options of condor_status. */
export type AdKind = 'schedd' | 'negotiator' | 'collector' | 'slots';

export interface AdQuestion {
  /** An expression of safe parts; see `classad.ts`. */
  readonly constraint?: string;
  /** `MyAddress` of one daemon, which is asked itself: the collector has what that one said last. */
  readonly direct?: string;
  /** ms; default: that of all questions. */
  readonly timeLimit?: number;
  /** All if empty. */
  readonly attributes: readonly string[];
}

/** A pool, through HTCondor's own commands. Every call throws HTCondorError. */
export interface Pool {
  /** Ads of the collector, each read as it comes. @param read undefined: it is left out */
  ads<T>(
    kind: AdKind,
    question: AdQuestion,
    read: (ad: Ad) => T | undefined,
    signal: AbortSignal,
  ): Promise<T[]>;
  /** The same in HTCondor's own text, expressions unevaluated: to be handed to its matchmaking. */
  adTexts<T>(
    kind: AdKind,
    question: AdQuestion,
    read: (ad: AdText) => T | undefined,
    signal: AbortSignal,
  ): Promise<T[]>;
  /**
   * How much of concurrency limits the negotiator of this name counts as taken. @param names of limits, lower-case with `_` for dots: users
   * make up any number of others
   */
  limitsInUse(
    negotiator: string,
    names: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, number>>;
  /** Settings of a daemon, by name; without those that it does not have. @param address `MyAddress` of its ad */
  configuration(
    address: string,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>>;
  /** A schedd of the pool. The same client for the same name: its bound of commands at once holds for all who ask it. */
  schedd(name: string): HTCondorClient;
  /** HTCondor's own matchmaking, which asks no daemon. */
  readonly matchmaker: Matchmaker;
}

/** Schedds of a pool that are kept in mind. */
const mostSchedds = 10_000;

/** ms */
const timeLimits = { ask: 60_000 } as const;

const kinds: Readonly<Record<AdKind, readonly string[]>> = {
  schedd: ['-schedd'],
  negotiator: ['-negotiator'],
  collector: ['-collector'],
  slots: ['-slot'],
};

export class PoolClient implements Pool {
  readonly matchmaker: Matchmaker;
  readonly #options: PoolClientOptions;
  readonly #tools: CondorTools;
  readonly #ask: number;
  readonly #schedds = new Map<string, HTCondorClient>();

  constructor(options: PoolClientOptions) {
    this.#options = options;
    this.#tools = new CondorTools(options);
    this.#ask = options.timeLimits?.ask ?? timeLimits.ask;
    this.matchmaker = new Matchmaker(this.#tools);
  }

  async ads<T>(
    kind: AdKind,
    question: AdQuestion,
    read: (ad: Ad) => T | undefined,
    signal: AbortSignal,
  ): Promise<T[]> {
    const objects = new JsonObjects();
    return this.#status(kind, question, ['-json'], objects, read, signal);
  }

  async adTexts<T>(
    kind: AdKind,
    question: AdQuestion,
    read: (ad: AdText) => T | undefined,
    signal: AbortSignal,
  ): Promise<T[]> {
    return this.#status(kind, question, ['-long'], new AdTexts(), read, signal);
  }

  async limitsInUse(
    negotiator: string,
    names: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, number>> {
    const used = new Map<string, number>();
    const lines = new Lines();
    const onOutput = (text: string) => {
      for (const line of lines.push(text)) {
        const [, written = '', amount] = /^ConcurrencyLimit_(\S+) = ([\d.e+-]+)\s*$/i.exec(line) ?? [];
        const name = written.toLowerCase();
        if (amount !== undefined && names.has(name)) used.set(ownCopy(name), Number(amount));
      }
    };
    // Without a negotiator's name it reads ads of the collector, in which no limit stands.
    const args = ['-negotiator', negotiator, '-long'];
    // As it comes, and without those that nobody asked about: jobs that run may name any number of limits.
    await this.#tools.succeed(
      { command: 'condor_userprio', args, target: 'pool', changes: false, timeLimit: this.#ask, onOutput },
      signal,
    );
    onOutput('\n');
    return used;
  }

  async configuration(
    address: string,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    if (names.length === 0) return new Map();
    const args = ['-address', address, ...names.map(settingName)];
    const text = await this.#succeed('condor_config_val', args, 'files', signal);
    const lines = text.split('\n').slice(0, -1);
    if (lines.length !== names.length)
      throw this.#unreadable('condor_config_val', 'files', `${lines.length} lines for ${names.length} names`);
    return new Map(
      names.flatMap((name, index): [string, string][] => {
        const value = lines[index]?.trim() ?? '';
        return value === 'Not defined' ? [] : [[name, value]];
      }),
    );
  }

  schedd(name: string): HTCondorClient {
    const known = this.#schedds.get(name);
    if (known !== undefined) return known;
    // Of a collector that names ever new ones the oldest are most likely gone.
    const [oldest] = this.#schedds.keys();
    if (oldest !== undefined && this.#schedds.size >= mostSchedds) this.#schedds.delete(oldest);
    const client = new HTCondorClient({ ...this.#options, place: { ...this.#options.place, name } });
    this.#schedds.set(name, client);
    return client;
  }

  async #status<A, T>(
    kind: AdKind,
    { constraint, attributes, direct, timeLimit = this.#ask }: AdQuestion,
    form: readonly string[],
    reader: { push: (text: string) => A[]; readonly complete: boolean },
    read: (ad: A) => T | undefined,
    signal: AbortSignal,
  ): Promise<T[]> {
    const args = [
      ...kinds[kind],
      ...(direct === undefined ? [] : ['-direct', direct]),
      ...form,
      ...(attributes.length === 0 ? [] : ['-attributes', attributes.map(classAdName).join(',')]),
      ...(constraint === undefined ? [] : ['-constraint', constraint]),
    ];
    const found = new Kept<T>();
    const onOutput = (text: string) => {
      for (const ad of reader.push(text)) found.add(read(ad));
    };
    const target = direct === undefined ? 'pool' : 'files';
    const tool: Tool = {
      command: 'condor_status',
      args,
      target,
      changes: false,
      timeLimit,
      onOutput,
      // What is kept of a text may keep all of the text around it.
      outputLimit: mostKept.characters,
    };
    await this.#tools.succeed(tool, signal);
    // Slots at the end of a list that is cut off would look gone.
    if (!reader.complete) throw this.#unreadable('condor_status', 'pool', 'a list without end');
    return found.all;
  }

  async #succeed(
    command: Tool['command'],
    args: readonly string[],
    target: 'pool' | 'files',
    signal: AbortSignal,
  ): Promise<string> {
    const tool: Tool = { command, args, target, changes: false, timeLimit: this.#ask };
    return (await this.#tools.succeed(tool, signal)).stdout;
  }

  #unreadable(command: Tool['command'], target: 'pool' | 'files', what: string): HTCondorError {
    const called = this.#tools.called({ command, args: [], target, changes: false, timeLimit: 0 });
    const message = `${command} for ${called.place} ended well but wrote ${what}`;
    return new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
  }
}

/** @throws RangeError for what is no name of a setting, so that none becomes an option */
function settingName(name: string): string {
  if (!/^[A-Za-z_][\w.]*$/.test(name)) throw new RangeError(`"${name}" is no name of a setting`);
  return name;
}
