import { progressOf } from '../shared/progress.ts';

export const progress = progressOf('kubernetes');

/** One round of two that are compared. */
export function roundDone(round: number, ours: HasRate, theirs: HasRate): void {
  progress(`  round ${round}: ${Math.round(ours.perSecond)}/s beside ${Math.round(theirs.perSecond)}/s`);
}

interface HasRate {
  readonly perSecond: number;
}
