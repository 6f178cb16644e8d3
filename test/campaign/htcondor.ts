import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HTCondorClient } from '../../src/clients/htcondor/client.ts';
import { clientOf, type CondorSpace, condorSpace, ownPool, scheddPid } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { submitting } from '../support/htcondor-submits.ts';
import type { Site } from '../support/site.ts';
import { until } from '../support/until.ts';
import { type Arena, type Fault, limits, type Seen } from './arena.ts';
import type { Dice } from './dice.ts';

export type OwnPool = Awaited<ReturnType<typeof ownPool>>;

/**
 * Each job that starts leaves a file with its worker and its cluster, so that the observer need not ask the schedd for what is
 * over. A job that HTCondor itself starts again, after a crash of the schedd, stays the same job.
 */
const pilotIn = (directory: string) =>
  [
    'cluster=$(sed -n "s/^ClusterId = //p" "$_CONDOR_JOB_AD")',
    `touch "${directory}/start.$HARVESTER_WORKER_ID.$cluster"`,
    'exec sleep $((HARVESTER_WORKER_ID % 4 + 2))',
  ].join('; ');

export const masterOfCampaigns = { shutdownTimeout: 2, pluginTimeout: 10 };

export const settings = {
  submitter: { sleepTime: 0.3 },
  sweeper: { sleepTime: 0.5, keepFinished: 1, keepFailed: 1, keepCancelled: 1, keepMissed: 1 },
  monitor: { missingGrace: 1 },
};

const { signal: never } = new AbortController();

/** A real pool of its own, whose schedd is killed and stopped. */
export class StruckPool implements AsyncDisposable {
  readonly pool: OwnPool;
  readonly space: CondorSpace;
  readonly client: HTCondorClient;
  /** Workers whose jobs a fault removed or held. */
  readonly hidden = new Set<number>();
  readonly #site: () => Site;

  /** @param site whose commands are struck, too */
  constructor(pool: OwnPool, site: () => Site) {
    this.pool = pool;
    this.space = condorSpace(pool);
    this.client = clientOf(pool, 'local', {}, 5000);
    this.#site = site;
  }

  get faults(): readonly Fault[] {
    return [
      { name: 'the schedd is killed', weight: 2, strike: () => this.#killSchedd() },
      {
        name: 'the schedd hangs',
        weight: 3,
        strike: async (dice) => {
          const schedd = scheddPid(this.pool, 'local');
          process.kill(schedd, 'SIGSTOP');
          await sleep(dice.between(300, 6000));
          process.kill(schedd, 'SIGCONT');
        },
      },
      { name: 'a condor_submit is killed', weight: 4, strike: (dice) => this.#strikeSubmit(dice, 'SIGKILL') },
      {
        name: 'a condor_submit stands still',
        weight: 3,
        strike: (dice) => this.#strikeSubmit(dice, 'SIGSTOP'),
      },
      { name: 'a job is removed by hand', weight: 2, strike: (dice) => this.#actOnOne(dice, 'remove') },
      { name: 'a job is held by hand', weight: 1, strike: (dice) => this.#actOnOne(dice, 'hold') },
    ];
  }

  async living(): Promise<readonly Seen[] | undefined> {
    try {
      const attributes = ['harvesterWorkerID', 'thresherQueue'];
      // Idle, running, transferring, suspended and held; those being removed or done take no place.
      const constraint = `${this.space.mine} && JobStatus =!= 3 && JobStatus =!= 4`;
      const ads = await this.client.queue(constraint, attributes, never);
      return ads.map((ad) => ({
        workerId: Number(ad['harvesterWorkerID']),
        queue: String(ad['thresherQueue']),
      }));
    } catch {
      // The schedd is dead or stands still, which is what this is about.
      return undefined;
    }
  }

  starts(): ReadonlyMap<number, number> {
    const starts = new Map<number, number>();
    for (const name of readdirSync(this.space.directory)) {
      const [what, id] = name.split('.');
      if (what === 'start') starts.set(Number(id), (starts.get(Number(id)) ?? 0) + 1);
    }
    return starts;
  }

  async heal(): Promise<void> {
    const release = () =>
      this.client.act('release', this.space.mine, 'the campaign is over', never).then(
        () => true,
        () => false,
      );
    // One that was just killed may not answer yet.
    await until('the schedd releases what is held', release, 120_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.stop();
  }

  async #killSchedd(): Promise<void> {
    const before = scheddPid(this.pool, 'local');
    process.kill(before, 'SIGKILL');
    // The master starts the next one.
    await until('the next schedd runs', () => scheddPid(this.pool, 'local') !== before, 60_000);
  }

  async #strikeSubmit(dice: Dice, how: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
    const under = await until('a condor_submit runs', () => this.#submits()[0], 4000).catch(() => undefined);
    if (under === undefined) return;
    await sleep(dice.between(0, 30));
    if (!signal(under, how) || how === 'SIGKILL') return;
    await sleep(dice.between(100, 12_000));
    signal(under, 'SIGCONT');
  }

  #submits(): number[] {
    try {
      return submitting(this.#site()).map(({ pid }) => pid);
    } catch {
      // Half written, or ended meanwhile.
      return [];
    }
  }

  async #actOnOne(dice: Dice, verb: 'remove' | 'hold'): Promise<void> {
    const victim = dice.pick((await this.living()) ?? []);
    if (victim === undefined) return;
    this.hidden.add(victim.workerId);
    const mark = `${this.space.mine} && harvesterWorkerID == "${victim.workerId}"`;
    await this.client.act(verb, mark, 'the campaign says so', never).catch(() => undefined);
  }
}

/** Pilots on a pool. */
export class HTCondorArena implements Arena {
  readonly site: Site;
  readonly environment: Readonly<Record<string, string>>;
  readonly hidden: ReadonlySet<number>;
  readonly faults: readonly Fault[];
  readonly #struck: StruckPool;

  static async open(): Promise<HTCondorArena> {
    return new HTCondorArena(await ownPool());
  }

  private constructor(pool: OwnPool) {
    this.#struck = new StruckPool(pool, () => this.site);
    const { space, hidden, faults } = this.#struck;
    this.hidden = hidden;
    this.faults = faults;
    const master = { factoryId: space.factory, ...masterOfCampaigns };
    this.site = condorSite(
      { queues: {}, settings: { master, ...settings } },
      { 'pilot.sub.yaml': shellTemplate(space, pilotIn(space.directory)) },
    );
    this.environment = condorEnvironment(pool, this.site.directory);
    this.writeQueues({});
  }

  writeQueues(change: Readonly<Record<string, unknown>>): void {
    const queue = (limit: number) =>
      condorQueue(this.#struck.pool, {
        template: 'pilot.sub.yaml',
        queue: { maxWorkers: limit, nQueueLimitWorker: limit, ...change },
      });
    this.site.writeQueues(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, queue(limit)])),
    );
  }

  living(): Promise<readonly Seen[] | undefined> {
    return this.#struck.living();
  }

  starts(): ReadonlyMap<number, number> {
    return this.#struck.starts();
  }

  heal(): Promise<void> {
    return this.#struck.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.clean();
    await this.#struck[Symbol.asyncDispose]();
  }
}

/** Whether there was such a process. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
