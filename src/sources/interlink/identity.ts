import type { Pod } from '../../clients/interlink/wire.ts';
import { identityProblems } from './pod/names.ts';

/** The identity of a Pod: its UID is unique for good, while its name may be used again. */
export interface PodIdentity {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** The identity in a Pod's metadata, or the sentence that says what is wrong in it. */
export function identityOf(pod: Pick<Pod, 'metadata'>): PodIdentity | string {
  const wrong = identityProblems(pod);
  if (wrong.length > 0) return wrong.map(({ message }) => message).join('; ');
  const { uid = '', name = '', namespace = '' } = pod.metadata;
  return { uid, name, namespace };
}
