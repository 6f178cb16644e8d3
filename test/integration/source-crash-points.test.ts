import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
import { countStarts, Site } from '../support/site.ts';
import { heard, taskOf } from '../support/toy-source.ts';
import { until } from '../support/until.ts';

const wanted = 3;

/** Each worker shows the payload that it got. */
const pilot = `${countStarts} mkdir -p $SITE_DIR/tasks/$TOY; cp "$THRESHER_PAYLOAD_DIR/task" "$SITE_DIR/$HARVESTER_WORKER_ID.tmp"; mv "$SITE_DIR/$HARVESTER_WORKER_ID.tmp" "$SITE_DIR/tasks/$TOY/$HARVESTER_WORKER_ID"; exec sleep 1000`;

const steps: readonly (readonly [description: string, step: Step])[] = [
  ['before the rows', 'submit:before-intent'],
  ['after the rows', 'submit:after-intent'],
  ['before the outcomes are written', 'submit:before-outcome'],
  ['after the outcomes are written', 'submit:after-outcome'],
  ['between the commit of news and their delivery', 'news:before-told'],
  ['between the delivery of news and their end in the database', 'news:before-taken'],
];

describe('a source of a third party that names three workers', () => {
  let site: Site;
  let journal: string;

  beforeEach(() => {
    const module = join(import.meta.dirname, '../support/toy-source.ts');
    // Room for more than it asks for: a worker too many would not be kept away by a limit.
    const limits = { maxWorkers: 10, nQueueLimitWorker: 10 };
    site = new Site({
      pilot,
      queues: { Q: { ...limits, demand: 'toy' } },
      settings: { sources: { toy: { module, journal: 'journal' } } },
    });
    journal = site.path('journal');
  });

  afterEach(() => site.clean());

  for (const [description, step] of steps) {
    for (const database of ['kept', 'removed']) {
      it(`gets each once, and hears of it, through SIGKILL ${description}, the database ${database}`, async () => {
        const crashed = site.startCrashingAt(step);
        expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
        if (database === 'removed') site.removeDatabase();

        const restarted = site.start();
        const running = await until('all its workers run', async () => {
          const workers = (await site.workers()).filter(({ status }) => status === 'running');
          return workers.length === wanted && workers;
        });
        const heardRunning = () =>
          new Set(heard(journal).flatMap(({ index, status }) => (status === 'running' ? [index] : [])));
        await until('it heard of all three that they run', () => heardRunning().size === wanted);
        const shown = () => Array.from({ length: wanted }, (_, index) => tasks(index));
        await until('each worker has shown its payload', () => shown().every((some) => some.length > 0));

        // Each living row has exactly one process, and each process its row: none twice, none forgotten.
        const ids = running.map(({ workerID }) => workerID).sort();
        expect([...site.liveShims().keys()].sort()).to.deep.equal(ids);
        expect((await site.workers()).length, 'a worker beside the three').to.equal(wanted);
        for (const [id, times] of site.starts()) expect(times, `starts of ${id}`).to.equal(1);
        expect(shown()).to.deep.equal(Array.from({ length: wanted }, (_, index) => [taskOf(index)]));

        // One worker was heard of for each index. Without the database nothing knows intents that were never sent.
        const kept = heard(journal).filter(({ pid }) => database === 'kept' || pid === restarted.pid);
        for (const [index, news] of Map.groupBy(kept, (one) => one.index))
          expect(new Set(news.map(({ workerId }) => workerId)).size, `workers of ${index}`).to.equal(1);
        for (const [, news] of Map.groupBy(heard(journal), ({ pid }) => pid)) {
          const sequences = news.filter(({ what }) => what !== 'known').map(({ sequence }) => sequence);
          expect(sequences).to.deep.equal(sequences.toSorted((one, other) => one - other));
        }

        restarted.process.kill('SIGTERM');
        expect(await restarted.ended, restarted.output()).to.equal(0);
      });
    }
  }

  /** The payloads that workers of this index have shown. */
  function tasks(index: number): string[] {
    const directory = site.path('tasks', String(index));
    if (!existsSync(directory)) return [];
    return readdirSync(directory).map((id) => readFileSync(join(directory, id), 'utf8'));
  }
});
