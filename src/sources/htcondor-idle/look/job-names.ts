import { type AdText, closureOf } from '../../../clients/htcondor/ad-text.ts';
import { sign, type Signed } from './answers.ts';

/** Attributes that tell jobs apart before the pool has a machine: only a negotiation with one makes autoclusters. */
export const usual = [
  'requirements',
  'requestcpus',
  'requestmemory',
  'requestdisk',
  'requestgpus',
  'concurrencylimits',
];

/** Attributes by which a schedd is asked at most, so that no hostile job makes a question endless. */
export const mostAttributes = 100;

/** Names that a job of an owner has. */
export interface OwnedNames {
  readonly owner: string;
  readonly names: Iterable<string>;
}

/** A name that HTCondor's commands take as it is. A user can make others, and one of any length: all of them are arguments of one command. */
const plainName = /^[a-z_]\w{0,99}$/;

/**
 * Names that jobs have, so many as a schedd is asked by: those of `first` before all others, and then one of each owner after the other, those
 * first that most of his jobs have. So nobody takes all places by names of his own.
 */
export function mostNamed(byJob: readonly OwnedNames[], first: readonly string[]): string[] {
  const counts = new Map<string, Map<string, number>>();
  for (const { owner, names } of byJob) {
    const own = counts.get(owner) ?? new Map<string, number>();
    counts.set(owner, own);
    for (const name of names) if (plainName.test(name)) own.set(name, (own.get(name) ?? 0) + 1);
  }
  const found = new Set(first.filter((name) => counts.values().some((own) => own.has(name))));
  const sorted = [...counts.values()].map((own) => [...own].toSorted(([, one], [, other]) => other - one));
  const most = Math.max(0, ...sorted.map(({ length }) => length));
  for (let at = 0; at < most && found.size < mostAttributes; at++)
    for (const own of sorted) {
      const [name] = own[at] ?? [];
      if (name !== undefined) found.add(name);
    }
  return [...found].slice(0, mostAttributes);
}

/** Attributes of a job on which a match may rest. @param foreign those for which slots look */
export function relevantNames(ad: AdText, foreign: ReadonlySet<string>): ReadonlySet<string> {
  const { own, other, any } = closureOf(ad, ['requirements', ...requestsOf(ad), ...foreign]);
  if (any) return new Set([...ad.keys(), ...other]);
  // Those that it lacks as well: another job may have them.
  return new Set([...own, ...other]);
}

/** Attributes that HTCondor's analysis itself reads. */
export const alwaysShown = new Set(['mytype', 'targettype', 'jobuniverse', 'owner', 'user', 'requirements']);

/** A job by what a match may rest on. @param foreign attributes for which slots look */
export function signedJob(ad: AdText, foreign: ReadonlySet<string>): Signed {
  const relevant = relevantNames(ad, foreign);
  return sign(new Map([...ad].filter(([name]) => relevant.has(name) || alwaysShown.has(name))));
}

export const requestsOf = (ad: AdText): string[] =>
  [...ad.keys()].filter((name) => /^request[a-z]\w*$/.test(name));
