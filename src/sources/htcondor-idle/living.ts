import type { WorkerNews } from '../../plugins/contracts/index.ts';
import { isQueued } from '../../worker/status.ts';
import type { Lateness, ShapeWorkers } from './demand.ts';
import type { Joining, LivingWorker } from './joining.ts';
import { shapeOfOrigin } from './wishes.ts';

/** The living workers of the source, by what is recorded of them now. */
export function livingOf(news: readonly WorkerNews[]): LivingWorker[] {
  return news.flatMap(({ queue, origin, worker }) => {
    const { workerId, status, startTime, submitTime, creationTime } = worker;
    if (workerId === null || status === 'withdrawn') return [];
    // A backend that does not say when a worker started says at least that it runs.
    const startedAt = isQueued(status) ? undefined : (startTime ?? submitTime ?? creationTime ?? undefined);
    return [{ workerId, queue, origin, shape: shapeOfOrigin(origin), startedAt }];
  });
}

/** How many workers of each shape live, how many of them do not run yet, and how those with late ones stand with the pool. */
export function countByShape(
  living: readonly LivingWorker[],
  joining: Joining | undefined,
): Map<string, ShapeWorkers> {
  const counts = new Map<string, { living: number; starting: number; lateness?: Lateness }>();
  for (const { shape, startedAt } of living) {
    if (shape === undefined) continue;
    const count = counts.get(shape) ?? { living: 0, starting: 0 };
    count.living += 1;
    if (startedAt === undefined) count.starting += 1;
    counts.set(shape, count);
  }
  const { late = [], joined = [], onItsWay = [] } = joining ?? {};
  for (const [shape, count] of counts) {
    const ofShape = (workers: readonly LivingWorker[]) =>
      workers.filter((worker) => worker.shape === shape).length;
    const number = ofShape(late);
    if (number > 0) count.lateness = { late: number, joined: ofShape(joined), onItsWay: ofShape(onItsWay) };
  }
  return counts;
}
