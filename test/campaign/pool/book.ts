import { join } from 'node:path';
import { readLog } from '../../../src/clients/htcondor/event-log-file.ts';
import type { JobEvent } from '../../../src/clients/htcondor/event-types.ts';
import type { ScheddKind } from '../../support/htcondor.ts';
import type { JobWish, PoolBed } from './bed.ts';

/** A job that a test submitted. */
export interface BookedJob extends JobWish {
  readonly cluster: number;
  readonly schedd: ScheddKind;
  /** Whether a shape can take it. */
  readonly servable: boolean;
  /** The test itself removed or held it: an eviction is its own doing. */
  touched: boolean;
  removed: boolean;
}

/** What HTCondor's own log tells of one job. */
interface Story {
  executed: number;
  ended: boolean;
  readonly broken: string[];
}

/**
 * All jobs of a campaign, and what became of them by the event log of HTCondor: neither thresher's record nor any look takes part.
 * Both schedds write the same log; their clusters have numbers of their own.
 */
export class JobBook {
  readonly jobs = new Map<number, BookedJob>();
  readonly #bed: PoolBed;

  constructor(bed: PoolBed) {
    this.#bed = bed;
  }

  async submit(schedd: ScheddKind, wish: JobWish, servable: boolean): Promise<void> {
    const cluster = await this.#bed.submit(schedd, wish);
    this.jobs.set(cluster, { ...wish, cluster, schedd, servable, touched: false, removed: false });
  }

  /** Jobs of a schedd that are still in its queue, as far as the test knows. */
  open(schedd: ScheddKind, ended: ReadonlySet<number>): BookedJob[] {
    return [...this.jobs.values()].filter(
      (job) => job.schedd === schedd && !job.removed && !ended.has(job.cluster),
    );
  }

  /** Clusters of this book whose only job has ended by itself: the log has the jobs of other books of the bed as well. */
  async ended(): Promise<Set<number>> {
    const stories = await this.#stories();
    return new Set([...this.jobs.keys()].filter((cluster) => stories.get(cluster)?.ended === true));
  }

  /** The promises that were broken: a job that was evicted or started twice without the test's doing. */
  async broken(): Promise<string[]> {
    const stories = await this.#stories();
    return [...this.jobs.values()].flatMap(({ cluster, touched }) => {
      const story = stories.get(cluster);
      if (story === undefined || touched) return [];
      const twice = story.executed > 1 ? [`job ${cluster} was started ${story.executed} times`] : [];
      return [...story.broken.map((what) => `job ${cluster} ${what}`), ...twice];
    });
  }

  async #stories(): Promise<Map<number, Story>> {
    const stories = new Map<number, Story>();
    for (const event of await allEvents(join(this.#bed.pool.eventLog))) {
      const story = stories.get(event.cluster) ?? { executed: 0, ended: false, broken: [] };
      stories.set(event.cluster, story);
      take(story, event);
    }
    return stories;
  }
}

function take(story: Story, event: JobEvent): void {
  if (event.kind === 'execute') story.executed++;
  else if (event.kind === 'terminated') story.ended = true;
  else if (event.kind === 'evicted') story.broken.push(`was evicted: ${event.reason ?? 'no reason'}`);
  // A killed worker says nothing more: its shadow waits for it for the whole lease of the job.
  else if (event.kind === 'disconnected' || event.kind === 'reconnect-failed')
    story.broken.push('lost its machine');
  else if (event.kind === 'shadow-exception')
    story.broken.push(`failed: ${event.message ?? 'its shadow did not say why'}`);
}

async function allEvents(path: string): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  for (let position = undefined as Awaited<ReturnType<typeof readLog>>['position']; ;) {
    const read = await readLog(path, position, Date.now());
    events.push(...read.events);
    position = read.position;
    if (!read.more) return events;
  }
}
