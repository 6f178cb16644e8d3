/** The steps of one resource: what a crash, a delay or another writer must not spoil. */
import { expect } from 'chai';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import { EventWriter } from '../../../src/sources/htcjob/events.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import type { HtcJob, HtcJobSpec, HtcJobStatus } from '../../../src/clients/htcjob/resource.ts';
import type { Tracked } from '../../../src/sources/htcjob/tracked.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { askedOf, firstRetry, newsOf, StepperSite } from '../../support/htcjob-stepper.ts';

const uid = 'uid-of-zero';
const claimed: HtcJobStatus = { uniqId: uid, factory: 'factory', active: 1, succeeded: 0, failed: 0 };
const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('a step of a HTCJob', () => {
  let site: StepperSite;

  beforeEach(() => {
    site = new StepperSite();
  });

  const last = () => site.statuses.at(-1);

  describe('leaves the spec to its user', () => {
    it('until a queue takes it, and freezes it before its jobs are asked for', async () => {
      site.queue = { code: 'no-such-queue', message: 'there is no queue NONE' };
      const tracked = site.track(htcJob());
      expect(await site.step(tracked)).to.equal(30_000);
      expect(last())
        .to.include({ reason: 'NoSuchQueue', factory: 'factory' })
        .and.not.to.have.property('uniqId');
      expect(askedOf(tracked)).to.deep.equal([]);

      site.queue = 'Q';
      await site.step(tracked);
      expect(last()).to.include({ uniqId: uid, reason: 'Pending' });
      expect(askedOf(tracked)).to.deep.equal([0]);
    });

    it('until its Secrets are there, and looks for them again soon', async () => {
      const tracked = site.track(htcJob({ secrets: [{ name: 'login' }] }));
      expect(await site.step(tracked)).to.equal(5000);
      expect(last()).to.include({ reason: 'HtcjobSecret' }).and.not.to.have.property('uniqId');
      site.secrets.set('login', { password: 'eA==' });
      await site.step(tracked);
      expect(last()).to.include({ uniqId: uid, reason: 'Pending' });
      expect(askedOf(tracked)).to.deep.equal([0]);
    });

    it('until its Secrets are there, of which the missing ones alone are read, ever less often', async () => {
      const names = ['a', 'b', 'c', 'login'];
      for (const name of names.slice(0, 3)) site.secrets.set(name, {});
      const tracked = site.track(htcJob({ secrets: names.map((name) => ({ name })) }));
      const pauses: unknown[] = [];
      for (let turn = 0; turn < 6; turn++) pauses.push(await site.step(tracked));
      expect(pauses).to.deep.equal([5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
      expect(site.secretReads).to.deep.equal([...names, ...Array.from({ length: 5 }, () => 'login')]);
      site.secrets.set('login', {});
      await site.step(tracked);
      expect(askedOf(tracked)).to.deep.equal([0]);
    });

    it('while it is suspended since its creation', async () => {
      const tracked = site.track(htcJob({ suspend: true }));
      for (let turn = 0; turn < 3; turn++) await site.step(tracked);
      expect(last()).to.include({ reason: 'Suspended' }).and.not.to.have.property('uniqId');
      expect(askedOf(tracked)).to.deep.equal([]);
    });

    it('and reads it anew when it was corrected', async () => {
      site.queue = { code: 'no-such-queue', message: 'there is no queue NONE' };
      const tracked = site.track(htcJob());
      await site.step(tracked);
      const worse = htcJob({ htcopts: 'queue 5' });
      tracked.update(site.object({ ...worse, metadata: { ...worse.metadata, generation: 2 } }, last()));
      await site.step(tracked);
      expect(last()).to.include({ reason: 'Invalid', failed: 1, uniqId: uid });
    });

    it('and says nothing while it is not known yet whether a queue takes it', async () => {
      site.queue = undefined;
      const tracked = site.track(htcJob());
      await site.step(tracked);
      expect(last()).to.include({ reason: 'Pending' }).and.not.to.have.property('uniqId');
      expect(site.notes).to.deep.equal([]);
    });
  });

  describe('tells of one that waits in the queue of HTCondor', () => {
    const waiting = () => last()?.conditions?.find(({ type }) => type === 'Waiting');
    const tooLarge = (index: number) => {
      const news = newsOf(uid, index, 'submitted');
      return { ...news, worker: { ...news.worker, nativeStatus: 'too-large' } };
    };

    it('that no machine has what it asks for, and takes it back', async () => {
      const tracked = site.track(htcJob({ queue: 2 }), claimed);
      site.details.set(2, {
        Waiting: 'it asks for 64 cores, and no machine that the collector knows has more than 8',
      });
      site.found = [newsOf(uid, 0, 'running'), tooLarge(1)];
      await site.step(tracked);
      expect(last()).to.include({ reason: 'HtcjobNoMachine', active: 2 });
      expect(waiting()).to.include({
        status: 'True',
        message:
          'job 1 waits in the queue of HTCondor: it asks for 64 cores, and no machine that the collector knows has more than 8',
      });
      for (const index of [0, 1]) tracked.hear(newsOf(uid, index, 'running'));
      await site.clock.advance(60_000);
      await site.step(tracked);
      expect([last()?.reason, waiting()?.status]).to.deep.equal(['Running', 'False']);
      expect(site.ended).to.deep.equal([]);
    });
  });

  describe('tells in the condition of a failed one', () => {
    const failedWith = async (exitCode: number, count = 1) => {
      const tracked = site.track(htcJob({ queue: count }), claimed);
      site.found = Array.from({ length: count }, (_, index) => newsOf(uid, index, 'failed', exitCode));
      await site.step(tracked);
      return last()?.conditions?.find(({ type }) => type === 'Failed')?.message;
    };

    it('the last lines of the error output of its first failed job', async () => {
      site.logOf = () => 'reading\r\n\u001b[31mno such file\u001b[0m: a.root\n\n';
      expect(await failedWith(3, 2)).to.equal(
        '2 of 2 jobs failed; job 0 ended with return code 3; the end of its stderr:\nreading\n [31mno such file [0m: a.root',
      );
      expect(site.logReads).to.deep.equal(['1 stderr']);
    });

    it('those of its output, where it wrote no errors', async () => {
      site.logOf = (_, stream) => (stream === 'stdout' ? 'all went well\n' : '\n');
      expect(await failedWith(1)).to.match(/; the end of its stdout:\nall went well$/);
    });

    it('why its runner could not run it, and not by which return code the runner says so', async () => {
      const why = 'neither apptainer nor singularity is on this machine (node7)';
      site.logOf = () => `a warning\nthresher: the job cannot be run: ${why}\n`;
      expect(await failedWith(127)).to.equal(`1 of 1 jobs failed; job 0 cannot be run: ${why}`);
    });

    it('ten lines and 1,000 characters at most, in whole lines, without secrets that begin before them', async () => {
      const lines = Array.from({ length: 100 }, (_, line) => `line ${line}`);
      site.logOf = () => lines.join('\n');
      expect((await failedWith(3))?.split('\n').slice(1)).to.deep.equal(lines.slice(-10));
      site.logOf = () => Array.from({ length: 9 }, (_, line) => `${line}${' xy'.repeat(99)}`).join('\n');
      const [, ...shown] = (await failedWith(4))?.split('\n') ?? [];
      expect(shown.map((line) => line.slice(0, 3))).to.deep.equal(['...', '6 x', '7 x', '8 x']);
      site.logOf = () => 'yes '.repeat(1250);
      expect((await failedWith(5))?.split('\n')[1]).to.match(/^\.\.\.( yes){250}$/);
      const key = Array.from({ length: 20 }, () => 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC');
      site.logOf = () =>
        ['-----BEGIN PRIVATE KEY-----', ...key, '-----END PRIVATE KEY-----', 'over'].join('\n');
      expect(await failedWith(6))
        .to.match(/over$/)
        .and.not.to.contain('MIIEvQ');
    });

    it('its return code alone where its log cannot be read, or not in time', async () => {
      site.logOf = () => {
        throw new ThresherError('no-log', 'the template names no file for stderr');
      };
      expect(await failedWith(3)).to.equal('1 of 1 jobs failed; job 0 ended with return code 3');
      site.logOf = () => new Promise<never>(() => undefined);
      const message = failedWith(4);
      await site.clock.advance(5000);
      expect(await message).to.equal('1 of 1 jobs failed; job 0 ended with return code 4');
    });

    it('nothing of a log for all of a thousand that fail together, and of one once', async () => {
      site.logOf = () => 'x\n';
      const tracked = site.track(htcJob(), claimed);
      site.found = [newsOf(uid, 0, 'failed', 2)];
      site.meanwhile = () => {
        tracked.update(site.object(htcJob(), claimed));
      };
      await site.step(tracked);
      site.meanwhile = undefined;
      await site.step(tracked);
      expect(site.logReads).to.deep.equal(['1 stderr']);
      for (let count = 0; count < 30; count++) await failedWith(3);
      expect(site.logReads).to.have.length(10);
      await site.clock.advance(2000);
      for (let count = 0; count < 30; count++) await failedWith(3);
      expect(site.logReads).to.have.length(12);
    });

    it('no log of one that was removed, or whose time is over', async () => {
      site.logOf = () => 'x\n';
      const tracked = site.track(htcJob(), claimed);
      site.found = [newsOf(uid, 0, 'cancelled')];
      await site.step(tracked);
      expect(last()).to.include({ failed: 1 });
      expect(site.logReads).to.deep.equal([]);
    });
  });

  it('runs jobs on that a later version, or other settings, would refuse', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    const tracked = site.track(htcJob({ htcopts: 'queue 5' }), claimed);
    await site.step(tracked);
    expect(site.ended).to.deep.equal([]);
    expect(last()).to.include({ reason: 'Running', failed: 0 });
  });

  it('restores the claim that another writer took out of the status, and the counts with it', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    await site.step(site.track(htcJob({ queue: 2 })));
    expect(site.statuses[0]).to.include({ uniqId: uid, active: 1 });
    site.ended.length = 0;
    site.left = 1;
    const deleting = site.track(htcJob(), undefined, deleted);
    expect(await site.step(deleting)).to.equal(500);
    expect(site.ended.map(([index]) => index)).to.deep.equal([0]);
  });

  for (const [what, status] of [
    ['the claim still names', { uniqId: uid, active: 1, succeeded: 0, failed: 0 }],
    ['a job that it submitted names', { active: 1, succeeded: 0, failed: 0, jobid: ['7.0'] }],
  ] as const) {
    it(`is ours where another writer took the factory out of its status, and ${what} it`, async () => {
      site.found = [newsOf(uid, 0, 'running')];
      await site.step(site.track(htcJob(), status));
      expect(site.statuses[0]).to.include({ uniqId: uid, factory: 'factory', active: 1, reason: 'Running' });
    });

    it(`is ended by its deletion where another writer took the factory out of its status, and ${what} it`, async () => {
      site.found = [newsOf(uid, 0, 'running')];
      site.left = 1;
      const deleting = site.track(htcJob(), status, deleted);
      expect(await site.step(deleting)).to.equal(500);
      expect(site.ended.map(([index]) => index)).to.deep.equal([0]);
      site.left = 0;
      await site.step(deleting);
      expect(site.asked).to.deep.equal(['finalizer']);
    });
  }

  it('waits for its import, though the jobs that it marked are adopted: their status comes last', async () => {
    const news = newsOf(uid, 0, 'running');
    site.found = [{ ...news, worker: { ...news.worker, submitTime: null } }];
    const tracked = site.track(htcJob({ queue: 2 }), { active: 2, jobid: ['7.0', '7.1'] });
    await site.step(tracked);
    expect([site.asked, site.ended, askedOf(tracked)]).to.deep.equal([['status HtcjobNotImported'], [], []]);
  });

  for (const [what, status, goes] of [
    ['all of whose jobs are counted as ended goes', { succeeded: 1, failed: 1 }, true],
    ['that counts no living job goes', { active: 0, succeeded: 1 }, true],
    ['of which a job may live waits', { succeeded: 1 }, false],
    ['of which a job lives waits', { active: 1, succeeded: 1, failed: 1 }, false],
    ['whose jobs may be about to be submitted waits', { active: 0, succeeded: 0, failed: 0 }, false],
    ['whose counts are no counts waits', { succeeded: '1', failed: '1' }, false],
  ] as const)
    it(`of htc-operator that was deleted and ${what}`, async () => {
      await site.step(site.track(htcJob({ queue: 2 }), status as unknown as HtcJobStatus, deleted));
      expect(site.asked).to.deep.equal([goes ? 'finalizer' : 'status HtcjobNotImported']);
    });

  it('sees what another writer wrote behind it, though the watch told of that before its own answer came', async () => {
    site.found = [newsOf(uid, 0, 'finished', 0)];
    const tracked = site.track(htcJob(), claimed);
    site.meanwhile = () => {
      const [ours] = site.statuses.slice(-1);
      site.meanwhile = undefined;
      tracked.update(site.object(htcJob(), { ...ours, active: 7, failed: 2, jobIds: ['0.0'] }));
    };
    await site.step(tracked);
    expect(tracked.status).to.include({ active: 7, failed: 2 });
    await site.step(tracked);
    expect(site.statuses).to.have.length(2);
    expect(last()).to.include({ active: 0, succeeded: 1, failed: 0 });
    expect(tracked.status).to.deep.equal(last());
  });

  it('asks for no job without its finalizer, which another writer took away behind it', async () => {
    const tracked = site.track(htcJob(), undefined, { finalizers: [] });
    site.meanwhile = () => {
      site.meanwhile = undefined;
      tracked.update(site.object(htcJob(), undefined, { finalizers: ['of.another'] }));
    };
    await site.step(tracked);
    expect([site.asked, askedOf(tracked)]).to.deep.equal([['finalizer'], []]);
    await site.step(tracked);
    expect(site.asked).to.deep.equal(['finalizer', 'finalizer', 'status Pending']);
  });

  for (const [what, endTime] of [
    ['long past', 2],
    ['in the future', Date.UTC(2030, 0, 1)],
  ] as const)
    it(`lives for ttlSecondsAfterFinished from when its end was heard, though its end time is ${what}, also after a restart`, async () => {
      const news = newsOf(uid, 0, 'finished', 0);
      site.found = [{ ...news, worker: { ...news.worker, endTime } }];
      const job = htcJob({ ttlSecondsAfterFinished: 86_400 });
      await site.clock.advance(5000);
      await site.step(site.track(job, { ...claimed, startTime: '2026-01-01T00:00:00Z' }));
      const at = endTime === 2 ? '2026-01-01T00:00:00Z' : '2026-01-01T00:00:05Z';
      expect(last()).to.include({ startTime: '2026-01-01T00:00:00Z', completionTime: at });
      await site.clock.advance(86_399_000);
      const restarted = site.track(job, last());
      expect(await site.step(restarted)).to.equal(1000);
      expect(site.asked).not.to.include('delete');
      await site.clock.advance(1000);
      await site.step(restarted);
      expect(site.asked).to.include('delete');
    });

  describe('of one whose clock, by that of the server, runs two days ahead', () => {
    const twoDays = 2 * 86_400_000;
    const setAhead = () => {
      const now = site.clock.now.bind(site.clock);
      site.clock.now = () => now() + twoDays;
      site.serverAhead = -twoDays;
    };

    it('deletes nothing before its ttlSecondsAfterFinished', async () => {
      site.found = [newsOf(uid, 0, 'finished', 0)];
      const tracked = site.track(htcJob({ ttlSecondsAfterFinished: 86_400 }), claimed);
      await site.step(tracked);
      setAhead();
      expect(await site.step(tracked)).to.equal(3_600_000);
      expect(site.asked).not.to.include('delete');
      await site.clock.advance(86_400_000);
      await site.step(tracked);
      expect(site.asked).to.include('delete');
    });

    it('ends no job before its activeDeadlineSeconds', async () => {
      site.found = [newsOf(uid, 0, 'running')];
      const tracked = site.track(htcJob({ activeDeadlineSeconds: 3600 }), {
        ...claimed,
        startTime: '2026-01-01T00:00:00Z',
      });
      setAhead();
      expect(await site.step(tracked)).to.equal(3_600_000);
      expect(site.ended).to.deep.equal([]);
      await site.clock.advance(3_600_000);
      await site.step(tracked);
      expect(site.ended.map(([index]) => index)).to.deep.equal([0]);
    });

    it('writes the times of a status by that of the server, so that no end of them comes later for it', async () => {
      setAhead();
      const news = newsOf(uid, 0, 'finished', 0);
      const times = { submitTime: site.clock.now(), endTime: site.clock.now() };
      site.found = [{ ...news, worker: { ...news.worker, ...times } }];
      await site.step(site.track(htcJob(), claimed));
      const at = '2026-01-01T00:00:00Z';
      expect(last()).to.include({ startTime: at, completionTime: at });
      expect(last()?.conditions?.[0]).to.include({ type: 'Complete', lastTransitionTime: at });
    });
  });

  describe('of one whose times a clock wrote that was a day behind, and was set right then', () => {
    const day = 86_400_000;
    for (const [whose, setBehind] of [
      [
        'that of the server',
        () => {
          site.serverAhead = -day;
          return () => {
            site.serverAhead = 0;
          };
        },
      ],
      [
        'its own',
        () => {
          const now = site.clock.now.bind(site.clock);
          site.clock.now = () => now() - day;
          site.serverAhead = day;
          return () => {
            site.clock.now = now;
            site.serverAhead = 0;
          };
        },
      ],
    ] as const) {
      for (const isRestarted of [false, true]) {
        const after = isRestarted ? ', also where the daemon was restarted before that' : '';

        it(`ends no job before its activeDeadlineSeconds: ${whose}${after}`, async () => {
          const setRight = setBehind();
          const news = newsOf(uid, 0, 'running');
          site.found = [{ ...news, worker: { ...news.worker, submitTime: site.clock.now() } }];
          const job = htcJob({ activeDeadlineSeconds: 3600 });
          let tracked = site.track(job, claimed);
          await site.step(tracked);
          if (isRestarted) {
            tracked = site.track(job, last());
            await site.step(tracked);
          }
          setRight();
          await site.clock.advance(3_599_000);
          expect(await site.step(tracked)).to.equal(1000);
          expect(site.ended).to.deep.equal([]);
          await site.clock.advance(1000);
          await site.step(tracked);
          expect(site.ended.map(([index]) => index)).to.deep.equal([0]);
        });

        it(`deletes nothing before its ttlSecondsAfterFinished: ${whose}${after}`, async () => {
          const setRight = setBehind();
          const news = newsOf(uid, 0, 'finished', 0);
          const at = site.clock.now();
          site.found = [{ ...news, worker: { ...news.worker, submitTime: at, endTime: at } }];
          const job = htcJob({ ttlSecondsAfterFinished: 3600 });
          let tracked = site.track(job, claimed);
          await site.step(tracked);
          if (isRestarted) {
            tracked = site.track(job, last());
            await site.step(tracked);
          }
          setRight();
          await site.clock.advance(3_599_000);
          expect(await site.step(tracked)).to.equal(1000);
          expect(site.asked).not.to.include('delete');
          await site.clock.advance(1000);
          await site.step(tracked);
          expect(site.asked).to.include('delete');
        });
      }

      it(`ends no job early that was submitted before, and whose start is written after: ${whose}`, async () => {
        const setRight = setBehind();
        const news = newsOf(uid, 0, 'running');
        site.found = [{ ...news, worker: { ...news.worker, submitTime: site.clock.now() - day } }];
        setRight();
        const tracked = site.track(htcJob({ activeDeadlineSeconds: 3600 }), claimed);
        await site.step(tracked);
        await site.clock.advance(3_599_000);
        await site.step(tracked);
        expect(site.ended).to.deep.equal([]);
      });
    }
  });

  describe('after activeDeadlineSeconds', () => {
    const late: HtcJob = htcJob({ queue: 2, activeDeadlineSeconds: 60 });

    it('withdraws the jobs that were asked for', async () => {
      const tracked = site.track(late);
      await site.step(tracked);
      tracked.hear(newsOf(uid, 0, 'running'));
      await site.step(tracked);
      await site.clock.advance(61_000);
      tracked.status = { ...tracked.status, startTime: '2026-01-01T00:00:00Z' };
      await site.step(tracked);
      expect(site.ended).to.deep.equal([
        [0, 'the activeDeadlineSeconds of HTCJob default/zero are over'],
        [1, 'the activeDeadlineSeconds of HTCJob default/zero are over'],
      ]);
    });

    it('ends a job that starts when the HTCJob has ended', async () => {
      site.found = [newsOf(uid, 0, 'finished', 0)];
      const tracked = site.track(late, { ...claimed, startTime: '2025-12-31T00:00:00Z' });
      await site.step(tracked);
      expect(last()).to.include({ reason: 'DeadlineExceeded', failed: 1 });
      tracked.hear(newsOf(uid, 1, 'running'));
      await site.step(tracked);
      tracked.hear(newsOf(uid, 1, 'running'));
      await site.step(tracked);
      expect(site.ended).to.deep.equal([[1, 'HTCJob default/zero has ended']]);
    });
  });

  describe('of a deletion', () => {
    it('ends a retry that lives since before a restart', async () => {
      site.found = [newsOf(uid, 0, 'failed', 1), newsOf(uid, firstRetry, 'running')];
      site.left = 2;
      const tracked = site.track(htcJob({ backoffLimit: 2 }), { ...claimed, retried: 1 }, deleted);
      expect(await site.step(tracked)).to.equal(500);
      expect(site.ended).to.deep.equal([[firstRetry, 'HTCJob default/zero was deleted']]);
      site.left = 0;
      await site.step(tracked);
      expect(site.asked).to.deep.equal(['finalizer']);
      expect(tracked.isForgotten).to.equal(true);
    });

    it('withdraws a retry that a pass of the queue holds in its hand', async () => {
      site.found = [newsOf(uid, 0, 'failed', 1)];
      const job = htcJob({ backoffLimit: 2 });
      const tracked = site.track(job, claimed);
      await site.step(tracked);
      expect(askedOf(tracked)).to.deep.equal([firstRetry]);
      site.left = 1;
      tracked.update(site.object(job, last(), deleted));
      await site.step(tracked);
      expect(site.ended.map(([index]) => index)).to.deep.equal([firstRetry]);
    });

    it('ends a worker that comes to life after its first round', async () => {
      site.left = 1;
      const tracked = site.track(htcJob(), claimed, deleted);
      await site.step(tracked);
      tracked.hear(newsOf(uid, 0, 'submitted'));
      await site.step(tracked);
      await site.step(tracked);
      expect(site.ended.map(([index]) => index)).to.deep.equal([0]);
    });

    it('says why it waits when that takes long, and not each time', async () => {
      site.left = 3;
      const tracked = site.track(htcJob({ queue: 3 }), claimed, deleted);
      for (let turn = 0; turn < 200; turn++) {
        await site.step(tracked);
        await site.clock.advance(500);
      }
      expect(site.asked).to.deep.equal(['status JobsLeft']);
      const condition = last()?.conditions?.find(({ type }) => type === 'Deleting');
      expect(condition?.message).to.contain('3 of them live, or have left something');
      expect(site.notes.map(({ reason }) => reason)).to.deep.equal(['JobsLeft']);
    });

    it('says why it waits of one without a status, too', async () => {
      site.found = [newsOf(uid, 0, 'running')];
      site.left = 1;
      site.whyLeft.set(1, { code: 'condor-timeout', message: 'no answer' });
      const tracked = site.track(htcJob(), undefined, deleted);
      for (let turn = 0; turn < 100; turn++) {
        await site.step(tracked);
        await site.clock.advance(1000);
      }
      expect(last()?.conditions?.find(({ type }) => type === 'Deleting')?.message).to.match(
        /1 of them live.*\(condor-timeout: no answer\)$/,
      );
      expect(site.notes.map(({ reason }) => reason)).to.deep.equal(['JobsLeft']);
      expect(site.asked).to.deep.equal(['status JobsLeft']);
      site.left = 0;
      await site.step(tracked);
      expect(site.asked.at(-1)).to.equal('finalizer');
    });

    describe('before its backend was listed, as after the loss of the database', () => {
      const why = { code: 'not-listed', message: 'schedd@here could not be listed: no answer' };
      const claims = [
        ['with jobs that may live waits for the listing, says so, and ends the jobs that it shows', claimed],
        ['that never claimed any goes', undefined],
        ['that has finished goes', { ...claimed, completionTime: '2026-01-01T00:00:00Z' }],
      ] as const;
      for (const [what, status] of claims)
        it(`of one ${what}`, async () => {
          site.unlisted = why;
          const tracked = site.track(htcJob(), status, deleted);
          if (status !== claimed) {
            await site.step(tracked);
            expect(site.asked).to.deep.equal(['finalizer']);
            return;
          }
          for (let turn = 0; turn < 50; turn++) {
            await site.step(tracked);
            await site.clock.advance(500);
          }
          expect(site.asked).to.deep.equal(['status JobsUnknown']);
          expect(last()?.conditions?.find(({ type }) => type === 'Deleting')?.message).to.equal(
            `it goes when its backend has told which of its jobs live (not-listed: ${why.message})`,
          );
          site.unlisted = undefined;
          site.left = 1;
          tracked.hear(newsOf(uid, 0, 'running'));
          await site.step(tracked);
          expect(site.ended).to.deep.equal([[0, 'HTCJob default/zero was deleted']]);
          site.left = 0;
          await site.step(tracked);
          expect(site.asked.at(-1)).to.equal('finalizer');
          expect(tracked.isForgotten).to.equal(true);
        });

      it('of one without its finalizer ends the jobs that the listing shows, though no news of them came yet', async () => {
        site.unlisted = why;
        const tracked = site.track(htcJob(), claimed);
        Object.assign(tracked, { isGone: true, isDeleted: true });
        site.gone('zero');
        await site.step(tracked);
        expect(tracked.isForgotten).to.equal(false);
        site.unlisted = undefined;
        site.found = [newsOf(uid, 0, 'running')];
        await site.step(tracked);
        expect(site.ended).to.deep.equal([[0, 'HTCJob default/zero is gone']]);
        expect(tracked.isForgotten).to.equal(true);
      });
    });

    it('claims no spec that was changed while its Secrets were read', async () => {
      const before = htcJob({ secrets: [{ name: 'login' }] });
      const tracked = site.track(before);
      const after = htcJob({ secrets: [{ name: 'login' }], htcopts: 'queue 5' });
      site.secrets.get = () => {
        tracked.update(site.object({ ...after, metadata: { ...after.metadata, generation: 2 } }));
        return {};
      };
      expect(await site.step(tracked)).to.equal(2000);
      expect(site.asked.filter((one) => one.startsWith('status'))).to.deep.equal([]);
      expect(tracked.asked.size).to.equal(0);
      await site.step(tracked);
      expect(last()?.reason).to.equal('Invalid');
    });

    it('hole 6: names what it waits for: that of a worker, and its outputs where these cannot be removed', async () => {
      const steps: string[] = [];
      let isAway = true;
      site.outputs = {
        ...site.outputs,
        letGo: () => steps.push('letGo'),
        remove: () => {
          steps.push('remove');
          const why = { code: 'htcjob-output', message: 'the directory of outputDir hangs' };
          return isAway ? { why } : undefined;
        },
      };
      site.found = [newsOf(uid, 0, 'running')];
      site.left = 1;
      site.whyLeft.set(1, { code: 'htcondor-removing', message: 'job 7.0 was removed' });
      const tracked = site.track(htcJob({ output: {} }), claimed, deleted);
      const untilSaid = async (reason: string, pause: number) => {
        for (let turn = 0; turn < 100 && site.asked.at(-1) !== `status ${reason}`; turn++) {
          expect(await site.step(tracked)).to.equal(pause);
          await site.clock.advance(1000);
        }
        return last()?.conditions?.find(({ type }) => type === 'Deleting')?.message;
      };
      expect(await untilSaid('JobsLeft', 500)).to.match(
        /1 of them live.*\(htcondor-removing: job 7.0 was removed\)$/,
      );
      // Nothing of its outputs is awaited before the workers are gone.
      expect(new Set(steps)).to.deep.equal(new Set(['letGo']));
      site.left = 0;
      expect(await untilSaid('OutputsLeft', 5000)).to.match(
        /outputs are removed \(.*the directory of outputDir hangs\)$/,
      );
      expect(site.asked).not.to.include('finalizer');
      isAway = false;
      await site.step(tracked);
      expect(site.asked.at(-1)).to.equal('finalizer');
      expect(tracked.isForgotten).to.equal(true);
    });

    const whyDeleting = () => last()?.conditions?.find(({ type }) => type === 'Deleting')?.message;
    /** Steps for this long, ms, each of which may fail, as the operator repeats them. */
    const stepFor = async (tracked: Tracked, time: number) => {
      const end = site.clock.monotonic() + time;
      while (site.clock.monotonic() < end && !tracked.isForgotten)
        await site.clock.advance((await site.step(tracked).catch(() => 5000)) ?? 0);
    };

    it('says that its outputs are being removed, while they are', async () => {
      site.outputs = { ...site.outputs, remove: () => ({ why: undefined }) };
      const tracked = site.track(htcJob({ output: {} }), claimed, deleted);
      await stepFor(tracked, 20_000);
      expect(site.asked).to.deep.equal(['status OutputsLeft']);
      expect(whyDeleting()).to.match(/when its outputs are removed \(they are being removed/);
    });

    const server = (code: 'kubernetes-not-found' | 'kubernetes-forbidden' | 'kubernetes-invalid') => () => {
      throw new KubernetesError({ code, message: `the server says ${code}`, maybeDone: false });
    };
    const other = { metadata: { name: 'other', uid: 'uid-of-other', resourceVersion: '99', finalizers: [] } };
    for (const [what, answer] of [
      ['nothing', () => ({})],
      ['another object', () => other],
      ['the object with its finalizer', (before) => before ?? {}],
      ['that it is not there, which a read contradicts', server('kubernetes-not-found')],
    ] as [string, (before: HtcJob | undefined) => object][])
      it(`is not over where the answer to the removal of its finalizer is ${what}: it is asked for again, and the log says so`, async () => {
        site.finalizerAnswer = answer;
        const tracked = site.track(htcJob(), claimed, deleted);
        const failed = await site.step(tracked).then(
          () => site.log.lines.some(({ level }) => level === 'warn'),
          (error: unknown) => error instanceof KubernetesError,
        );
        expect([failed, tracked.isForgotten]).to.deep.equal([true, false]);
        site.finalizerAnswer = undefined;
        await site.step(tracked);
        expect(site.asked).to.deep.equal(['finalizer', 'finalizer']);
        expect(tracked.isForgotten).to.equal(true);
      });

    it('is over where its server says twice that it is not there', async () => {
      site.finalizerAnswer = server('kubernetes-not-found');
      const tracked = site.track(htcJob(), undefined, deleted);
      site.gone('zero');
      await site.step(tracked);
      expect(tracked.isForgotten).to.equal(true);
    });

    for (const code of ['kubernetes-forbidden', 'kubernetes-invalid'] as const)
      it(`says that its server does not let its finalizer go: ${code}`, async () => {
        site.finalizerAnswer = server(code);
        // They are removed already, and asked about all the same.
        site.outputs = { ...site.outputs, remove: () => undefined };
        const tracked = site.track(htcJob({ output: {} }), claimed, deleted);
        await stepFor(tracked, 20_000);
        expect(site.asked.filter((one) => one !== 'finalizer')).to.deep.equal(['status FinalizerLeft']);
        expect(whyDeleting()).to.match(
          new RegExp(`its finalizer away \\(${code}: the server says ${code}\\)$`),
        );
        site.finalizerAnswer = undefined;
        await stepFor(tracked, 5000);
        expect(tracked.isForgotten).to.equal(true);
      });

    it('says that its server does not let it be read, where that takes a status all the same', async () => {
      site.readFails = true;
      site.found = [newsOf(uid, 0, 'running')];
      const tracked = site.track(htcJob(), claimed, deleted);
      await stepFor(tracked, 20_000);
      expect([site.asked, site.ended]).to.deep.equal([['status NotRead'], []]);
      expect(whyDeleting()).to.match(/lets thresher read it \(kubernetes-unreachable: /);
    });

    it('says of jobs that live on a queue that cannot run why it cannot', async () => {
      site.unlisted = { code: 'unknown-plugin', message: 'there is no plugin NoSuch' };
      site.found = [newsOf(uid, 0, 'running')];
      site.left = 1;
      const tracked = site.track(htcJob(), claimed, deleted);
      await stepFor(tracked, 20_000);
      expect(whyDeleting()).to.match(/1 of them live.*\(unknown-plugin: there is no plugin NoSuch\)$/);
    });

    it('ends the jobs of one that went without its finalizer, and none of another factory', async () => {
      site.found = [newsOf(uid, firstRetry, 'running')];
      const tracked = site.track(htcJob(), claimed);
      Object.assign(tracked, { isGone: true, isDeleted: true });
      site.gone('zero');
      await site.step(tracked);
      site.found = [];
      const other = site.track(htcJob({ queue: 100 }), { ...claimed, factory: 'other' });
      Object.assign(other, { isGone: true, isDeleted: true });
      site.gone('zero');
      await site.step(other);
      expect(site.ended).to.deep.equal([[firstRetry, 'HTCJob default/zero is gone']]);
      expect([tracked.isForgotten, other.isForgotten]).to.deep.equal([true, true]);
    });
  });

  for (const deletionTimestamp of [null, ''])
    it(`is that of a HTCJob that nobody deleted where its deletionTimestamp is ${JSON.stringify(deletionTimestamp)}`, async () => {
      site.found = [newsOf(uid, 0, 'running')];
      const tracked = site.track(htcJob(), claimed, { deletionTimestamp });
      expect([tracked.isDeleting, tracked.whole === undefined]).to.deep.equal([false, false]);
      await site.step(tracked);
      expect([site.ended, site.asked]).to.deep.equal([[], ['status Running']]);
    });

  for (const completionTime of [null, ''])
    it(`is that of a HTCJob that has not ended where its completionTime is ${JSON.stringify(completionTime)}`, async () => {
      site.found = [newsOf(uid, 0, 'running')];
      const tracked = site.track(htcJob(), { ...claimed, completionTime } as never);
      await site.step(tracked);
      expect([site.ended, site.asked]).to.deep.equal([[], ['status Running']]);
      tracked.hear(newsOf(uid, 0, 'finished', 0));
      await site.clock.advance(60_000);
      await site.step(tracked);
      expect([last()?.reason, typeof last()?.completionTime]).to.deep.equal(['Succeeded', 'string']);
    });

  it('takes the nulls of a status as absent, and writes it no more often for them', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    const tracked = site.track(htcJob(), claimed);
    await site.step(tracked);
    const written = last();
    const nulls = { clusterId: null, startTime: null, takenOver: null, round: null };
    const odd = {
      ...nulls,
      ...written,
      conditions: [null, ...(written?.conditions ?? [])],
      returnCodes: null,
    };
    tracked.update(site.object(htcJob(), odd as never));
    await site.clock.advance(60_000);
    await site.step(tracked);
    expect([site.asked, site.log.lines]).to.deep.equal([['status Running'], []]);
  });

  describe('of which the watch says that it was deleted', () => {
    let tracked: Tracked;

    beforeEach(async () => {
      site.found = [newsOf(uid, 0, 'running')];
      tracked = site.track(htcJob(), claimed);
      await site.step(tracked);
      Object.assign(tracked, { isGone: true, isDeleted: true });
    });

    it('ends no job where the server has it still, and goes on', async () => {
      expect(await site.step(tracked)).to.equal(0);
      tracked.hear(newsOf(uid, 0, 'finished', 0));
      await site.clock.advance(60_000);
      await site.step(tracked);
      expect([site.ended, last()?.reason, tracked.isForgotten]).to.deep.equal([[], 'Succeeded', false]);
    });

    it('ends no job while the server gives no answer, and asks it again', async () => {
      site.readFails = true;
      for (let turn = 0; turn < 3; turn++)
        await site.step(tracked).then(
          () => expect.fail('it did not wait'),
          () => undefined,
        );
      expect([site.ended, tracked.isForgotten]).to.deep.equal([[], false]);
      site.readFails = false;
      site.gone('zero');
      await site.step(tracked);
      expect(site.ended).to.deep.equal([[0, 'HTCJob default/zero is gone']]);
      expect(tracked.isForgotten).to.equal(true);
    });

    it('ends its jobs where another one has its name by now', async () => {
      site.object(htcJob({}, 'zero', 'uid-of-another'));
      await site.step(tracked);
      expect([site.ended.length, tracked.isForgotten]).to.deep.equal([1, true]);
    });

    it('ends its jobs, and lets it go, where it is on its way out', async () => {
      site.left = 1;
      site.object(htcJob(), claimed, deleted);
      expect(await site.step(tracked)).to.equal(0);
      await site.step(tracked);
      expect(site.ended).to.deep.equal([[0, 'HTCJob default/zero was deleted']]);
      site.left = 0;
      await site.step(tracked);
      expect([site.asked.at(-1), tracked.isForgotten]).to.deep.equal(['finalizer', true]);
    });
  });

  it('hole 6: waits for the word of the watch where a server does not have it, and goes on where it is there again', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    const tracked = site.track(htcJob(), claimed);
    tracked.isGone = true;
    site.gone('zero');
    expect(await site.step(tracked)).to.equal(5000);
    expect([site.ended, tracked.isForgotten]).to.deep.equal([[], false]);
    site.object(htcJob(), claimed);
    expect(await site.step(tracked)).to.equal(0);
    await site.step(tracked);
    expect(last()).to.include({ reason: 'Running' });
  });

  it('hole 6: takes back nothing that the watch told while a server was asked once more', async () => {
    site.found = [newsOf(uid, 0, 'running')];
    const tracked = site.track(htcJob(), claimed);
    const older = site.object(htcJob(), claimed);
    tracked.isGone = true;
    const stepped = site.step(tracked);
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    tracked.update({ ...older, metadata: { ...older.metadata, resourceVersion: '99', deletionTimestamp } });
    expect(await stepped).to.equal(0);
    expect([tracked.meta.resourceVersion, tracked.isDeleting]).to.deep.equal(['99', true]);
  });

  it('puts the end of a suspension on record before jobs are asked for', async () => {
    const conditions = [
      { type: 'Suspended', status: 'True', reason: 'Suspended', message: '', lastTransitionTime: '' },
    ] as const;
    site.found = [newsOf(uid, 0, 'cancelled')];
    const tracked = site.track(htcJob(), { ...claimed, round: 1, conditions });
    expect(await site.step(tracked)).to.equal(0);
    expect(last()?.conditions?.map(({ type, status }) => `${type} ${status}`)).to.deep.equal([
      'Suspended False',
    ]);
    expect(askedOf(tracked)).to.deep.equal([]);
    await site.step(tracked);
    expect(askedOf(tracked)).to.have.length(1);
  });

  describe('hole 8: keeps no long spec in memory', () => {
    const source = 'x'.repeat(240_000);
    const long = (name: string, more: Partial<HtcJobSpec> = {}) =>
      htcJob({ script: { image: 'centos', command: 'sh', source }, ...more }, name);
    /** Those whose bytes are in memory. */
    const holding = (all: readonly Tracked[]) => all.filter((one) => JSON.stringify(one).includes(source));

    it('before its first step, nor while no queue takes it, and reads it when its turn comes', async () => {
      site.queue = { code: 'no-such-queue', message: 'there is no queue NONE' };
      const all = Array.from({ length: 50 }, (_, at) => site.track(long(`j${at}`)));
      expect(holding(all)).to.have.length(0);
      for (const tracked of all) await site.step(tracked);
      expect(holding(all)).to.have.length(0);
      // It was judged when it came, and not again.
      for (const tracked of all) await site.step(tracked);
      expect(site.reads).to.deep.equal(all.map(({ meta }) => meta.name));
      site.queue = 'Q';
      const [first] = all;
      await site.step(first!);
      await site.step(first!);
      expect(site.reads.slice(50)).to.deep.equal(['j0']);
      expect(holding(all)).to.have.length(0);
      expect([...first!.asked.values()]).to.deep.equal([
        { origin: { uid: first!.uid, index: 0 }, requirements: {}, payloadFollows: true },
      ]);
      const jobs = await site.asking.jobs(first!, new AbortController().signal);
      const script = jobs?.payloadOf(0).files?.find(({ name }) => name === 'script.sh');
      expect(Buffer.from(String(script?.content), 'base64').toString()).to.equal(source);
    });

    it('and judges it when it comes', async () => {
      site.queue = { code: 'no-such-queue', message: 'there is no queue NONE' };
      await site.step(site.track(long('wrong', { htcopts: 'queue 5' })));
      expect(last()).to.include({ reason: 'Invalid', failed: 1 });
    });

    it('whose env, options or Secrets are long, and all of a short one', async () => {
      const value = source.slice(0, 20_000);
      site.secrets.set('login', { key: value });
      const all = [
        site.track(htcJob({ env: [{ name: 'A', value }] }, 'env')),
        site.track(htcJob({ htcopts: `\n`.repeat(20_000) }, 'options')),
        site.track(htcJob({ secrets: [{ name: 'login' }] }, 'secrets')),
        site.track(htcJob({}, 'short')),
      ];
      for (const tracked of all) await site.step(tracked);
      expect(all.map((tracked) => JSON.stringify(tracked).includes(value))).to.deep.equal(
        all.map(() => false),
      );
      const follows = all.map(({ asked }) => asked.get(0)?.payloadFollows === true);
      expect(follows).to.deep.equal([true, true, true, false]);
    });

    it('and takes none that has changed while it was read', async () => {
      const tracked = site.track(long('j'));
      const changed = long('j', { htcopts: 'queue 5' });
      site.object({ ...changed, metadata: { ...changed.metadata, generation: 2 } });
      expect(await site.step(tracked)).to.equal(2000);
      expect(tracked.asked.size).to.equal(0);
      await site.step(tracked);
      expect(last()).to.include({ reason: 'Invalid' });
    });

    it('of one that is gone when it is read', async () => {
      const tracked = site.track(long('j'));
      site.gone('j');
      await site.step(tracked);
      expect([tracked.isGone, tracked.asked.size]).to.deep.equal([true, 0]);
    });

    it('and measures one of any depth', async () => {
      const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`) as unknown;
      const script = { image: 'centos', command: deep, source: '' } as unknown as HtcJobSpec['script'];
      await site.step(site.track(htcJob({ env: deep as NonNullable<HtcJobSpec['env']> })));
      const flawed = site.track(htcJob({ script }));
      await site.step(flawed);
      expect(flawed.flaw).to.match(/^spec.script.command is neither/);
    });
  });

  it('hole 8: refuses a number of jobs that an older schema let through', async () => {
    for (const queue of [60_000_000, 20_000, -5, 1.5]) {
      for (const spec of [{ queue }, { script: { ...htcJob().spec.script, queue } }]) {
        const tracked = site.track(htcJob(spec), claimed);
        await site.step(tracked);
        expect(tracked.judge(false).jobs).to.have.length(1);
        expect(askedOf(tracked)).to.deep.equal([]);
        expect(site.notes.at(-1)?.message).to.match(
          /^spec\.(script\.)?queue is no whole number from 1 to 10000; write the number of jobs there$/,
        );
      }
    }
    expect(site.statuses).to.deep.equal([]);
    // htc-operator wrote a 0 into those that did not say it.
    const unsaid = site.track(htcJob({ queue: 0 }));
    await site.step(unsaid);
    expect(askedOf(unsaid)).to.deep.equal([0]);
  });

  describe('of one whose jobs wait', () => {
    /** How often all its jobs were judged. */
    let judged: number;
    let tracked: Tracked;

    beforeEach(async () => {
      tracked = site.track(htcJob({ activeDeadlineSeconds: 50 }));
      judged = 0;
      const judge = tracked.judge.bind(tracked);
      tracked.judge = (isExpired) => {
        judged++;
        return judge(isExpired);
      };
      await site.step(tracked);
      await site.clock.advance(2000);
      expect(await site.step(tracked)).to.equal(2000);
      judged = 0;
    });

    it('hole 8: judges none of them again while nothing has changed', async () => {
      for (let at = 0; at < 20; at++) {
        await site.clock.advance(2000);
        expect(await site.step(tracked)).to.equal(2000);
      }
      expect([judged, askedOf(tracked)]).to.deep.equal([0, [0]]);
      await site.clock.advance(20_000);
      await site.step(tracked);
      expect(judged, 'a look each minute').to.equal(1);
    });

    it('judges them where their reason is another one, and says it', async () => {
      site.reasons = [{ code: 'queue-limit', message: 'full' }];
      await site.step(tracked);
      expect([judged, last()?.reason]).to.deep.equal([1, 'QueueLimit']);
      await site.step(tracked);
      expect(judged).to.equal(1);
    });

    it('judges them where it has changed, or its queue has, also while a step of it is under way', async () => {
      tracked.hasChanged();
      await site.step(tracked);
      expect(judged).to.equal(1);
      site.queue = 'OTHER';
      await site.step(tracked);
      expect([judged, tracked.queue]).to.deep.equal([2, 'OTHER']);
      site.reasons = [{ code: 'queue-limit', message: 'full' }];
      await site.clock.advance(2000);
      site.meanwhile = () => {
        tracked.hasChanged();
      };
      await site.step(tracked);
      site.meanwhile = undefined;
      await site.step(tracked);
      expect(judged).to.equal(4);
    });

    it('keeps the requests that a pass may have in its hand, and reads its Secrets once for a hundred jobs', async () => {
      site.secrets.set('login', {});
      const many = site.track(htcJob({ queue: 3000, secrets: [{ name: 'login' }] }, 'many'));
      const others = site.track(htcJob({ queue: 10_000 }, 'others'));
      const more = site.track(htcJob({ queue: 9000 }, 'more'));
      for (const one of [others, more, many]) await site.step(one);
      expect([others.asked.size, more.asked.size, many.asked.size]).to.deep.equal([10_000, 9000, 999]);
      const [before] = [...many.asked.values()];
      // By a pass.
      many.turn = 999;
      const reads = site.secretReads.length;
      for (let at = 0; at < 1000; at += 20) {
        for (let index = at; index < at + 20; index++) many.hear(newsOf(many.uid, index, 'pending'));
        await site.step(many);
        expect(many.asked.get(at + 20) ?? before).to.be.an('object');
      }
      expect(site.secretReads.length - reads).to.be.within(5, 11);
      expect(many.asked.size).to.be.within(900, 1000);
      const kept = [...many.asked.values()];
      for (const request of kept.slice(0, 100)) many.hear(newsOf(many.uid, request.origin.index, 'pending'));
      await site.step(many);
      expect([...many.asked.values()].slice(0, kept.length - 100)).to.deep.equal(kept.slice(100));
      for (const request of kept.slice(100)) expect(many.asked.get(request.origin.index)).to.equal(request);
    });

    it('offers nothing again of which all was heard while its Secrets were read', async () => {
      site.secrets.set('login', {});
      const job = htcJob({ queue: 3, backoffLimit: 3, secrets: [{ name: 'login' }] });
      const open = site.track(job, claimed);
      await site.step(open);
      for (const index of [0, 1]) open.hear(newsOf(open.uid, index, 'failed', 1));
      const retry = 10_000;
      let heard = false;
      const get = site.secrets.get.bind(site.secrets);
      site.secrets.get = (name) => {
        if (!heard) open.hear(newsOf(open.uid, retry, 'failed', 1));
        heard = true;
        return get(name);
      };
      open.asked = new Map([[retry, { origin: { uid: open.uid, index: retry } }]]);
      await site.step(open);
      expect(heard).to.equal(true);
      await site.step(open);
      open.hear(newsOf(open.uid, 2, 'failed', 1));
      await site.step(open);
      expect(open.open, 'nothing that has ended').to.not.include(retry);
      expect([last()?.completionTime, last()?.reason === 'JobsFailed']).to.deep.equal([undefined, false]);
    });

    it('says the same of its jobs when one of them has got a worker', async () => {
      site.reasons = [{ code: 'queue-limit', message: 'full' }];
      const open = site.track(htcJob({ queue: 100 }), claimed);
      // Behind the turns of others.
      open.turn = 1;
      const turns = site.track(htcJob({ queue: 10_000 }, 'one'));
      const more = site.track(htcJob({ queue: 10_000 }, 'two'));
      for (const one of [turns, more, open]) await site.step(one);
      expect(open.asked.size).to.equal(1);
      await site.clock.advance(2000);
      await site.step(open);
      const isWaiting = () => last()?.conditions?.find(({ type }) => type === 'Waiting')?.status;
      expect(isWaiting()).to.equal('True');
      for (let index = 0; index < 3; index++) {
        open.hear(newsOf(open.uid, index, 'running'));
        // No pass has seen the next one.
        site.reasons = [];
        await site.step(open);
        expect([isWaiting(), open.asked.size]).to.deep.equal(['True', 1]);
        site.reasons = [{ code: 'queue-limit', message: 'full' }];
        await site.clock.advance(2000);
        await site.step(open);
        expect(isWaiting()).to.equal('True');
      }
    });

    it('asks anew each minute with what its Secrets are by then, where the queue refuses its jobs', async () => {
      site.secrets.set('login', {});
      const open = site.track(htcJob({ queue: 3, secrets: [{ name: 'login' }] }), claimed);
      await site.step(open);
      const [before] = [...open.asked.values()];
      site.reasons = [{ code: 'payload-too-large', message: 'too large' }];
      await site.clock.advance(2000);
      await site.step(open);
      const statuses = site.statuses.length;
      for (let at = 0; at < 40; at++) {
        await site.clock.advance(2000);
        await site.step(open);
      }
      const [after] = [...open.asked.values()];
      expect(after).to.be.an('object').that.does.not.equal(before);
      expect(open.asked.size).to.equal(1);
      expect(site.statuses.length, 'which changes nothing that users see').to.equal(statuses);
      site.reasons = [];
      await site.clock.advance(2000);
      await site.step(open);
      // By a pass.
      open.hasChanged();
      await site.step(open);
      expect(open.asked.size).to.equal(3);
    });

    it('ends at its deadline', async () => {
      tracked.hear(newsOf(uid, 0, 'submitted'));
      const job = htcJob({ activeDeadlineSeconds: 50, queue: 2 });
      const open = site.track(job, { ...claimed, startTime: new Date(site.clock.now()).toISOString() });
      await site.step(open);
      await site.clock.advance(48_000);
      expect(await site.step(open)).to.equal(2000);
      await site.clock.advance(2000);
      await site.step(open);
      expect(last()).to.include({ reason: 'DeadlineExceeded' });
    });
  });

  describe('hole 8: of an object that an older schema let through', () => {
    const over = { ...claimed, active: 0, succeeded: 1, completedIndexes: '0' };
    const ended: HtcJobStatus = { ...over, completionTime: '2020-01-01T00:00:00Z' };
    const started = { ...claimed, startTime: '2020-01-01T00:00:00Z' };
    const seconds = 'a whole number of seconds';
    const directory = 'an object, with a directory that is a relative path';
    const wrong: readonly (readonly [field: string, value: unknown, right: string])[] = [
      ...['1h', -1, 1.5, 1e300, []].flatMap((value) => [
        ['ttlSecondsAfterFinished', value, seconds] as const,
        ['activeDeadlineSeconds', value, seconds] as const,
        ['backoffLimit', value, 'a whole number from 0 to 999'] as const,
      ]),
      ['activeDeadlineSeconds', 0, seconds],
      ['backoffLimit', 1000, 'a whole number from 0 to 999'],
      ['suspend', 'yes', 'true or false'],
      ['queueName', 5, 'the name of a queue'],
      ['queueName', '', 'the name of a queue'],
      ...['here', [], { directory: '../../home' }, { directory: 7 }, { directory: '' }].map(
        (value) => ['output', value, directory] as const,
      ),
    ];
    const withField = (field: string, value: unknown) => htcJob({ [field]: value });
    for (const [field, value, right] of wrong) {
      const said = `${field} ${JSON.stringify(value)}`;
      const message = new RegExp(`^spec\\.${field} must be ${right}`);

      it(`says what is right for ${said}, and begins nothing of it`, async () => {
        const tracked = site.track(withField(field, value));
        expect(await site.step(tracked)).to.equal(undefined);
        expect([askedOf(tracked), site.statuses]).to.deep.equal([[], []]);
        expect(site.notes.map((note) => note.message.replace(message, 'right'))[0]).to.match(/^right/);
        await site.step(tracked);
        expect(site.notes).to.have.length(1);
      });

      it(`brings one to its end that runs with ${said}`, async () => {
        const tracked = site.track(withField(field, value), started);
        site.found = [newsOf(uid, 0, 'finished', 0)];
        expect(await site.step(tracked)).to.equal(undefined);
        expect(last()).to.include({ succeeded: 1, reason: 'Succeeded' });
        expect(site.notes[0]?.message).to.match(message);
        expect(await site.step(site.track(withField(field, value), ended))).to.equal(undefined);
        expect(site.asked).not.to.include('delete');
      });
    }

    it('takes the right values, those that a server of today would not take but that do no harm, and null', async () => {
      const right = { ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 1, backoffLimit: 999 };
      const nothing = { suspend: null, queueName: null, ttlSecondsAfterFinished: null };
      for (const spec of [{ ...right, suspend: false, queueName: 'Q' }, nothing]) {
        const tracked = site.track(htcJob(spec as Partial<HtcJobSpec>));
        await site.step(tracked);
        expect([tracked.misfit, askedOf(tracked)]).to.deep.equal([undefined, [0]]);
      }
      const century = site.track(htcJob({ ttlSecondsAfterFinished: 3_153_600_000 }), ended);
      expect(await site.step(century)).to.equal(3_600_000);
    });

    it('runs no more than 999 failed jobs again, and of those without a right number none', async () => {
      const count = 1100;
      const retriesOf = async (backoffLimit: unknown) => {
        const job = htcJob({ queue: count, backoffLimit } as unknown as Partial<HtcJobSpec>);
        const tracked = site.track(job, claimed);
        site.found = Array.from({ length: count }, (_, index) => newsOf(uid, index, 'failed', 1));
        await site.step(tracked);
        return tracked.asked.size;
      };
      expect([await retriesOf(5000), await retriesOf('many')]).to.deep.equal([999, 0]);
    });

    it('keeps and removes the outputs of one whose other fields alone are wrong', () => {
      const output = { directory: 'results' };
      expect(site.track(htcJob({ output, backoffLimit: -1 })).spec.output).to.deep.equal(output);
      expect(site.track(htcJob({ output: { directory: '..' } })).spec.output).to.equal(undefined);
    });

    it('makes no output of jobs whose directory counts as absent, be the HTCJob short or long', async () => {
      const output = { directory: '../../home' };
      const script = { image: 'centos', command: 'sh', source: 'x'.repeat(10_000) };
      for (const spec of [{ output }, { output, script }]) {
        const tracked = site.track(htcJob(spec), claimed);
        await site.step(tracked);
        const jobs = await site.asking.jobs(tracked, new AbortController().signal);
        expect(jobs?.payloadOf(0).output).to.equal(false);
      }
    });

    it('says that a finished one is no HTCJob of today without taking its counts for false', async () => {
      const script = { ...htcJob().spec.script, source: 5 } as unknown as HtcJobSpec['script'];
      const counts = { succeeded: 5, completedIndexes: '0-4', active: 0, held: 0, failed: 0 };
      const tracked = site.track(htcJob({ queue: 5, script }), { ...ended, ...counts });
      expect([tracked.isFalsified, await site.step(tracked)]).to.deep.equal([false, undefined]);
      expect(site.notes).to.deep.equal([]);
    });

    it('counts nothing that is no count in its status', async () => {
      const status = { ...claimed, retried: 'many', round: 'third' } as unknown as HtcJobStatus;
      const tracked = site.track(htcJob({ backoffLimit: 1 }), status);
      site.found = [newsOf(uid, 0, 'failed', 1), newsOf(uid, firstRetry, 'failed', 1)];
      await site.step(tracked);
      expect(askedOf(tracked)).to.deep.equal([]);
      expect(last()).to.include({ failed: 1, reason: 'JobsFailed' });
      const rounds = site.track(htcJob({ queue: 3, suspend: true }, 'rounds'), {
        ...claimed,
        round: 2 ** 31 - 1,
      });
      const indexes = rounds.judge(false).jobs.map(({ index }) => index);
      expect(new Set(indexes).size, 'each job has an index of its own').to.equal(3);
      expect(indexes.every(Number.isSafeInteger)).to.equal(true);
    });
  });

  it('ends one that an earlier version claimed with a size that no machine has, once and with its reason', async () => {
    const tracked = site.track(htcJob({ requests: { memory: '2000Pi' } }), { ...claimed, active: 0 });
    await site.step(tracked);
    expect(askedOf(tracked)).to.deep.equal([0]);
    site.reasons = [{ code: 'request-refused', message: 'minRamCount is too large' }];
    await site.clock.advance(2000);
    await site.step(tracked);
    await site.step(tracked);
    expect(last()).to.include({ reason: 'Invalid', failed: 1 });
    expect(last()?.conditions?.[0]?.message).to.contain('/spec/requests/memory: memory is 2000Pi');
    expect([askedOf(tracked), tracked.isFinished]).to.deep.equal([[], true]);
  });

  it('goes on with one that an earlier version claimed, and whose queue refuses it for another reason', async () => {
    const tracked = site.track(htcJob({ requests: { memory: '2Gi' } }), { ...claimed, active: 0 });
    await site.step(tracked);
    site.reasons = [{ code: 'request-refused', message: 'nCore is 0' }];
    await site.clock.advance(2000);
    await site.step(tracked);
    await site.step(tracked);
    expect([last()?.reason, askedOf(tracked)]).to.deep.equal(['RequestRefused', [0]]);
  });

  it('of an object without a script tells it once, and asks for nothing', async () => {
    const job = { ...htcJob(), spec: { name: 'zero' } } as unknown as HtcJob;
    const tracked = site.track(job);
    expect(await site.step(tracked)).to.equal(undefined);
    tracked.update(site.object(job));
    await site.step(tracked);
    expect(site.asked).to.deep.equal([]);
    expect(site.notes).to.deep.equal([
      {
        type: 'Warning',
        reason: 'Invalid',
        message: 'spec.script.source is no text; write the script there',
      },
    ]);
    tracked.update(site.object(htcJob()));
    await site.step(tracked);
    expect(askedOf(tracked)).to.deep.equal([0]);
  });

  for (const command of [5, null, { a: 'b' }, ['sh', 5]])
    it(`fails one at once whose command is ${JSON.stringify(command)}, which the schema of today lets through`, async () => {
      const { spec, ...others } = htcJob({ queue: 3 });
      const job = { ...others, spec: { ...spec, script: { ...spec.script, command } } } as unknown as HtcJob;
      const tracked = site.track(job);
      expect(await site.step(tracked)).to.equal(undefined);
      expect(last()).to.include({ reason: 'Invalid', active: 0, succeeded: 0 });
      expect(last()?.completionTime).to.not.equal(undefined);
      const failed = last()?.conditions?.find(({ type }) => type === 'Failed');
      expect(failed).to.include({ status: 'True' });
      expect(failed?.message).to.contain('neither a text nor a list of texts; write the program there');
      await site.step(site.track(job, last()));
      expect(site.statuses).to.have.length(1);
      // Jobs that an earlier schema let begin are not judged by that.
      await site.step(site.track(job, claimed));
      expect(site.statuses).to.have.length(1);
    });

  it('leaves a HTCJob of another factory alone, and says so', async () => {
    const tracked = site.track(htcJob(), { ...claimed, factory: 'other' });
    await site.step(tracked);
    await site.step(tracked);
    expect(site.asked).to.deep.equal([]);
    tracked.update(site.object(htcJob(), tracked.status, deleted));
    await site.step(tracked);
    const about = 'its jobs are those of factory other, which alone';
    expect(site.notes.map(({ message }) => message)).to.deep.equal([
      `${about} brings it on; the operator now is factory factory`,
      `${about} lets it go; the operator now is factory factory`,
    ]);
    expect(site.log.lines.map(({ message }) => message)).to.deep.equal([
      'HTCJobs of another factory are left alone',
    ]);
  });

  it('takes over a HTCJob that another factory had not submitted', async () => {
    const tracked = site.track(htcJob(), { factory: 'other', active: 0, reason: 'NoSuchQueue' });
    await site.step(tracked);
    expect(last()).to.include({ uniqId: uid, factory: 'factory' });
  });

  it('writes big resources more rarely, and their end at once', async () => {
    const source = 'x'.repeat(900_000);
    const job = htcJob({ queue: 100, script: { image: 'centos', command: 'sh', source } });
    const tracked = site.track(job);
    await site.step(tracked);
    for (let nth = 0; nth < 99; nth++) {
      tracked.hear(newsOf(uid, nth, 'finished', 0));
      await site.step(tracked);
      await site.clock.advance(500);
    }
    // 4 MB at once, and 100 kB in each of 50 s.
    expect(site.statuses.length).to.be.within(5, 11);
    tracked.hear(newsOf(uid, 99, 'finished', 0));
    await site.step(tracked);
    expect(last()).to.include({ succeeded: 100, reason: 'Succeeded' });
  });

  it('runs each failed job again that backoffLimit allows, however often it looks meanwhile', async () => {
    site.found = [0, 1, 2].map((nth) => newsOf(uid, nth, 'failed', 1));
    const tracked = site.track(htcJob({ queue: 3, backoffLimit: 3 }), claimed);
    for (let turn = 0; turn < 5; turn++) {
      await site.step(tracked);
      await site.clock.advance(2000);
      if (turn === 2) tracked.hear(newsOf(uid, firstRetry, 'running'));
    }
    expect(askedOf(tracked)).to.deep.equal([firstRetry + 1, firstRetry + 2]);
    expect(last()).to.include({ failed: 0, active: 1, retried: 1 });
  });

  it('writes the numbers of failed jobs while others run', async () => {
    site.found = [newsOf(uid, 0, 'failed', 7), newsOf(uid, 1, 'running')];
    await site.step(site.track(htcJob({ queue: 2 }), claimed));
    expect(last()).to.include({ failed: 1, failedIndexes: '0', active: 1 });
    // The database was lost: the first job does not run again.
    site.found = [];
    const tracked = site.track(htcJob({ queue: 2 }), last());
    await site.step(tracked);
    expect(askedOf(tracked)).to.deep.equal([1]);
  });

  it('shows the codes of failed jobs before those of the others', async () => {
    const count = 300;
    site.found = Array.from({ length: count }, (_, nth) =>
      newsOf(uid, nth, nth === 250 ? 'failed' : 'finished', nth === 250 ? 7 : 0),
    );
    const tracked = site.track(htcJob({ queue: count }), claimed);
    for (let nth = 0; nth < count; nth++) tracked.report(nth, nth === 250 ? 7 : 0);
    await site.step(tracked);
    expect(last()?.returnCodes).to.deep.equal([{ index: 250, exitCode: 7, reported: 7 }]);
  });

  describe('where its spec, or what ran its jobs, has our own login in it', () => {
    const secret = 'opaque-9b4d1c7e3f0a5826';
    const masked = (text: string) => text.replaceAll(secret, '(hidden)');

    beforeEach(() => {
      rememberSecret(secret);
      site.queue = { code: 'no-such-queue', message: `there is no queue ${secret}` };
    });

    it('shows it neither in a condition nor in an Event', async () => {
      const created: object[] = [];
      const client = { create: async (_: string, event: object) => created.push(event) };
      const parts = { clock: site.clock, random: () => 0.5, log: site.log };
      const writer = new EventWriter(client as unknown as Pick<KubernetesClient, 'create'>, 'factory', parts);
      const tracked = site.track(htcJob());
      await site.step(tracked);
      writer.write(tracked.meta, site.notes, new AbortController().signal);
      site.queue = 'Q';
      await site.step(site.track(htcJob({ htcopts: `${secret} = 1` })));
      expect(last()).to.include({ reason: 'Invalid' });
      const failed = site.track(htcJob({}, 'failed'));
      const news = newsOf('uid-of-failed', 0, 'failed');
      site.found = [{ ...news, worker: { ...news.worker, diagMessage: `Bearer ${secret}` } }];
      await site.step(failed);
      for (const written of [site.statuses, created])
        expect(JSON.stringify(written)).to.contain('(hidden)').and.not.contain(secret);
      expect(JSON.stringify(created)).to.contain('there is no queue (hidden)');
    });

    it('writes it once, also where the server puts the login back in all that it gives', async () => {
      const tracked = site.track(htcJob());
      await site.step(tracked);
      expect(site.statuses).to.have.length(1);
      for (const echoed of [
        last(),
        JSON.parse(JSON.stringify(last()).replaceAll('(hidden)', secret)) as object,
      ]) {
        tracked.update(site.object(htcJob(), echoed));
        await site.clock.advance(60_000);
        await site.step(tracked);
        expect(site.statuses).to.have.length(1);
      }
      site.queue = { code: 'no-such-queue', message: `there is no queue ${secret} now` };
      await site.clock.advance(60_000);
      await site.step(tracked);
      expect(last()?.conditions?.map(({ message }) => message)).to.deep.equal([
        masked(`there is no queue ${secret} now`),
      ]);
    });
  });
});
