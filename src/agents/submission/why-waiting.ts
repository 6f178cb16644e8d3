import type { Allowed } from '../../limits/limiters.ts';
import type { Request } from '../../plugins/contracts/index.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Entry } from './entries.ts';

/** Requests of one source that wait for the same reason. */
export interface Waiting {
  readonly kind: string;
  readonly requests: readonly Request[];
  readonly reason: Reason;
}

/**
 * Says for each request that got no worker in a pass which limit left it out. The looks of the pass come in their order: a later
 * part takes the place of an earlier one that names the same request, since the later look tells how it is now.
 */
export function whyWaiting(looks: readonly (Allowed<Entry> | undefined)[]): Waiting[] {
  return looks.flatMap((look) =>
    (look?.cuts ?? []).flatMap(({ group, to, reason }) => {
      const { kind, requests, count } = group;
      return requests === undefined ? [] : [{ kind, requests: requests.slice(to, count), reason }];
    }),
  );
}
