import type { Reason, SourceQueue } from '../plugins/contracts/index.ts';

/**
 * Why workers of this queue cannot simply be counted out, whatever its limits. Push and slave come first: another source would
 * change nothing there.
 */
export function whyNotCounted({ mapType, runMode }: Pick<SourceQueue, 'mapType' | 'runMode'>): Reason[] {
  const reasons: Reason[] = [];
  if (mapType !== 'NoJob') {
    const message = `mapType is ${mapType}: its workers need jobs from the PanDA server, which thresher does not fetch; set it to "NoJob" where pilots fetch their own`;
    reasons.push({ code: 'demand-push', message });
  }
  if (runMode === 'slave') {
    const message =
      'runMode is slave: the PanDA server sets the number of workers, by the source panda; `thresher panda` shows what the link to it lacks; set runMode to "self" to fill the queue without';
    reasons.push({ code: 'demand-slave', message });
  }
  return reasons;
}
