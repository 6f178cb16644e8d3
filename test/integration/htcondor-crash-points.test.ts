import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { Ad } from '../../src/clients/htcondor/json-objects.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  ownPool,
  type Pool,
  type ScheddKind,
  scheddPid,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import { connectionsOf, stopInConversation, submitting } from '../support/htcondor-submits.ts';
import type { Site } from '../support/site.ts';
import { queueRows } from '../support/condor-jobs.ts';
import { ofGate } from '../support/tiers.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
const wanted = 3;
const limits = { maxWorkers: wanted, nQueueLimitWorker: wanted };

describe('HTCondor, through crashes of the daemon', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let environment: Record<string, string>;

  function makeSite(kind: ScheddKind, queue: Record<string, unknown> = limits): void {
    space = condorSpace(pool);
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind, template: 'pilot.sub.yaml', queue }) },
        settings: { master: { factoryId: space.factory } },
      },
      { 'pilot.sub.yaml': shellTemplate(space, 'exec sleep 1000') },
    );
    environment = condorEnvironment(pool, site.directory);
  }

  /** Waits until all wanted workers run, and returns their ids in order. */
  const allRun = (count = wanted) =>
    until(
      'all wanted workers run and no intent is open',
      async () => {
        const workers = await site.workers();
        const running = workers.filter(({ status }) => status === 'running');
        const settled = workers.every(({ status }) => status !== 'pending');
        return running.length === count && settled && running.map(({ workerID }) => workerID).sort();
      },
      90_000,
    );

  /** The workers of the jobs in the queue, in order: twice, if there are two. */
  async function inQueue(kind: ScheddKind): Promise<number[]> {
    const ads: Ad[] = await clientOf(pool, kind).queue(
      `${space.mine} && JobStatus =!= 3`,
      ['harvesterWorkerID'],
      signal,
    );
    return ads.map((ad) => Number(ad['harvesterWorkerID'])).sort();
  }

  /** Workers of which more than one job ever started. */
  async function startedTwice(kind: ScheddKind): Promise<string[]> {
    const client = clientOf(pool, kind);
    const attributes = ['harvesterWorkerID', 'JobStartDate', 'NumJobStarts'];
    const started = `${space.mine} && NumJobStarts > 0`;
    const ads = [
      ...(await client.queue(started, attributes, signal)),
      ...(await client.history(started, attributes, 1000, signal)),
    ];
    const byWorker = Map.groupBy(ads, (ad) => String(ad['harvesterWorkerID']));
    return [...byWorker].filter(([, jobs]) => jobs.length > 1).map(([id]) => id);
  }

  describe('at a step of a batch', () => {
    before(async () => {
      pool = await condorPool();
    });
    afterEach(async () => {
      await site.clean();
      await clearSpaces(pool, [space]);
    });

    const steps = [
      ['before the row', 'submit:before-intent'],
      ['after the row', 'submit:after-intent'],
      ['before the outcome is written', 'submit:before-outcome'],
      ['after the outcome is written', 'submit:after-outcome'],
    ] as const;
    const cases = steps.flatMap(([description, step]) =>
      ['kept', 'removed'].map((database) => ({ description, step, database })),
    );
    for (const { description, step, database } of ofGate(
      cases,
      (one) =>
        one.step === 'submit:before-outcome' ||
        (one.step === 'submit:after-intent' && one.database === 'kept'),
    )) {
      // The remote one is spooled to, which takes a second step.
      const kind = database === 'kept' ? 'remote' : 'local';
      it(`makes no second job and forgets none: ${description}, the database ${database}`, async () => {
        makeSite(kind);
        const daemon = site.startCrashingAt(step, environment);
        expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
        if (database === 'removed') site.removeDatabase();
        site.start([], environment);
        const ids = await allRun();
        // Each living row has its job, and each job its row.
        expect(await inQueue(kind)).to.deep.equal(ids);
        expect(await startedTwice(kind)).to.deep.equal([]);
      });
    }
  });

  describe('and a schedd that hangs', () => {
    let own: Awaited<ReturnType<typeof ownPool>>;
    before(async () => {
      own = await ownPool();
      pool = own;
    });
    after(() => own.stop());
    afterEach(async () => {
      await site.clean();
      await clearSpaces(pool, [space]);
    });

    it('is asked only after it has heard a submission to its end: what is cut off leaves nothing', async () => {
      makeSite('local');
      const client = clientOf(pool, 'local');
      const rows = Array.from({ length: 20_000 }, (_, index) => [String(index)]);
      const text = [
        ...['executable = /bin/true', 'transfer_executable = false', 'hold = true', 'My.x = $(a)'],
        `My.thresherFactory = "${space.factory}"`,
        queueRows(['a'], rows),
      ].join('\n');
      const started: number[] = [];
      const options = { onStart: (pid: number) => started.push(pid) };
      const submission = client.submit(text, options, signal).catch((error: unknown) => error);
      const pid = await until('it has called the schedd', () =>
        started.find((one) => connectionsOf(one) > 0),
      );
      await stopInConversation(clientOf(pool, 'local', {}, 1500), pid);
      process.kill(pid, 'SIGKILL');
      expect(await submission).to.include({ code: 'condor-failed' });
      for (let time = 1; time <= 3; time++)
        expect(await client.queue(space.mine, ['ClusterId'], signal)).to.deep.equal([]);
    });

    it('keeps no other schedd from its work', async () => {
      makeSite('local');
      const two = { Q: condorQueue(pool, { template: 'pilot.sub.yaml', queue: limits }) };
      const remote = condorQueue(pool, { kind: 'remote', template: 'other.yaml', queue: limits });
      writeFileSync(site.path('other.yaml'), stringify(shellTemplate(space, 'exec sleep 1000')));
      site.writeQueues({ ...two, R: remote });
      site.start([], environment);
      const count = async (queue: string, status: 'running' | 'cancelled') =>
        (await site.workers({ queue, status })).length;
      await until('both work', async () => {
        return (await count('Q', 'running')) === wanted && (await inQueue('remote')).length === wanted;
      });
      const schedd = scheddPid(pool, 'local');
      process.kill(schedd, 'SIGSTOP');
      try {
        // The negotiator may wait for it, too, so that nothing starts: but what is removed is seen, and replaced.
        for (let round = 1; round <= 2; round++) {
          await clientOf(pool, 'remote').act('remove', space.mine, 'the test says so', signal);
          await until('the other goes on', async () => {
            const cancelled = await count('R', 'cancelled');
            return cancelled >= round * wanted && (await inQueue('remote')).length === wanted;
          });
        }
      } finally {
        process.kill(schedd, 'SIGCONT');
      }
      // Nothing was concluded from silence.
      expect(await site.workers({ queue: 'Q', status: 'running' })).to.have.length(wanted);
    });

    for (const order of ['before', 'after'] as const) {
      it(`makes no second job of a submission that goes through ${order} the next daemon starts`, async () => {
        makeSite('local', { ...limits, maxWorkers: 1, nQueueLimitWorker: 1 });
        const schedd = scheddPid(pool, 'local');
        const [programs, mayStop] = [site.path('programs'), site.path('may-stop')];
        // The daemon asks the schedd before it submits: it may hang only from then on.
        mkdirSync(programs);
        const submit = [
          '#!/bin/sh',
          `case "$*" in *-terse*) [ ! -e '${mayStop}' ] || kill -STOP ${schedd};; esac`,
          `exec '${join(pool.programs, 'condor_submit')}' "$@"`,
        ];
        writeFileSync(join(programs, 'condor_submit'), submit.join('\n'), { mode: 0o755 });
        environment['PATH'] = `${programs}${delimiter}${environment['PATH'] ?? ''}`;
        const first = site.start([], environment);
        await allRun(1);
        writeFileSync(mayStop, '');
        try {
          site.writeQueues({ Q: condorQueue(pool, { template: 'pilot.sub.yaml', queue: limits }) });
          first.process.kill('SIGHUP');
          // One whose daemon ends before it has heard anything has nothing to submit.
          const pid = await until('a condor_submit waits for the schedd', () => {
            const [one] = submitting(site);
            return one !== undefined && one.connections > 0 && one.pid;
          });
          rmSync(mayStop);
          first.process.kill('SIGKILL');
          await first.ended;
          // It outlives its daemon.
          expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).to.match(/condor_submit/);
          if (order === 'before') {
            process.kill(schedd, 'SIGCONT');
            await until('it went through', async () => (await inQueue('local')).length === wanted);
            site.start([], environment);
          } else {
            site.start([], environment);
            await until('the next daemon runs', async () => (await site.queues()).length > 0);
          }
        } finally {
          process.kill(schedd, 'SIGCONT');
        }
        const ids = await allRun();
        expect(await inQueue('local')).to.deep.equal(ids);
        expect(await startedTwice('local')).to.deep.equal([]);
        await until('no submission is under way', () => submitting(site).length === 0);
      });
    }
  });
});
