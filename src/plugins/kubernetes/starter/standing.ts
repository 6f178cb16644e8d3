import type { KubernetesObject } from '../../../clients/kubernetes/objects.ts';
import { starterLabel } from '../marks.ts';

/** The key of the ConfigMap: the name of the file in the container. */
export const fileName = 'pilots_starter.py';
/** Annotation: version of the script in it. */
export const versionAnnotation = 'thresher/starter-version';
/** Prefix of the annotations that name its users, one for each factory. */
const userPrefix = 'starter.thresher/';

export interface StarterMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** The script that a factory puts into the ConfigMap, and its mark there. */
export interface OwnStarter {
  readonly script: string;
  readonly version: number;
  /** The annotation by which it is one of the users. */
  readonly user: string;
}

export type Deed =
  | { readonly kind: 'create' }
  | { readonly kind: 'change'; readonly patch: object }
  | { readonly kind: 'nothing' }
  /** It is a stranger's, and no pilot could start from it. */
  | { readonly kind: 'refuse' };

export function userAnnotation(factory: string): string {
  return `${userPrefix}${factory}`;
}

/** Without our label it is Harvester's, or an operator's. */
export function isOurs({ metadata }: StarterMap): boolean {
  return metadata?.labels?.[starterLabel] !== undefined;
}

export function usersOf({ metadata }: StarterMap): string[] {
  return Object.keys(metadata?.annotations ?? {}).filter((key) => key.startsWith(userPrefix));
}

export function othersUse(there: StarterMap, user: string): boolean {
  return usersOf(there).some((one) => one !== user);
}

/**
 * Decides the deed that lets pilots start. A ConfigMap of Harvester's serves as it is: its script and ours have the
 * same contract. The newest version of ours stays, so that an older factory beside a newer one changes nothing back.
 */
export function deedFor(there: StarterMap | undefined, { script, version, user }: OwnStarter): Deed {
  if (there === undefined) return { kind: 'create' };
  const { metadata, data = {} } = there;
  if (!isOurs(there)) return { kind: data[fileName] === undefined ? 'refuse' : 'nothing' };
  const theirs = Number(metadata?.annotations?.[versionAnnotation] ?? 0) || 0;
  const renews = theirs < version || (theirs === version && data[fileName] !== script);
  if (!renews && usersOf(there).includes(user)) return { kind: 'nothing' };
  const annotations = { [user]: 'uses it', ...(renews && { [versionAnnotation]: String(version) }) };
  // With the version that was read: a change in between is a conflict, and is looked at again.
  const patch = {
    metadata: { resourceVersion: metadata?.resourceVersion, annotations },
    ...(renews && { data: { [fileName]: script } }),
  };
  return { kind: 'change', patch };
}
