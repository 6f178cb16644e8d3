import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
import type { RunningDaemon, Site, SiteOptions } from './site.ts';
import { heard, taskOf } from './toy-source.ts';
import { until } from './until.ts';

/** How many workers the toy source asks for. */
export const wantedToys = 3;

/** Settings and options of a queue that the toy source serves, with room for more than it asks for. */
export const toySettings: NonNullable<SiteOptions['settings']> = {
  sources: { toy: { module: join(import.meta.dirname, 'toy-source.ts'), journal: 'journal' } },
};
export const toyQueue = { demand: 'toy', maxWorkers: 10, nQueueLimitWorker: 10 };

/** Shell line by which a worker shows the payload that it got, whole or not at all, below `directory`. */
export function showPayload(directory: string): string {
  const [shown, part] = [`"${directory}/tasks/$TOY"`, `"${directory}/$HARVESTER_WORKER_ID.part"`];
  const copy = `cp "$THRESHER_PAYLOAD_DIR/task" ${part}`;
  return `mkdir -p ${shown}; ${copy}; mv ${part} ${shown}/$HARVESTER_WORKER_ID;`;
}

/** The steps of a submission and of the delivery of news at which a daemon may die. */
export const toySteps: readonly (readonly [description: string, step: Step])[] = [
  ['before the rows', 'submit:before-intent'],
  ['after the rows', 'submit:after-intent'],
  ['before the outcomes are written', 'submit:before-outcome'],
  ['after the outcomes are written', 'submit:after-outcome'],
  ['between the commit of news and their delivery', 'news:before-told'],
  ['between the delivery of news and their end in the database', 'news:before-taken'],
];

/**
 * Waits until all workers of the toy source run and it has heard so, and looks for workers and news that should not be.
 * @param database whether the daemon before `daemon` left its database
 * @returns the ids of the workers
 */
export async function expectToys(site: Site, daemon: RunningDaemon, database: string): Promise<number[]> {
  const journal = site.path('journal');
  let now = 'nothing is known of them';
  const running = await until(
    () => `all its workers run: ${now}`,
    async () => {
      const workers = await site.workers();
      now = workers
        .map(({ workerID, status, diagMessage }) => `${workerID} ${status} ${diagMessage ?? ''}`)
        .join(', ');
      const running = workers.filter(({ status }) => status === 'running');
      return running.length === wantedToys && running;
    },
  );
  const heardRunning = () =>
    new Set(heard(journal).flatMap(({ index, status }) => (status === 'running' ? [index] : [])));
  await until('it heard of all three that they run', () => heardRunning().size === wantedToys);

  // One worker was heard of for each index. Without the database nothing knows intents that were never sent.
  const kept = heard(journal).filter(({ pid }) => database === 'kept' || pid === daemon.pid);
  for (const [index, news] of Map.groupBy(kept, (one) => one.index))
    expect(new Set(news.map(({ workerId }) => workerId)).size, `workers of ${index}`).to.equal(1);
  for (const [, news] of Map.groupBy(heard(journal), (one) => one.pid)) {
    const sequences = news.filter(({ what }) => what !== 'known').map(({ sequence }) => sequence);
    expect(sequences).to.deep.equal(sequences.toSorted((one, other) => one - other));
  }
  return running.map(({ workerID }) => workerID).sort();
}

/** Waits until each worker has shown its payload below `directory`: once, and as the source gave it. */
export async function expectPayloads(directory: string): Promise<void> {
  const shown = () => Array.from({ length: wantedToys }, (_, index) => tasks(directory, index));
  await until('each worker has shown its payload', () => shown().every((some) => some.length > 0));
  expect(shown()).to.deep.equal(Array.from({ length: wantedToys }, (_, index) => [taskOf(index)]));
}

/** The payloads that workers of this index have shown. */
function tasks(directory: string, index: number): string[] {
  const shown = join(directory, 'tasks', String(index));
  if (!existsSync(shown)) return [];
  return readdirSync(shown).map((id) => readFileSync(join(shown, id), 'utf8'));
}
