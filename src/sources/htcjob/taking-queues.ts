import { isDeepStrictEqual } from 'node:util';
import type { HtcJobQueueOptions } from '../../clients/htcjob/options.ts';
import type { HtcJobSpec } from '../../clients/htcjob/resource.ts';
import type { Desk } from '../../plugins/contracts/index.ts';
import type { Reason } from '../../worker/reason.ts';

/** Whether a queue with these options takes the HTCJobs of a namespace. */
export function takes({ namespaces }: HtcJobQueueOptions, namespace: string): boolean {
  return namespaces.length === 0 || namespaces.includes(namespace);
}

/** The queues that take HTCJobs: the desk knows which ones do, and each tells its options when it is asked first. */
export class TakingQueues {
  /** Queue of a resource that names none. */
  readonly #usual: string | undefined;
  readonly #options = new Map<string, HtcJobQueueOptions>();

  constructor(usual: string | undefined) {
    this.#usual = usual;
  }

  get names(): readonly string[] {
    return [...this.#options.keys()];
  }

  /** @returns whether it takes others than before */
  asked(name: string, options: HtcJobQueueOptions): boolean {
    const before = this.#options.get(name);
    this.#options.set(name, options);
    return before === undefined || !isDeepStrictEqual(before, options);
  }

  /**
   * Why jobs of a resource may live that the database does not have. One that names no queue had the usual one, which may have been another
   * then.
   */
  whyUnlisted(
    { queueName }: Pick<HtcJobSpec, 'queueName'>,
    desk: Pick<Desk, 'ownQueues' | 'unlisted'>,
  ): Reason | undefined {
    const names = queueName === undefined ? desk.ownQueues().map(({ name }) => name) : [queueName];
    return names.map((name) => desk.unlisted(name)).find((why) => why !== undefined);
  }

  /** @returns the queue that runs the jobs of a resource, or why there is none; undefined where it is not known yet */
  queueOf(
    { queueName }: Pick<HtcJobSpec, 'queueName'>,
    namespace: string,
    desk: Pick<Desk, 'ownQueues' | 'queues' | 'reasons'>,
  ): string | Reason | undefined {
    const known = desk.ownQueues().map((queue) => queue.name);
    for (const name of this.#options.keys()) if (!known.includes(name)) this.#options.delete(name);
    const name = queueName ?? this.#usual ?? (known.length === 1 ? known[0] : undefined);
    const choice =
      known.length === 0 ? 'no queue takes HTCJobs' : `queues that take HTCJobs: ${known.join(', ')}`;
    if (name === undefined) {
      const message = known.length === 0 ? choice : `spec.queueName names no queue; ${choice}`;
      return { code: 'htcjob-queue', message };
    }
    if (!known.includes(name)) {
      if (!desk.queues().includes(name))
        return { code: 'no-such-queue', message: `there is no queue ${name}; ${choice}` };
      return { code: 'htcjob-queue', message: `queue ${name} takes no HTCJobs; ${choice}` };
    }
    const options = this.#options.get(name);
    // Its first pass is still to come, or fails before it asks for anything.
    if (options === undefined) return desk.reasons(name)[0];
    if (takes(options, namespace)) return name;
    return { code: 'htcjob-namespace', message: `queue ${name} takes no HTCJobs of namespace ${namespace}` };
  }
}
