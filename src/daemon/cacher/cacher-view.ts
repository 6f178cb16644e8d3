import { nameOf } from '../../config/settings/cache-items.ts';
import { isoTime } from '../../util/clock.ts';
import { isObject } from '../../util/json.ts';
import type { ItemState } from './cacher.ts';

/** One file of the cacher, for people and programs. */
export interface CachedView {
  readonly file: string;
  /** `current`, `failing`: the last try failed; `missing`: it never came. */
  readonly state: 'current' | 'failing' | 'missing';
  readonly use: string;
  readonly url: string;
  /** When its content came. */
  readonly fetched: string | null;
  /** When its server last said that this is the newest. */
  readonly checked: string | null;
  readonly bytes: number | null;
  readonly tried: string | null;
  readonly code: string | null;
  readonly message: string | null;
}

const uses: Readonly<Record<ItemState['item']['use'], string>> = {
  'queue-data': 'queues of CRIC',
  'queue-file': 'queue file',
  dump: 'for other programs',
};

export function viewOf({ item, fetched, triedAt, failure }: ItemState): CachedView {
  const { shown: url, use } = item;
  return {
    file: nameOf(item),
    state: fetched === undefined ? 'missing' : failure === undefined ? 'current' : 'failing',
    use: uses[use],
    url,
    fetched: fetched === undefined ? null : isoTime(fetched.fetchedAt),
    checked: fetched === undefined ? null : isoTime(fetched.checkedAt),
    bytes: fetched?.bytes ?? null,
    tried: triedAt === undefined ? null : isoTime(triedAt),
    code: failure?.code ?? null,
    message: failure?.message ?? null,
  };
}

/** Views as they are now, with the failures that a daemon wrote down and that no later success has ended. */
export function withFailuresOf(views: readonly CachedView[], written: readonly unknown[]): CachedView[] {
  return views.map((view) => {
    const last = written.find(
      (one) => isObject(one) && one['file'] === view.file && one['url'] === view.url,
    ) as Partial<CachedView> | undefined;
    const { tried, code, message } = last ?? {};
    if (typeof tried !== 'string' || typeof code !== 'string' || typeof message !== 'string') return view;
    if (view.checked !== null && view.checked > tried) return view;
    return { ...view, state: view.fetched === null ? 'missing' : 'failing', tried, code, message };
  });
}
