import { createHash } from 'node:crypto';
import { type AdText, closureOf, parseAds } from '../../../clients/htcondor/ad-text.ts';
import type { Need } from '../model.ts';
import { concurrencyOf, requestOf } from '../request-sizes.ts';
import type { Representative } from './job-ads.ts';
import { signedJob } from './job-names.ts';
import { sign, type Signed } from './answers.ts';
import type { Template } from './result.ts';
import type { ScheddLook } from './schedd-needs.ts';

/** A template, read. */
export interface Seen {
  readonly key: string;
  readonly signed: Signed;
}

/** A need with the job that stands for it. */
export interface Represented {
  readonly need: Need;
  readonly signed: Signed;
  readonly representative: Representative;
}

/** @param foreign attributes of jobs for which slots look */
export function represent(
  looks: readonly { readonly name: string; readonly look: ScheddLook }[],
  foreign: ReadonlySet<string>,
): Represented[] {
  return looks.flatMap(({ name, look }) =>
    look.needs.map(({ group, representative }): Represented => {
      const { ad, asked, limits } = representative;
      const signed = signedJob(ad, foreign);
      const owners = new Map([...group.owners].map(([owner, { count }]) => [owner, count]));
      const need: Need = {
        key: `${name}#${shortKey(group.key)}`,
        schedd: name,
        count: group.count,
        owners,
        ...requestOf(asked),
        concurrency: concurrencyOf(limits),
      };
      return { need, signed, representative };
    }),
  );
}

export function seenTemplate({ shape, ad }: Template): Seen {
  const [read] = parseAds(ad);
  return { key: shape.key, signed: sign(read ?? new Map<string, string>()) };
}

/** Attributes of jobs for which a slot looks. */
export const foreignTo = (slot: AdText) => closureOf(slot, ['requirements', 'start']).other;

/** Values of jobs without an autocluster may be long. */
const shortKey = (key: string) =>
  /^\d+$/.test(key) ? key : `x${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;
