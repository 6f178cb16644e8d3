import type { KnownWorker } from '../../../worker/news.ts';
import { hasEnded, isAtWork, isHeld, type PodFacts } from './facts.ts';

/** A wait of a job for a machine. */
export interface Wait {
  /** ms UTC. */
  readonly since: number;
  /** "htcondor:SCHEDD,POOL" or "htcondor:LOCAL", with "None" for what is not named. */
  readonly placement: string | null;
}

/** The wait after some news; undefined: the job has a machine, is held, or is over. @param at when they were heard, ms UTC */
export function waitAfter(
  before: Wait | undefined,
  facts: PodFacts,
  { submitTime, placement }: Pick<KnownWorker, 'submitTime' | 'placement'>,
  at: number,
): Wait | undefined {
  if (facts.batchId === null || hasEnded(facts) || isAtWork(facts) || isHeld(facts)) return undefined;
  // A job that ran before waits since it lost its machine.
  const since = before?.since ?? (facts.startTime === null ? (submitTime ?? at) : at);
  return { since, placement: placement ?? before?.placement ?? null };
}

/** A sentence for people who ask why a Pod does not start. It stays the same as long as the job waits. */
export function waitText({ since, placement }: Wait, batchId: string): string {
  const time = new Date(since).toISOString().replace(/\.\d+Z$/, 'Z');
  const waits = `job ${batchId} waits for a machine since ${time}`;
  const place = /^htcondor:(?:LOCAL|([^,]*),(.*))$/.exec(placement ?? '');
  if (place === null) return waits;
  const named = (option: string, name = 'None') => (name === 'None' ? [] : [option, name]);
  const words = ['condor_q', ...named('-pool', place[2]), ...named('-name', place[1]), '-better-analyze'];
  return `${waits}; "${[...words, batchId].join(' ')}" says why`;
}
