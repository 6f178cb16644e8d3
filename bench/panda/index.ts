import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newPandaId, sharedPanda } from '../../test/support/panda.ts';
import { runChild } from '../shared/children.ts';
import { fullSize, measureParts, type Options } from '../shared/parts.ts';
import { progressOf } from '../shared/progress.ts';
import type { Answer } from './answers.ts';
import type { BareLoad } from './bare.ts';
import { type Measured, parts } from './measured.ts';
import type { Orders } from './orders.ts';
import { pageOf } from './page.ts';
import type { ReportLoad } from './report-load.ts';

export { parts } from './measured.ts';

const progress = progressOf('panda');
const programOf = (name: string) => join(import.meta.dirname, name);
/** Rounds of a daemon and of a bare client, in turns. */
const rounds = 2;
const orders = 60;
const answerRounds = 9;

/** The link to a PanDA server: the results go to `results/panda.json` and `results/panda.md`. */
export async function benchPanda(options: Options): Promise<void> {
  sharedPanda.do('start');
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  const { workers = fullSize } = options;
  try {
    await measureParts<Measured, object>({
      benchmark: 'panda',
      options,
      parts,
      pageOf,
      progress,
      measuredWith: {},
      measure: {
        reports: () => measureReports(directory, workers),
        orders: () =>
          runChild<Orders>(
            programOf('orders.ts'),
            join(directory, 'orders'),
            String(workers < fullSize ? 10 : orders),
            newPandaId('bench'),
          ),
        answers: async () => ({
          forms: await runChild<readonly Answer[]>(programOf('answers.ts'), String(answerRounds)),
          complaints: [],
        }),
      },
    });
  } finally {
    remove();
    process.off('exit', remove);
  }
}

async function measureReports(directory: string, workers: number): Promise<Measured['reports']> {
  const linked: ReportLoad[] = [];
  const bare: number[] = [];
  const size = String(workers);
  const measureBare = async () => {
    progress(`reports, ${bare.length + 1} of ${rounds}: the bare client`);
    const client = await runChild<BareLoad>(
      programOf('bare.ts'),
      directory,
      size,
      newPandaId('bare'),
      'BARE',
    );
    bare.push(client.time);
  };
  const measureDaemon = async () => {
    progress(`reports, ${linked.length + 1} of ${rounds}: the daemon`);
    linked.push(await load(directory, 'linked', workers));
  };
  // The server's table grows with each, and with it the time of the next: whoever was first is last in the next round.
  for (let round = 0; round < rounds; round++)
    for (const measure of round % 2 === 0 ? [measureBare, measureDaemon] : [measureDaemon, measureBare])
      await measure();
  progress('reports: a daemon without a link');
  const alone = await load(directory, 'alone', workers);
  return { workers, linked, alone, bare, complaints: [...linked, alone].flatMap((one) => one.complaints) };
}

async function load(directory: string, mode: 'linked' | 'alone', workers: number): Promise<ReportLoad> {
  const [id, queue] = [newPandaId('bench'), newPandaId('BENCH')];
  const own = join(directory, id);
  if (mode === 'linked') {
    const params = JSON.stringify({ managed: { SCORE: workers } });
    sharedPanda.admin('command', id, `SET_N_WORKERS_JOBTYPE:${queue}`, params);
  }
  try {
    return await runChild<ReportLoad>(programOf('report-load.ts'), own, String(workers), mode, id, queue);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
