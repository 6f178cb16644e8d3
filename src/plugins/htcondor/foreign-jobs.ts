import { classAdString, jobIdText, parseJobId, whereJobs } from '../../clients/htcondor/classad.ts';
import { HTCondorClient } from '../../clients/htcondor/client.ts';
import type { ForeignJob } from '../../clients/htcondor/foreign-job.ts';
import type { Ad } from '../../clients/htcondor/json-objects.ts';
import type { Clock } from '../../util/clock.ts';
import type { Worker } from '../../worker/worker.ts';
import { portions } from './look-up.ts';
import { identityText, jobOf, marks } from './marks.ts';
import { nameOf } from './owners.ts';
import type { Where } from './schema.ts';
import { connections, scheddOfConnection } from './where.ts';

const attributes = [
  ...['ClusterId', 'ProcId', 'JobStatus', 'ExitCode', 'ExitBySignal', 'QDate', 'Environment', 'Env'],
  ...['Iwd', 'SUBMIT_Iwd', 'Owner', marks.factory, marks.worker],
];

/** Jobs on the schedds of a queue that thresher did not submit. With marks they become workers, at the next listing. */
export class ForeignJobs {
  readonly #clients: ReadonlyMap<string, HTCondorClient>;

  /** @param where the options of the queue's submitter */
  constructor(where: Where, configDir: string, clock: Clock) {
    this.#clients = new Map(
      connections(where, { configDir }).map((name) => {
        const place = scheddOfConnection(name);
        return [name, new HTCondorClient({ place, clock, environment: process.env })];
      }),
    );
  }

  /** All jobs of these ids in queue and history of each schedd. @throws HTCondorError where not all of it can be said */
  async look(ids: readonly string[], signal: AbortSignal): Promise<readonly ForeignJob[]> {
    const wanted = ids.flatMap((id) => parseJobId(id) ?? []);
    const found: ForeignJob[] = [];
    for (const [connection, client] of this.#clients) {
      for (const some of portions(wanted)) {
        // This first: it has the better words for a schedd that is away.
        const queued = await client.queue(whereJobs(some), attributes, signal);
        const user = await client.whoAmI(signal);
        const place = { connection, user: user === undefined ? undefined : nameOf(user) };
        found.push(...queued.flatMap((ad) => oldJobOf(ad, place, true) ?? []));
        const there = new Set(found.map((job) => jobIdText(job.id)));
        const left = some.filter((id) => !there.has(jobIdText(id)));
        if (left.length === 0) continue;
        const ended = await client.history(whereJobs(left), attributes, left.length, signal);
        found.push(...ended.flatMap((ad) => oldJobOf(ad, place, false) ?? []));
      }
    }
    return found;
  }

  /** A job that has a mark by now keeps that. @throws HTCondorError `condor-no-job` where it is gone */
  async mark(
    { id, connection }: Pick<ForeignJob, 'id' | 'connection'>,
    worker: Worker,
    { factoryId, harvesterId }: { readonly factoryId: string; readonly harvesterId: string },
    signal: AbortSignal,
  ): Promise<void> {
    const values = {
      [marks.factory]: classAdString(factoryId),
      harvesterID: classAdString(harvesterId),
      [marks.worker]: classAdString(String(worker.workerId)),
      [marks.queue]: classAdString(worker.queue),
      [marks.identity]: classAdString(identityText(worker)),
    };
    const unmarked = `(${whereJobs([id])}) && ${marks.factory} =?= undefined`;
    await this.#clients.get(connection)?.qedit(unmarked, values, signal);
  }
}

function oldJobOf(
  ad: Ad,
  { connection, user }: Pick<ForeignJob, 'connection' | 'user'>,
  isQueued: boolean,
): ForeignJob | undefined {
  const job = jobOf(ad, isQueued);
  if (job === undefined) return undefined;
  const text = (key: string) => (typeof ad[key] === 'string' ? ad[key] : '');
  const { JobStatus: status, ExitCode: code, ExitBySignal: bySignal } = job.ad;
  return {
    id: job.id,
    connection,
    owner: nameOf(job.owner ?? ''),
    user,
    isQueued,
    status,
    endedWell: code === 0 && bySignal !== true,
    environment: text('Environment') || text('Env'),
    directory: text('SUBMIT_Iwd') || text('Iwd'),
    queuedAt: job.queuedAt,
    factory: text(marks.factory) || undefined,
  };
}
