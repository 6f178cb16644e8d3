import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../../clients/program.ts';
import type { Clock } from '../../util/clock.ts';
import type { FileLane } from '../../util/file-lane.ts';
import { hasCode } from '../../util/files.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { removeTree } from '../../util/remove-tree.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { insideScript } from './namespace-script.ts';

/** How a user gets a PID namespace: options of the `unshare` that makes it, and the command that enters it. */
export interface Way {
  readonly title: string;
  readonly options: string;
  readonly enter: string;
}

const mountProc = 'unshare --mount-proc --propagation slave --';

/**
 * Ways to a PID namespace. Order matters: the first that works here counts. Source: unshare(1) and setpriv(1) of util-linux
 * 2.38, user_namespaces(7).
 */
export const ways: readonly Way[] = [
  { title: 'with the right to make it (root)', options: '--pid', enter: mountProc },
  {
    title: 'in a user namespace, as the same user',
    options: '--user --map-current-user --keep-caps --pid',
    // The capabilities are for the mount alone.
    enter: `${mountProc} setpriv --inh-caps=-all --ambient-caps=-all --`,
  },
  // util-linux before 2.36 cannot keep the user: the pilot sees itself as root, with its own user's rights.
  { title: 'in a user namespace, as its root', options: '--user --map-root-user --pid', enter: mountProc },
];

/** The values of a queue's `pidNamespace`. */
export type Wish = 'auto' | 'required' | 'none';

/** Whether this machine gives its user PID namespaces. */
export type Availability =
  { readonly kind: 'available'; readonly way: Way } | { readonly kind: 'missing'; readonly why: string };

/** A queue's decision about it: `way` is how its workers start; the operator hears `note` and `problem`. */
export interface Decision {
  readonly way?: Way;
  readonly note?: Reason;
  readonly problem?: Reason;
}

export function decide(wish: Wish, availability: Availability): Decision {
  if (wish === 'none') return {};
  if (availability.kind === 'available') return { way: availability.way };
  const what = `no PID namespace can be made for workers: ${availability.why}`;
  if (wish === 'required')
    return {
      problem: { code: 'pid-namespace-required', message: `pidNamespace is "required", but ${what}` },
    };
  const message = `${what}; a worker can see and end processes of its user, this daemon too`;
  return { note: { code: 'pid-namespace-missing', message } };
}

/** The same for `check-config --server`. */
export function toProblems({ note, problem }: Decision): DefinitionProblem[] {
  const pointer = '/pidNamespace';
  if (problem?.code === 'pid-namespace-required')
    return [{ pointer, code: 'pid-namespace-required', message: problem.message }];
  if (problem !== undefined) return [{ pointer, code: 'server-unknown', message: problem.message }];
  if (note === undefined) return [];
  return [{ pointer, code: 'pid-namespace-missing', severity: 'warning', message: note.message }];
}

/** The shim's words before a worker's own command. */
export function entering(way: Way, script: string, directory: string): string[] {
  return ['/bin/sh', script, directory, way.options, way.enter];
}

/** How long the making of one namespace may take, ms. */
const timeLimit = 10_000;
/** How long a failure counts, ms: an administrator may allow namespaces at any time. */
const failureCounts = 60_000;

/** The command sees itself under a small pid of its own, without a parent: /proc is the namespace's. */
const trial = [
  'IFS= read -r stat </proc/self/stat || exit 1',
  'set -- $stat',
  '[ "$1" = "$$" ] && [ "$4" = 0 ] && [ "$$" -lt 100 ] && echo alone',
].join('\n');

/** Workers will run here, and so thresher tries namespaces here. */
export interface TrialPlace {
  /** The work directory: other directories may be read-only for the daemon, and a file system may know no FIFOs. */
  readonly root: string;
  readonly lane: FileLane;
  /** Hears of a trial's directory that cannot be removed. */
  readonly tell: (damage: { readonly path: string; readonly why: string }) => void;
}

interface Asked {
  readonly answer: Promise<Availability>;
  /** ms of the monotonic clock */
  readonly at: number;
  /** ms UTC */
  readonly time: number;
}

/** Finds out by trying whether PID namespaces can be made; one connection's queues share the answer. */
export class PidNamespaces {
  readonly #place: TrialPlace;
  readonly #clock: Clock;
  readonly #environment: Readonly<Record<string, string>>;
  #asked: Asked | undefined;

  constructor(place: TrialPlace, clock: Clock, path = process.env.PATH ?? '') {
    this.#place = place;
    this.#clock = clock;
    this.#environment = { PATH: path };
  }

  /** @throws ThresherError `file-timeout`: the directory says nothing, and the next call tries again */
  async availability(): Promise<Availability> {
    const now = this.#clock.monotonic();
    const known = this.#asked;
    if (known !== undefined) {
      const answer = await known.answer;
      if (this.#asked !== known) return this.availability();
      if (answer.kind === 'available' || now - known.at < failureCounts) return answer;
    }
    const asked = { answer: this.#ask(), at: now, time: this.#clock.now() };
    this.#asked = asked;
    asked.answer.catch(() => {
      if (this.#asked === asked) this.#asked = undefined;
    });
    return asked.answer;
  }

  /** A worker got no namespace at `time` (ms UTC): an older answer does not count any more. */
  forget(time: number): void {
    if (this.#asked !== undefined && this.#asked.time <= time) this.#asked = undefined;
  }

  async #ask(): Promise<Availability> {
    try {
      const directory = await this.#makeDirectory();
      try {
        return await this.#tryIn(directory);
      } finally {
        await this.#remove(directory);
      }
    } catch (error) {
      if (error instanceof ThresherError) throw error;
      return { kind: 'missing', why: messageOf(error) };
    }
  }

  async #tryIn(directory: string): Promise<Availability> {
    const failures: string[] = [];
    for (const way of ways) {
      const why = await this.#try(way, directory);
      if (why === undefined) return { kind: 'available', way };
      failures.push(`${way.title}: ${why}`);
    }
    return { kind: 'missing', why: failures.join('; ') };
  }

  #makeDirectory(): Promise<string> {
    const { root, lane } = this.#place;
    // With a dot: a listing of workers passes over it.
    const make = (parent: string) => mkdtemp(join(parent, '.namespace-'));
    return lane.run(`making a directory in ${root}`, async () => {
      const directory = await make(root).catch((error: unknown) => {
        // `check-config --server` comes before the first start, and makes no work directory.
        if (hasCode(error, 'ENOENT')) return make(tmpdir());
        throw error;
      });
      await writeFile(join(directory, 'inside'), insideScript);
      return directory;
    });
  }

  /** The answer stands whatever becomes of the directory. */
  async #remove(path: string): Promise<void> {
    try {
      await removeTree(path, this.#place.lane);
    } catch (error) {
      this.#place.tell({ path, why: `it cannot be removed (${messageOf(error)})` });
    }
  }

  /** @returns why this way fails here */
  async #try(way: Way, directory: string): Promise<string | undefined> {
    const [command = '', ...args] = [
      ...entering(way, join(directory, 'inside'), directory),
      ...['/bin/sh', '-c', trial],
    ];
    const end = await runProgram({
      command,
      args,
      environment: this.#environment,
      timeLimit,
      outputLimit: 1000,
      clock: this.#clock,
      signal: new AbortController().signal,
    });
    if (end.status === 0 && end.stdout === 'alone\n') return undefined;
    const said = fromOutside(end.stderr.trim().split('\n').at(-1) ?? '');
    if (said !== '') return said;
    return end.killed === 'time' ? 'it took too long' : 'the command saw other processes';
  }
}
