import type { WorkerStatistics } from '../../clients/panda/api.ts';
import type { OriginCount } from '../../worker/news.ts';
import type { WorkerStatus } from '../../worker/status.ts';

/** Statuses as the server counts them: it does not see `idle`, and an intent is as good as submitted. */
const words: Readonly<Partial<Record<WorkerStatus, 'submitted' | 'ready' | 'running'>>> = {
  pending: 'submitted',
  submitted: 'submitted',
  idle: 'submitted',
  ready: 'ready',
  running: 'running',
};

const none = { running: 0, submitted: 0, ready: 0, to_submit: 0 } as const;

/**
 * The statistics of a site's living workers. The server takes each report for the whole site, so that every resource type stands in
 * it; and it orders nothing for a site without any, so that a new one reports zeros.
 * Source: panda-server 1.0.4, `worker_module.py`; Harvester seeds `{"managed": {"SCORE": ...}}` alike.
 */
export function statisticsOf(
  counts: readonly Pick<OriginCount, 'jobType' | 'resourceType' | 'status' | 'workers'>[],
): WorkerStatistics {
  type Numbers = Record<keyof typeof none, number>;
  const statistics = new Map<string, Map<string, Numbers>>([['managed', new Map([['SCORE', { ...none }]])]]);
  for (const { jobType, resourceType, status, workers } of counts) {
    const word = words[status];
    if (word === undefined) continue;
    const byType = statistics.get(jobType) ?? new Map<string, Numbers>();
    const numbers = byType.get(resourceType) ?? { ...none };
    numbers[word] += workers;
    byType.set(resourceType, numbers);
    statistics.set(jobType, byType);
  }
  return Object.fromEntries([...statistics].map(([job, byType]) => [job, Object.fromEntries(byType)]));
}
