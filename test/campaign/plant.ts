/**
 * Breaks the program on purpose while it is loaded, so that a campaign can be seen to fail: `plantedIn` starts a daemon with this module
 * before all others.
 */
import { registerHooks } from 'node:module';

interface Change {
  /** Part of a module's address. */
  readonly module: string;
  readonly from: string;
  readonly to: string;
}

const withoutFence = {
  module: '/store/postgresql/lease.',
  from: 'AND epoch = ${this.#epoch} FOR SHARE) AS mine',
  to: ') AS mine',
};
const alwaysActs = { module: '/store/postgresql/database.', from: 'lease.isHeld', to: 'true' };

const plants = {
  /** Growth that ignores caps. */
  'no-caps': [{ module: '/htcondor-idle/caps.', from: 'Math.max(0, most - living)', to: 'Infinity' }],
  /** Shrinking that picks busy workers, and costs their jobs. */
  'busy-first': [
    {
      module: '/htcondor-idle/shrink/surplus.',
      from: 'one.claims - other.claims',
      to: 'other.claims - one.claims',
    },
    {
      module: '/htcondor-idle/shrink/drain-check.',
      from: 'claims === 0 ? noClaim : harmlessDrain',
      to: "'true'",
    },
    { module: '/clients/htcondor/drain.', from: "'-graceful'", to: "'-fast'" },
  ],
  /** A daemon that another one has replaced can still commit. */
  'no-fence': [withoutFence],
  /** The same, of a daemon that also acts without a lease, until it hears that another one has the factory. */
  'always-acts': [withoutFence, alwaysActs],
  /** A member that never asks whether its epoch is still its own: once another one has made its lease void, it goes on. */
  'no-epoch': [
    withoutFence,
    alwaysActs,
    { module: '/store/postgresql/lease.', from: 'renewed.length === 0', to: 'false' },
  ],
  /** A member that takes what a living member has. */
  'takes-living': [
    { module: '/sharing/sharing.', from: 'bound !== true && isSteady && !this.#isAlive(holder)', to: 'true' },
    { module: '/store/postgresql/shares.', from: 'WHERE share.member = ANY(${gone}::text[])', to: '' },
  ],
  /** A member that gives a queue away at once, while calls for it are under way. */
  'gives-busy': [
    {
      module: '/sharing/sharing.',
      from: 'const busy = await release(new Set(going));',
      to: 'const busy = new Set(); release(new Set(going)).catch(() => undefined);',
    },
  ],
  /** Members that part queues with a limit in common. */
  'splits-families': [
    {
      module: '/sharing/items.',
      from: 'siteFamily ${siteFamilyOf(config)}',
      to: 'siteFamily ${config.name}',
    },
  ],
  /** Queues with more workers than they may have. */
  'too-many': [
    {
      module: '/limits/limiters.',
      from: 'const most = limits.maxWorkers',
      to: 'const most = 2 * limits.maxWorkers',
    },
  ],
} as const satisfies Readonly<Record<string, readonly Change[]>>;

export type Plant = keyof typeof plants;

export const plantNames = Object.keys(plants) as readonly Plant[];

const variable = 'THRESHER_TEST_PLANT';

/** The environment of a daemon that has this fault. */
export function plantedIn(plant: Plant): Record<string, string> {
  return { NODE_OPTIONS: `--import=${import.meta.filename}`, [variable]: plant };
}

const chosen = process.env[variable];
if (chosen !== undefined) {
  const changes: readonly Change[] = plants[chosen as Plant];
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const own = changes.filter(({ module }) => url.includes(module));
      if (own.length === 0) return loaded;
      let text = Buffer.from((loaded.source ?? '') as Uint8Array).toString();
      for (const { from, to } of own) {
        // A plant that fits no more would prove nothing.
        if (!text.includes(from)) throw new Error(`${url} has no ${from}`);
        text = text.replace(from, to);
      }
      return { ...loaded, source: text };
    },
  });
}
