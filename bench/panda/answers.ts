/** How long large answers of the server hold everything else up, as a child of the benchmark: `answers.ts ROUNDS`. */
import type { WorkerNews } from '../../src/plugins/contracts/index.ts';
import { recordingLog, requirements } from '../../test/support/samples.ts';
import {
  answering,
  calls,
  carryingOut,
  largeAnswers,
  largeCommands,
} from '../../test/support/large-answers.ts';
import { report } from '../core/site.ts';
import { median } from '../shared/statistics.ts';

const rounds = Number(process.argv[2]);

export interface Answer {
  readonly form: string;
  /** Processor time of the longest piece of work in which nothing else could run, ms: the median. */
  readonly longest: number;
  /** Processor time of `JSON.parse` for the same text, in turns with it, ms: the median. */
  readonly parsing: number;
}

const { signal } = new AbortController();
const living = Array.from({ length: 10_000 }, (_, at) => ({
  queue: 'S',
  worker: { workerId: at + 1, status: 'running', computingSite: 'S' },
  origin: { uid: 'o', index: at },
})) as unknown as readonly WorkerNews[];

/** What each form is given to, fresh for every round. */
const works: Readonly<Record<string, readonly [text: string, prepared: () => () => Promise<unknown>]>> = {
  ...Object.fromEntries(
    Object.entries(largeAnswers).flatMap(([form, data]) =>
      Object.entries(calls).map(([path, call]) => {
        const prepared = () => {
          const api = answering(data);
          return () => call(api);
        };
        return [`${path}: ${form}`, [data, prepared] as const];
      }),
    ),
  ),
  ...Object.fromEntries(
    Object.entries(largeCommands).map(([form, command]) => {
      const prepared = () => {
        const { runner, orders, desk } = carryingOut(`[${command}]`, living, recordingLog());
        return async () => {
          await runner.poll(desk, signal);
          await new Promise((resolve) => setImmediate(resolve));
          for (const { requests } of orders.seriesOf({ name: 'S', requirements }, ['S']))
            [...requests].at(-1);
        };
      };
      return [`a command: ${form}`, [command, prepared] as const];
    }),
  ),
};

const answers: Answer[] = [];
for (const [form, [text, prepared]] of Object.entries(works)) {
  const longest: number[] = [];
  const parsing: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const piece = await longestPiece(prepared());
    const bare = await longestPiece(async () => {
      JSON.parse(text);
    });
    // The first is for the compiler.
    if (round === 0) continue;
    longest.push(piece);
    parsing.push(bare);
  }
  answers.push({ form, longest: median(longest), parsing: median(parsing) });
}
await report(answers);

async function longestPiece(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = process.threadCpuUsage();
  let isOver = false;
  const look = () => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1000);
    last = process.threadCpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  look();
  return longest;
}
