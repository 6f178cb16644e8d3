import { type Located, parseJson } from '../../../util/located.ts';
import { readJsonFile, readLocatedSync } from '../../../util/located-file.ts';
import type { OperatorFiles } from '../../../util/operator-files.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { Where } from '../schema.ts';
import { withHostname } from '../../../util/hostname.ts';

/** A schedd that jobs can be given to. */
export interface Schedd {
  /** For `-name`; absent: the one of this machine. */
  readonly name?: string;
  /** For `-pool`. */
  readonly pool?: string;
  readonly weight: number;
}

/** Harvester's name of it, which workers keep: `schedd,pool`, or `LOCAL`. */
export function submissionHostOf({ name, pool }: Pick<Schedd, 'name' | 'pool'>): string {
  return name === undefined && pool === undefined ? 'LOCAL' : `${name ?? 'None'},${pool ?? 'None'}`;
}

/** Whether a schedd is on this machine, by its name: "HOST" or "SOMETHING@HOST". */
export function isOfMachine({ name }: Pick<Schedd, 'name'>, hostname: string): boolean {
  const host = name?.replace(/^.*@/, '');
  const short = (text: string) => text.replace(/\..*/s, '');
  // One of the two may be without its domain.
  return (
    host === undefined ||
    host === hostname ||
    (short(host) === short(hostname) && !(host.includes('.') && hostname.includes('.')))
  );
}

export type ReadSchedds =
  | { readonly ok: true; readonly schedds: readonly Schedd[] }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** The schedds that a section names, without its `condorHostConfig`. */
export function scheddsOf({ condorSchedd, condorPool }: Where, hostname: string): ReadSchedds {
  const named = listOf(condorSchedd).map((name) => withHostname(name, hostname));
  const pools = listOf(condorPool).map((pool) => withHostname(pool, hostname));
  // One pool is that of all of them.
  const poolAt = (index: number) => (Array.isArray(condorPool) ? pools[index] : pools[0]);
  if (Array.isArray(condorPool) && pools.length !== Math.max(1, named.length)) {
    const message = `condorPool has ${pools.length} entries and condorSchedd ${named.length}; there must be one pool for each schedd, or one for all, not in a list`;
    return { ok: false, problems: [{ pointer: '/condorPool', code: 'wrong-type', message }] };
  }
  const twice = named.find(
    (name, index) => named.indexOf(name) !== index && poolAt(index) === poolAt(named.indexOf(name)),
  );
  if (twice !== undefined) {
    const message = `condorSchedd has ${twice} twice; for more of the work give it a weight in condorHostConfig`;
    return { ok: false, problems: [{ pointer: '/condorSchedd', code: 'wrong-type', message }] };
  }
  const names = named.length > 0 ? named : [undefined];
  return {
    ok: true,
    schedds: names.map((name, index) => {
      const pool = poolAt(index);
      return { weight: 1, ...(name !== undefined && { name }), ...(pool !== undefined && { pool }) };
    }),
  };
}

/** The content of a `condorHostConfig`. */
type HostConfig = Readonly<Record<string, { readonly pool: string; readonly weight: number }>>;

const allZero = 'every weight is 0, so no schedd would get anything: give one of them more';

/** The schedds of a `condorHostConfig` that stands in the section itself. */
export function scheddsIn(hosts: HostConfig): ReadSchedds {
  const schedds = Object.entries(hosts).map(([name, entry]) => ({ name, ...entry }));
  if (schedds.some(({ weight }) => weight > 0)) return { ok: true, schedds };
  return { ok: false, problems: [{ pointer: '/condorHostConfig', code: 'wrong-type', message: allZero }] };
}

/** As a section has them. */
export function hostConfigOf(schedds: readonly Schedd[]): HostConfig {
  return Object.fromEntries(
    schedds.map(({ name = '', pool = '', weight }) => [name, { pool, weight }] as const),
  );
}

/** `condorHostConfig`: `{"SCHEDD": {"pool": "COLLECTOR", "weight": 10}}`. */
export async function readHostConfig(files: OperatorFiles, file: string): Promise<ReadSchedds> {
  return scheddsOfFile(await readJsonFile(files, file, 'options'));
}

/** For a configuration that was kept without the content of its file. */
export function readHostConfigSync(file: string): ReadSchedds {
  return scheddsOfFile(readLocatedSync(file, 'options', parseJson));
}

function scheddsOfFile(located: Located): ReadSchedds {
  const { file, value } = located;
  if (value === undefined) {
    const problems = located.problems.map(({ pointer, line, code, message }) => ({
      pointer,
      file,
      line,
      message,
      code: code === 'file-unreadable' ? code : ('syntax' as const),
    }));
    return { ok: false, problems };
  }
  const problems: DefinitionProblem[] = [];
  const wrong = (pointer: string, message: string) =>
    problems.push({ pointer, file, line: located.lineOf(pointer), code: 'wrong-type', message });
  const right = 'it must be {"SCHEDD": {"pool": "COLLECTOR", "weight": 10}}';
  if (!isMap(value) || Object.keys(value).length === 0) {
    wrong('', `it is ${isMap(value) ? 'empty' : 'a list or a plain value'}; ${right}`);
    return { ok: false, problems };
  }
  const schedds = Object.entries(value).flatMap(([name, entry]): Schedd[] => {
    const pointer = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (!isMap(entry)) {
      wrong(pointer, `${name} is no object; ${right}`);
      return [];
    }
    const { pool, weight } = entry;
    // Harvester takes "10" as well.
    const number = typeof weight === 'string' && /^\d+$/.test(weight) ? Number(weight) : weight;
    if (typeof number !== 'number' || !Number.isInteger(number) || number < 0) {
      wrong(
        `${pointer}/weight`,
        `weight of ${name} is ${weight === undefined ? 'missing' : JSON.stringify(weight)}; it must be an integer from 0 on`,
      );
      return [];
    }
    if (typeof pool !== 'string' || pool === '') {
      wrong(
        `${pointer}/pool`,
        `pool of ${name} is ${pool === undefined ? 'missing' : JSON.stringify(pool)}; it must name a collector`,
      );
      return [];
    }
    return [{ name, pool, weight: number }];
  });
  if (problems.length === 0 && schedds.every(({ weight }) => weight === 0)) {
    wrong('', allZero);
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, schedds };
}

/**
 * Which schedd each of `count` workers goes to, in order. As many schedds take part as there are full bulks of
 * `minBulk`, but at least one, drawn by weight; the workers are then shared among them by weight, so that a batch makes
 * one submission for each schedd. Harvester draws for each worker instead, which gives the same shares in the long run.
 * `random`: from 0 up to 1, asked once for each schedd that takes part.
 */
export function shareAmong(
  schedds: readonly Schedd[],
  count: number,
  minBulk: number,
  random: () => number,
): Schedd[] {
  const left = schedds.filter(({ weight }) => weight > 0);
  const wanted = Math.min(left.length, Math.max(1, Math.ceil(count / minBulk)));
  const chosen: Schedd[] = [];
  while (chosen.length < wanted) {
    const next = draw(left, ({ weight }) => weight, random);
    if (next === undefined) break;
    left.splice(left.indexOf(next), 1);
    chosen.push(next);
  }
  return shares(chosen, count).flatMap(({ schedd, workers }) =>
    Array.from({ length: workers }, () => schedd),
  );
}

/** By the largest remainder: every schedd gets its part, to one worker. */
function shares(schedds: readonly Schedd[], count: number): { schedd: Schedd; workers: number }[] {
  const sum = schedds.reduce((all, { weight }) => all + weight, 0);
  const parts = schedds.map((schedd, index) => {
    const exact = (count * schedd.weight) / sum;
    return { schedd, index, workers: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let open = count - parts.reduce((all, { workers }) => all + workers, 0);
  for (const part of parts.toSorted((a, b) => b.rest - a.rest || a.index - b.index)) {
    if (open-- <= 0) break;
    part.workers++;
  }
  return parts;
}

/** One of them, by weight; undefined where no weight is above 0. */
export function draw<T>(
  from: readonly T[],
  weightOf: (one: T) => number,
  random: () => number,
): T | undefined {
  const possible = from.filter((one) => weightOf(one) > 0);
  const sum = possible.reduce((all, one) => all + weightOf(one), 0);
  let drawn = random() * sum;
  for (const one of possible) {
    drawn -= weightOf(one);
    if (drawn < 0) return one;
  }
  // Sums of fractions end a little early.
  return possible.at(-1);
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
