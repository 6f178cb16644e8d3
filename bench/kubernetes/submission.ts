import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { BenchDaemon } from './daemon.ts';
import { filledJob } from './job.ts';
import type { Limit } from './limit.ts';
import { roundDone } from './progress.ts';
import { Rows } from '../shared/rows.ts';

/** Time for what comes after the last answer, such as the watch' events: its processor time counts, ms. */
const aftermath = 1500;

export interface Rate {
  readonly perSecond: number;
  readonly cpuMsPerJob: number;
}

export interface Submission {
  readonly perRound: number;
  /** In the order they ran: one of each per round. */
  readonly thresher: readonly Rate[];
  readonly limit: readonly Rate[];
  /** The same loop with JSON, as everybody speaks who takes what an operator wrote. */
  readonly limitJson: readonly Rate[];
  readonly complaints: readonly string[];
}

/** As it comes client-go sends protobuf. */
const contentTypes = { limit: undefined, limitJson: 'application/json' } as const;

/** The same Job created again and again by both on the same server, in turns. */
export async function measureSubmission(
  plane: ControlPlane,
  limit: Limit,
  directory: string,
  { rounds, perRound }: { readonly rounds: number; readonly perRound: number },
): Promise<Submission> {
  const space = await plane.namespace('bench');
  const other = await plane.namespace('limit');
  // Whose name stands here cares for the Job: the cluster's own controller does not, and nothing runs beside the creations.
  const daemon = new BenchDaemon(join(directory, 'submission'), plane, space, {
    managedBy: 'bench.example.org/nobody',
  });
  const job = join(directory, 'job.json');
  writeFileSync(job, JSON.stringify(await filledJob(daemon.directory, other.name)));
  daemon.start();
  await daemon.ready();
  const rows = new Rows(daemon.database);

  const ofThresher = async (count: number): Promise<Rate> => {
    const before = { rows: rows.count('1'), newest: rows.value('SELECT max(worker_id) FROM workers') };
    const cpu = daemon.cpuSeconds();
    daemon.want(before.rows + count);
    const end = await rows.until(`${count} Jobs are submitted`, () => {
      return rows.count(`status <> 'pending'`) === before.rows + count;
    });
    await systemClock.sleep(aftermath);
    const begin = rows.value(`SELECT min(creation_time) FROM workers WHERE worker_id > ${before.newest}`);
    return rateOf(count, (end - begin) / 1000, daemon.cpuSeconds() - cpu);
  };
  const ofLimit = async (round: number, kind: keyof typeof contentTypes, count: number): Promise<Rate> => {
    const contentType = contentTypes[kind];
    const prefix = `${kind.toLowerCase()}-${round}`;
    const creation = { namespace: other.name, job, prefix, count, ...(contentType && { contentType }) };
    const { seconds, cpuSeconds } = await limit.create(creation);
    return rateOf(count, seconds, cpuSeconds);
  };

  const results = { thresher: [] as Rate[], limit: [] as Rate[], limitJson: [] as Rate[] };
  // The first round warms up both and the server; it is not counted.
  for (let round = 0; round <= rounds; round++) {
    const found = {
      limit: await ofLimit(round, 'limit', perRound),
      thresher: await ofThresher(perRound),
      limitJson: await ofLimit(round, 'limitJson', perRound),
    };
    roundDone(round, found.thresher, found.limit);
    if (round === 0) continue;
    for (const kind of ['thresher', 'limit', 'limitJson'] as const) results[kind].push(found[kind]);
  }
  rows.close();
  await daemon.kill('SIGTERM');
  return { perRound, ...results, complaints: daemon.complaints() };
}

function rateOf(count: number, seconds: number, cpuSeconds: number): Rate {
  return { perSecond: count / seconds, cpuMsPerJob: (cpuSeconds * 1000) / count };
}
