import { Dice } from '../../test/campaign/dice.ts';
import { decide } from '../../src/sources/htcondor-idle/decide.ts';
import type { DemandFacts } from '../../src/sources/htcondor-idle/demand.ts';
import type { Need, Shape, Space } from '../../src/sources/htcondor-idle/model.ts';
import { progress } from './progress.ts';

export interface Packing {
  readonly jobs: number;
  readonly sizes: number;
  readonly shapes: number;
  readonly spaces: number;
  /** Processor time of each decision, ms; the first compiles. */
  readonly times: readonly number[];
  readonly workers: number;
  readonly complaints: readonly string[];
}

const sizes = 1000;
const shapes = 50;
const spaces = 1000;
const rounds = 21;

/** A decision alone, all answers of HTCondor known: no command runs. */
export function measurePacking(jobs: number): Promise<Packing> {
  progress(`${rounds} decisions`);
  const facts = factsOf(jobs);
  const times: number[] = [];
  let workers = 0;
  for (let round = 0; round < rounds; round++) {
    const begun = process.cpuUsage();
    const decision = decide(facts, new Map());
    const { user, system } = process.cpuUsage(begun);
    times.push((user + system) / 1000);
    workers = decision.shapes.reduce((sum, one) => sum + one.workers, 0);
  }
  return Promise.resolve({ jobs, sizes, shapes, spaces, times, workers, complaints: [] });
}

function factsOf(jobs: number): DemandFacts {
  const dice = new Dice(7);
  const amounts = (cpus: number, memory: number, disk: number, gpus: number) =>
    new Map([
      ['cpus', cpus],
      ['memory', memory],
      ['disk', disk],
      ['gpus', gpus],
    ]);
  const needs = Array.from({ length: sizes }, (_, index): Need => {
    const gpus = index % 25 === 0 ? dice.between(1, 2) : 0;
    const request = amounts(
      dice.between(1, 8),
      128 * dice.between(1, 160),
      1024 * dice.between(1, 100),
      gpus,
    );
    const count = Math.floor(jobs / sizes);
    const owners = new Map([['user', count]]);
    return {
      key: `bench#${index}`,
      schedd: 'bench',
      count,
      owners,
      request,
      exact: request,
      concurrency: new Map(),
    };
  });
  const kinds = Array.from({ length: shapes }, (_, index): Shape => {
    const cpus = 1 + 4 * (index % 16);
    const resources = amounts(cpus, 2000 * (1 + (index % 25)), 50_000_000, index % 10 === 0 ? 4 : 0);
    const queue = `queue${index % 5}`;
    return { key: `${queue}/${index}`, queue, resources, oneJob: false, cost: cpus, most: Infinity };
  });
  const free = Array.from({ length: spaces }, (_, index): Space => {
    const has = amounts(dice.between(1, 16), 128 * dice.between(1, 300), 10_240 * dice.between(1, 1000), 0);
    const kind = `kind${index % 20}`;
    return { name: `slot${index}`, kind, free: has, oneJob: false, shape: undefined };
  });
  // HTCondor's answers, in the form in which a look keeps them.
  const matching = new Map(
    kinds.map((shape, at) => [
      shape.key,
      new Set(
        needs
          .filter((_, index) => index % 5 !== 0 || at % 3 === 0)
          .filter(({ exact }) =>
            [...exact].every(([name, amount]) => amount <= (shape.resources.get(name) ?? 0)),
          )
          .map(({ key }) => key),
      ),
    ]),
  );
  return {
    needs,
    shapes: kinds,
    spaces: free,
    matching: {
      shape: ({ key }, shape) => matching.get(shape.key)?.has(key),
      space: ({ key }, { kind }) => key.at(-1) !== kind.at(-1),
      pool: () => false,
    },
    unknown: [],
    workers: new Map(),
    free: new Map(),
  };
}
