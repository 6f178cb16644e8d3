import { jobIdText } from '../../../clients/htcondor/classad.ts';
import type { HTCondorClient, MachineSizes } from '../../../clients/htcondor/client.ts';
import type { Log } from '../../contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Job } from '../marks.ts';

/** Negotiation takes a minute or two: most jobs that can start have started by then, s. */
const waitedFor = 300;
/** How often the collector is asked, ms: machines come and go. */
const interval = 600_000;
/** Jobs of which it is said. */
const atMost = 10_000;

const resources = [
  { attribute: 'RequestCpus', size: 'cpus', unit: ['core', 'cores'] },
  { attribute: 'RequestGPUs', size: 'gpus', unit: ['GPU', 'GPUs'] },
  { attribute: 'RequestMemory', size: 'memory', unit: ['MiB of memory', 'MiB of memory'] },
] as const;

export interface TooLargeParts {
  readonly client: Pick<HTCondorClient, 'largestMachines' | 'evaluated'>;
  /** Constraint that our jobs fulfil. */
  readonly mine: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Which of a schedd's idle jobs ask for more than any machine of its pool has. HTCondor itself says nothing of them: they stay idle. It is said
 * and nothing more, since machines may join, and a schedd may flock to other pools.
 */
export class TooLargeJobs {
  readonly #parts: TooLargeParts;
  /** By `cluster.proc`. */
  #why: ReadonlyMap<string, string> = new Map();
  #isNew = false;
  #isAsking = false;
  /** Monotonic ms. */
  #askedAt = -Infinity;

  constructor(parts: TooLargeParts) {
    this.#parts = parts;
  }

  /** Why no machine takes a job; undefined: one does, as far as is known. */
  of(id: string): string | undefined {
    return this.#why.get(id);
  }

  /** Asks beside the looks, which must not wait for a collector: where one of these jobs has been idle for long, and the last time is a while ago. */
  askIfDue(living: Iterable<Job>, signal: AbortSignal): void {
    if (this.#isAsking || !this.#isDue(living)) return;
    this.ask(signal).catch((error: unknown) => {
      this.#parts.log.error('jobs are not compared with the machines of their pool', { ...toReason(error) });
    });
  }

  /** Whether more, or less, is known since this was asked last. */
  takeNews(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }

  #isDue(living: Iterable<Job>): boolean {
    const { clock } = this.#parts;
    if (clock.monotonic() < this.#askedAt + interval) return false;
    const before = clock.now() / 1000 - waitedFor;
    for (const { ad, ce } of living)
      if (ad.JobStatus === 1 && ce === undefined && (ad.EnteredCurrentStatus ?? Infinity) <= before)
        return true;
    return false;
  }

  /** Asks the collector and the queue. What is known stays where they do not answer. @param waited s */
  async ask(signal: AbortSignal, waited = waitedFor): Promise<void> {
    const { client, mine, clock, log } = this.#parts;
    this.#askedAt = clock.monotonic();
    this.#isAsking = true;
    try {
      const sizes = await client.largestMachines(signal);
      // A pool whose machines come when there is work has none at times.
      const why =
        sizes === undefined ? new Map<string, string>() : await this.#exceeding(sizes, waited, signal);
      if (why.size !== this.#why.size || [...why].some(([id, text]) => this.#why.get(id) !== text))
        this.#isNew = true;
      this.#why = why;
    } catch (error) {
      if (!signal.aborted) log.debug('the sizes of machines are not known', { mine, ...toReason(error) });
    } finally {
      this.#isAsking = false;
    }
  }

  async #exceeding(sizes: MachineSizes, waited: number, signal: AbortSignal): Promise<Map<string, string>> {
    const { client, mine } = this.#parts;
    const exceeds = resources.map(({ attribute, size }) => `${attribute} > ${sizes[size]}`).join(' || ');
    // Other universes run on this machine, or elsewhere.
    const idle = `JobStatus == 1 && JobUniverse == 5 && time() - EnteredCurrentStatus >= ${waited}`;
    const attributes = ['ClusterId', 'ProcId', ...resources.map(({ attribute }) => attribute)];
    const jobs = await client.evaluated(
      'queue',
      `${mine} && ${idle} && (${exceeds})`,
      attributes,
      atMost,
      signal,
    );
    const why = new Map<string, string>();
    for (const [cluster, proc, ...asked] of jobs) {
      const texts = resources.flatMap(({ size, unit }, at) => {
        const [number, most] = [Number(asked[at]), sizes[size]];
        if (!(number > most)) return [];
        const has = most === 0 ? 'has any' : `has more than ${most}`;
        return [
          `it asks for ${number} ${unit[number === 1 ? 0 : 1]}, and no machine that the collector knows ${has}`,
        ];
      });
      if (texts.length > 0)
        why.set(jobIdText({ cluster: Number(cluster), proc: Number(proc) }), texts.join('; '));
    }
    return why;
  }
}
