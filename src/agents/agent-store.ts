import type { Store } from '../store/store.ts';

/** The store as agents have it: they read workers here, and write them only through the ledger. */
export type AgentStore = Omit<Store, 'workers' | 'origins'> & {
  readonly origins: Pick<Store['origins'], 'known' | 'find' | 'living' | 'census' | 'madeSince'>;
  readonly workers: Pick<
    Store['workers'],
    'byIds' | 'fates' | 'intended' | 'lastEnded' | 'missedSince' | 'toKill' | 'toSweep'
  >;
};
