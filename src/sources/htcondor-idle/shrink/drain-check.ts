import { classAdString } from '../../../clients/htcondor/classad.ts';
import { harmlessDrain, noClaim } from '../../../clients/htcondor/drain.ts';
import type { OwnStartd } from '../look/result.ts';

/**
 * The condition under which a startd takes the order to drain. The startd itself looks at all its slots when the order arrives, so
 * neither a look that is too old by then nor a startd that got the name or the address of another can cost a job.
 * @param factory the id of this factory
 * @param startd as the look showed it: without a claim there, it must have none now
 */
export function drainCheck(
  factory: string,
  { workerId, claims }: Pick<OwnStartd, 'workerId' | 'claims'>,
): string {
  const ours = `ThresherFactory =?= ${classAdString(factory)} && string(ThresherWorker) =?= "${workerId}"`;
  return `${ours} && (${claims === 0 ? noClaim : harmlessDrain})`;
}
