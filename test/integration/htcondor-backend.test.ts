import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Monitor, Observation, Submitter, Worker } from '../../src/plugins/contracts/index.ts';
import { classAdString } from '../../src/clients/htcondor/classad.ts';
import { identityText } from '../../src/plugins/htcondor/marks.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import type { ThresherError } from '../../src/worker/errors.ts';
import { isFinal } from '../../src/worker/status.ts';
import { writeToken } from '../env/htcondor/pool.ts';
import { clientOf, condorPool, type Pool, type ScheddKind } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { type Watched, watch } from '../support/watched.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

describe('jobs of HTCondor', () => {
  let pool: Pool;
  let backend: HTCondorBackend;
  let watched: Watched | undefined;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    backend = new HTCondorBackend(pool, 'local');
  });
  afterEach(async () => {
    await watched?.[Symbol.asyncDispose]();
    watched = undefined;
    await backend.clean();
  });

  async function submit(submitter: Submitter, worker = backend.worker()): Promise<Worker> {
    const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
    if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
    return { ...worker, handle: outcome.handle };
  }

  function follow(monitor: Monitor): Watched {
    watched = watch(monitor);
    return watched;
  }

  const monitor = (section: object = {}) =>
    backend.plugin('monitor', backend.context(), { pollInterval: 0.3, ...section });
  const last = (seen: Watched, { workerId }: Worker) => seen.history.get(workerId)?.at(-1);
  const untilStatus = (seen: Watched, worker: Worker, fits: (one: Observation) => boolean) =>
    until('it is seen', () => {
      const one = last(seen, worker);
      return one !== undefined && fits(one) ? one : undefined;
    });
  const act = (action: 'hold' | 'release' | 'remove') =>
    clientOf(pool, 'local').act(action, backend.space.mine, 'the test says so', signal);

  it('that are ended by a signal have failed, as a shell would say', async () => {
    const worker = await submit(backend.submitter('kill -9 $$'));
    const end = await untilStatus(follow(monitor()), worker, ({ status }) => isFinal(status));
    expect(end).to.deep.include({ status: 'failed', exitCode: 137 });
    expect(end.error).to.deep.equal({ code: 'exit-status', message: 'ended by signal 9 (SIGKILL)' });
  });

  it('that somebody holds wait, go on when they are released, and are cancelled when they are removed', async () => {
    const worker = await submit(backend.submitter('exec sleep 1000'));
    const seen = follow(monitor());
    await untilStatus(seen, worker, ({ status }) => status === 'running');
    await act('hold');
    const held = await untilStatus(seen, worker, ({ nativeStatus }) => nativeStatus === 'held');
    expect(held.status).to.equal('idle');
    expect(held.detail?.HoldReason).to.match(/the test says so/);
    await act('release');
    await untilStatus(seen, worker, ({ status }) => status === 'running');
    await act('remove');
    const end = await untilStatus(seen, worker, ({ status }) => isFinal(status));
    expect(end.status).to.equal('cancelled');
    expect(end.error?.code).to.equal('htcondor-removed');
    expect(end.error?.message).to.match(/the test says so/);
  });

  it('hole 1: that another user gave our marks are no workers: they are orphans, not seen, and the files that they name not read', async () => {
    const worker = await submit(backend.submitter('exec sleep 1000'));
    const games = join(backend.directory, 'games');
    await writeToken(pool.directory, join(pool.programs, '../..'), 'games', games);
    const secret = join(backend.directory, 'secret');
    writeFileSync(secret, 'the key');
    const forged = backend.worker();
    const copies = [worker, forged].flatMap((one) => [
      ...['executable = /bin/true', 'requirements = false', `+SUBMIT_Out = ${classAdString(secret)}`],
      `+thresherFactory = ${classAdString(backend.space.factory)}`,
      `+harvesterWorkerID = "${one.workerId}"`,
      `+thresherQueue = ${classAdString(one.queue)}`,
      `+thresherIdentity = ${classAdString(identityText(one))}`,
      'queue',
    ]);
    const theirs = clientOf(pool, 'local', { tokenDirectory: games });
    await theirs.submit(copies.join('\n'), {}, signal);
    try {
      const known = monitor();
      const seen = follow(known);
      await untilStatus(seen, worker, ({ status }) => status === 'running');
      const listed = await backend.plugin('sweeper', backend.context()).list(signal);
      expect(listed.flatMap(({ identity }) => identity?.workerId ?? [])).to.deep.equal([worker.workerId]);
      const foreign = 'it is of user games, as whom thresher does not submit';
      expect(listed.flatMap(({ damage }) => damage ?? [])).to.deep.equal([foreign, foreign]);
      expect([...seen.history.keys()]).to.deep.equal([worker.workerId]);
      const submitter = backend.submitter('true');
      const kinds = async () => {
        const checked = await known.check([forged, worker], signal);
        const found = await submitter.find([forged, worker], signal);
        const ids = [forged.workerId, worker.workerId];
        return [checked, found].flatMap((answers) => ids.map((id) => answers.get(id)?.kind));
      };
      expect(await kinds(), 'it may be ours, of an earlier credential').to.deep.equal([
        ...['unknown', 'observed', 'unknown', 'found'],
      ]);
      const wanted = { stream: 'stdout', follow: false } as const;
      const text: unknown[] = [];
      const read = async () => {
        for await (const piece of known.logs?.read(forged, wanted, signal) ?? []) text.push(piece);
      };
      expect(await read().catch((error: unknown) => (error as ThresherError).code)).to.equal('no-log');
      expect(text).to.deep.equal([]);
      const sweeper = backend.plugin('sweeper', backend.context());
      expect((await sweeper.kill([forged], signal)).get(forged.workerId)).to.have.property('kind', 'pending');
      await theirs.act('remove', backend.space.mine, 'the test is over', signal);
      await until('it runs no more', async () => (await kinds()).join() === 'absent,observed,absent,found');
      expect((await sweeper.kill([forged], signal)).get(forged.workerId)).to.have.property('kind', 'gone');
    } finally {
      await theirs.act('remove', backend.space.mine, 'the test is over', signal);
    }
  });

  it('hole 5: that HTCondor copied with their marks to pass them on say nothing of their workers: neither seen nor listed, and no end', async () => {
    const worker = await submit(backend.submitter('exec sleep 1000'));
    const copies = ['SubmitterGlobalJobId = "schedd#1.0#1"', 'RoutedFromJobId = "1.0"'].flatMap((made) => [
      ...['executable = /bin/true', `+${made}`],
      `+thresherFactory = ${classAdString(backend.space.factory)}`,
      `+harvesterWorkerID = "${worker.workerId}"`,
      `+thresherQueue = ${classAdString(worker.queue)}`,
      `+thresherIdentity = ${classAdString(identityText(worker))}`,
      'queue',
    ]);
    const client = clientOf(pool, 'local');
    await client.submit(copies.join('\n'), {}, signal);
    const those = `thresherFactory =?= ${classAdString(backend.space.factory)}`;
    const known = monitor();
    const seen = follow(known);
    await until(
      'both copies are over',
      async () =>
        (await client.history(`${those} && JobStatus == 4`, ['ClusterId'], 10, signal)).length === 2,
    );
    await untilStatus(seen, worker, ({ status }) => status === 'running');
    // What is seen from now on is of a look that began behind the end of the copies.
    await act('hold');
    await untilStatus(seen, worker, ({ nativeStatus }) => nativeStatus === 'held');
    expect(
      [...(seen.history.get(worker.workerId) ?? [])].filter(({ status }) => isFinal(status)),
    ).to.deep.equal([]);
    expect((await known.check([worker], signal)).get(worker.workerId)).to.have.nested.property(
      'observation.status',
      'idle',
    );
    const listed = await backend.plugin('sweeper', backend.context()).list(signal);
    expect(listed.map(({ handle }) => handle)).to.deep.equal([worker.handle]);
  });

  it('hole 8: are seen, whatever another user writes into attributes that thresher asks for', async () => {
    const worker = await submit(backend.submitter('exec sleep 1000'));
    const games = join(backend.directory, 'games');
    await writeToken(pool.directory, join(pool.programs, '../..'), 'games', games);
    const theirs = clientOf(pool, 'local', { tokenDirectory: games });
    // HTCondor cannot send the first, and writes the second as more than thresher reads of one ad.
    for (const long of ['x'.repeat(6_000_000), '\u0001'.repeat(900_000)]) {
      const text = ['executable = /bin/true', 'requirements = false', `+thresherQueue = "${long}"`];
      const ours = `+thresherFactory = ${classAdString(backend.space.factory)}`;
      await theirs.submit([...text, ours, '+harvesterWorkerID = "7"', 'queue'].join('\n'), {}, signal);
    }
    try {
      const known = monitor();
      const seen = follow(known);
      await untilStatus(seen, worker, ({ status }) => status === 'running');
      const listed = await backend.plugin('sweeper', backend.context()).list(signal);
      expect(listed.map(({ identity }) => identity?.workerId)).to.deep.equal([worker.workerId]);
      // The schedd finds this one by the mark of our worker. condor_q gets no private attributes: to it the mark is more than thresher reads.
      const huge = Array.from({ length: 7 }).reduce<string>(
        (text) => `replaceall("x", ${text}, "xxxxxxxxxx")`,
        '"x"',
      );
      const mark = `ifThenElse(isUndefined(_condor_privFoo), ${huge}, "${worker.workerId}")`;
      const lines = [
        'executable = /bin/true',
        'requirements = false',
        `+harvesterWorkerID = ${mark}`,
        '+_condor_privFoo = 1',
      ];
      const factory = `+thresherFactory = ${classAdString(backend.space.factory)}`;
      await theirs.submit([...lines, factory, 'queue'].join('\n'), {}, signal);
      expect((await known.check([worker], signal)).get(worker.workerId)).to.have.property('kind', 'observed');
    } finally {
      await theirs.act('remove', backend.space.mine, 'the test is over', signal);
    }
  });

  it('that are held for too long are removed, with the reason', async () => {
    backend.template('missing.yaml', '', { executable: '/nonexistent/pilot' });
    const section = { templateFile: 'missing.yaml', logDir: 'logs' };
    const worker = await submit(backend.plugin('submitter', backend.context(), section));
    const seen = follow(monitor({ heldTimeout: 1 }));
    const end = await untilStatus(seen, worker, ({ status }) => isFinal(status));
    expect(end.status).to.equal('cancelled');
    expect(end.error?.code).to.equal('htcondor-start');
    expect(end.error?.message).to.match(/\/nonexistent\/pilot/);
    const client = clientOf(pool, 'local');
    const left = `${backend.space.mine} && JobStatus =!= 3`;
    expect(await client.queue(left, ['ClusterId'], signal)).to.deep.equal([]);
  });

  it('hole 5: that are held wait for as long as the clock of the schedd says, however far ahead the own one is', async () => {
    backend.template('held.yaml', '', { executable: '/nonexistent/pilot' });
    const section = { templateFile: 'held.yaml', logDir: 'logs' };
    const worker = await submit(backend.plugin('submitter', backend.context(), section));
    const clock: Clock = {
      now: () => Date.now() + 86_400_000,
      monotonic: () => systemClock.monotonic(),
      sleep: (ms, aborts) => systemClock.sleep(ms, aborts),
    };
    const ahead = backend.plugin('monitor', backend.context({ clock }), { pollInterval: 0.3 });
    const end = ({ status, nativeStatus }: Observation) => nativeStatus === 'held' || isFinal(status);
    const seen = await untilStatus(follow(ahead), worker, end);
    expect([isFinal(seen.status), seen.nativeStatus]).to.deep.equal([false, 'held']);
    expect(
      await clientOf(pool, 'local').queue(`${backend.space.mine} && JobStatus == 5`, ['ClusterId'], signal),
    ).to.have.length(1);
  });

  it('hole 5: that are given up live while HTCondor has not removed them, and have the reason of their hold', async () => {
    // As a job whose CE cannot be reached, it stays in the queue after its removal.
    const stays = { executable: '/nonexistent/pilot', leave_in_queue: 'JobStatus == 3' };
    backend.template('stays.yaml', '', stays);
    const section = { templateFile: 'stays.yaml', logDir: 'logs' };
    const worker = await submit(backend.plugin('submitter', backend.context(), section));
    const seen = follow(monitor({ heldTimeout: 1 }));
    const removing = await untilStatus(seen, worker, ({ nativeStatus }) => nativeStatus === 'removing');
    expect(isFinal(removing.status)).to.equal(false);
    expect(removing.detail?.Removing).to.match(/^removed since .*Z, and still in the queue/);
    const { config, tokens } = pool.local;
    const env = { ...process.env, CONDOR_CONFIG: config, _CONDOR_SEC_TOKEN_DIRECTORY: tokens };
    const forget = ['-forcex', '-constraint', backend.space.mine];
    await promisify(execFile)(join(pool.programs, 'condor_rm'), forget, { env });
    const end = await untilStatus(seen, worker, ({ status }) => isFinal(status));
    expect([end.status, end.error?.code]).to.deep.equal(['cancelled', 'htcondor-start']);
    expect(end.error?.message).to.match(/\/nonexistent\/pilot/);
    const all = seen.history.get(worker.workerId)?.map(({ status }) => isFinal(status));
    expect(all?.indexOf(true)).to.equal((all?.length ?? 0) - 1);
  });

  /** A job that no machine takes. */
  const waiting = (changes: Partial<Worker> = {}) => {
    backend.template('waits.yaml', 'true', { requirements: 'false' });
    const section = { templateFile: 'waits.yaml', logDir: 'logs' };
    return submit(backend.plugin('submitter', backend.context(), section), backend.worker(changes));
  };
  const idle = async () =>
    (await clientOf(pool, 'local').queue(`${backend.space.mine} && JobStatus == 1`, ['ClusterId'], signal))
      .length;

  it('that wait in the queue for too long are removed, and their workers have failed', async () => {
    const worker = await waiting();
    const seen = follow(monitor({ queueTimeLimit: 1 }));
    const end = await untilStatus(seen, worker, ({ status }) => isFinal(status));
    expect([end.status, end.error?.code]).to.deep.equal(['failed', 'htcondor-queue-time']);
    expect(end.error?.message).to.match(/^queueTimeLimit of 1 s is over: idle for \d+ s$/);
    expect(await idle()).to.equal(0);
    // A monitor that knows nothing of it reads in the history why it was given up.
    const again = await monitor().check([worker], signal);
    expect(again.get(worker.workerId)).to.nested.include({
      'observation.status': 'failed',
      'observation.error.message': 'queueTimeLimit of 1 s is over',
    });
  });

  it('that wait in the queue for two days are removed where they are pilots, and those of a named request wait on', async () => {
    const origin = { kind: 'htcjob', uid: 'a request', index: 0 };
    const workers = [await waiting(), await waiting({ origin })] as const;
    const longAgo = { EnteredCurrentStatus: String(Math.floor(Date.now() / 1000) - 172_801) };
    const client = clientOf(pool, 'local');
    await client.qedit(`${backend.space.mine} && JobStatus == 1`, longAgo, signal);
    const seen = follow(monitor());
    const end = await untilStatus(seen, workers[0], ({ status }) => isFinal(status));
    expect([end.status, end.error?.code]).to.deep.equal(['failed', 'htcondor-queue-time']);
    const other = await untilStatus(seen, workers[1], ({ detail }) => detail?.Waiting !== undefined);
    expect(other.status).to.equal('submitted');
    expect(await idle()).to.equal(1);
  });

  it('that wait in the queue wait for as long as the clock of the schedd says, however far ahead the own one is', async () => {
    const worker = await waiting();
    const clock: Clock = {
      now: () => Date.now() + 9 * 86_400_000,
      monotonic: () => systemClock.monotonic(),
      sleep: (ms, aborts) => systemClock.sleep(ms, aborts),
    };
    const ahead = backend.plugin('monitor', backend.context({ clock }), { pollInterval: 0.3 });
    const seen = await untilStatus(follow(ahead), worker, () => true);
    expect([seen.status, seen.nativeStatus]).to.deep.equal(['submitted', 'idle']);
    expect(await idle()).to.equal(1);
  });

  it('that are removed live until nothing of them does', async () => {
    const go = join(backend.space.directory, 'go');
    // It does not end at the first asking.
    const worker = await submit(
      backend.submitter(`trap '' TERM; touch ${go}.begun; while ! test -e ${go}; do sleep 0.2; done; exit 3`),
    );
    const seen = follow(monitor());
    await until('it has begun', () => existsSync(`${go}.begun`));
    await act('remove');
    const removing = await untilStatus(seen, worker, ({ nativeStatus }) => nativeStatus === 'removing');
    expect(removing).to.deep.include({ status: 'running' });
    writeFileSync(go, '');
    const end = await untilStatus(seen, worker, ({ status }) => isFinal(status));
    expect(end.status).to.equal('cancelled');
    expect(end.error?.code).to.equal('htcondor-removed');
  });

  it('that are held keep more from being submitted, where the queue says so', async () => {
    const context = backend.context();
    const submitter = backend.submitter('exec sleep 1000', context, { maxHeldJobs: 2 });
    const workers = [await submit(submitter), await submit(submitter)];
    watched = watch(backend.plugin('monitor', context, { pollInterval: 0.3 }));
    const said = async () => (await submitter.preflight(signal)).problems;
    await untilStatus(watched, workers[0] ?? backend.worker(), ({ status }) => status === 'running');
    expect(await said()).to.deep.equal([]);
    await act('hold');
    const [problem] = await until('it is said', async () => {
      const problems = await said();
      return problems.length > 0 && problems;
    });
    expect(problem).to.deep.equal({
      code: 'htcondor-held-limit',
      message: '2 jobs of Q are held, and maxHeldJobs is 2',
    });
    await act('release');
    await until('it goes on', async () => (await said()).length === 0);
  });

  it('that nobody knows are absent, or cancelled where the queue says so', async () => {
    const worker = { ...backend.worker(), handle: { batchID: '1.0', submissionHost: 'LOCAL' } };
    const asked = async (section: object) =>
      (await monitor(section).check([worker], signal)).get(worker.workerId);
    expect(await asked({})).to.deep.equal({ kind: 'absent' });
    const cancelled = await asked({ cancelUnknown: true });
    expect(cancelled).to.have.nested.property('observation.status', 'cancelled');
    expect(cancelled).to.have.nested.property('observation.error.code', 'lost');
  });

  it('are one submission for a whole batch, and one bad value keeps no others from theirs', async () => {
    const workers = Array.from({ length: 50 }, () => backend.worker());
    const bad = backend.worker({ computingSite: 'a\nqueue 100' });
    backend.template('site.yaml', 'exec sleep 1000', { attributes: { site: '${computingSite}' } });
    const section = { templateFile: 'site.yaml', logDir: 'logs' };
    const submitter = backend.plugin('submitter', backend.context(), section);
    const outcomes = await submitter.submit([...workers, bad], signal);
    const ids = workers.map(({ workerId }) => {
      const outcome = outcomes.get(workerId);
      return outcome?.kind === 'accepted' ? outcome.handle.batchID : '';
    });
    expect(new Set(ids).size).to.equal(50);
    expect(new Set(ids.map((id) => id.split('.')[0])).size, 'clusters').to.equal(1);
    expect(outcomes.get(bad.workerId)).to.deep.include({ kind: 'rejected', permanent: true });
    const sweeper = backend.plugin('sweeper', backend.context());
    const killed = await until('all are gone', async () => {
      const gone = await sweeper.kill(workers, signal);
      return [...gone.values()].every(({ kind }) => kind === 'gone') && gone;
    });
    expect(killed.size).to.equal(50);
  });

  it('say who they are, whatever their queue is called', async () => {
    const queue = 'a "b" $(HOME) $$(c) \\ ü\u2028 {d} #';
    const context = backend.context({ queue });
    const worker = await submit(
      backend.submitter('exec sleep 1000', context),
      backend.worker({ queue, accessPoint: '/a,b/$ENV(HOME)\\' }),
    );
    const [found] = await backend.plugin('sweeper', context).list(signal);
    const { placement, configId, handle, ...who } = worker;
    expect([placement, configId]).to.deep.equal([backend.connection, 1]);
    expect(found?.identity).to.deep.equal(who);
    expect(found?.handle).to.deep.equal(handle);
    // What is there and has not our mark as it should is not touched.
    expect(
      await backend.plugin('sweeper', context).removeOrphan({ place: '', handle: { batchID: 'x' } }, signal),
    ).to.deep.equal({ kind: 'gone' });
  });

  it('are refused with the words of HTCondor where it cannot take them', async () => {
    backend.template('bad.yaml', 'exit 0', { requirements: 'a ==' });
    const section = { templateFile: 'bad.yaml', logDir: 'logs' };
    const submitter = backend.plugin('submitter', backend.context(), section);
    const worker = backend.worker();
    const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
    expect(outcome).to.deep.include({ kind: 'rejected', permanent: false });
    expect(outcome?.kind === 'rejected' && outcome.error.code).to.equal('condor-submit-wrong');
    // Nobody needs to ask whether it came through.
    expect((await submitter.find([worker], signal)).get(worker.workerId)).to.deep.equal({ kind: 'absent' });
  });

  it('are refused for good where HTCondor takes them without the commands of their payload', async () => {
    backend.template('good.yaml', 'exit 0', {});
    backend.template('bad.yaml', 'exit 0', { requirements: 'a ==' });
    for (const [templateFile, submit, permanent] of [
      ['good.yaml', { rank: '3 +' }, true],
      ['good.yaml', { periodic_hold: '1 +' }, true],
      ['bad.yaml', { rank: '3' }, false],
      ['bad.yaml', { rank: '3 +' }, false],
    ] as const) {
      const section = { templateFile, logDir: 'logs' };
      const submitter = backend.plugin('submitter', backend.context(), section);
      const worker = { ...backend.worker(), payload: { submit } };
      const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
      expect(outcome, JSON.stringify([templateFile, submit])).to.deep.include({
        kind: 'rejected',
        permanent,
      });
    }
  });

  for (const kind of ['local', 'remote'] as ScheddKind[]) {
    describe(`on a ${kind} schedd`, () => {
      beforeEach(async () => {
        await backend.clean();
        backend = new HTCondorBackend(pool, kind);
      });

      const read = async (logs: Monitor['logs'], worker: Worker, request: object = {}) => {
        const pieces: string[] = [];
        const decoder = new TextDecoder();
        const stop = AbortSignal.timeout(90_000);
        const wanted = { stream: 'stdout', follow: false, ...request } as const;
        for await (const piece of logs?.read(worker, wanted, stop) ?? []) pieces.push(decoder.decode(piece));
        return pieces.join('');
      };

      it('show what they write, while they run and after they have ended', async () => {
        const go = join(backend.space.directory, 'go');
        const script = `echo begin; echo oops >&2; while ! test -e ${go}; do sleep 0.2; done; echo end`;
        const section = { useSpool: kind === 'remote' };
        backend.template('pilot.yaml', script, { log: 'log.${workerID}' });
        const made = { templateFile: 'pilot.yaml', logDir: 'logs', ...section };
        const worker = await submit(backend.plugin('submitter', backend.context(), made));
        const looking = monitor();
        const seen = follow(looking);
        await untilStatus(seen, worker, ({ status }) => status === 'running');
        const text = await until(
          'it has written',
          async () => (await read(looking.logs, worker).catch(() => '')) || undefined,
        );
        expect(text).to.equal('begin\n');
        const followed = read(looking.logs, worker, { follow: true });
        writeFileSync(join(backend.space.directory, 'go'), '');
        await untilStatus(seen, worker, ({ status }) => status === 'finished');
        expect(await followed).to.equal('begin\nend\n');
        expect(await read(looking.logs, worker)).to.equal('begin\nend\n');
        expect(await read(looking.logs, worker, { tail: 1 })).to.equal('end\n');
        expect(await read(looking.logs, worker, { stream: 'stderr' })).to.equal('oops\n');

        expect(await read(looking.logs, worker, { stream: 'job-log' })).to.match(/^000 [^]*^005 /m);
        const never = await read(looking.logs, backend.worker()).catch((error: unknown) => error);
        expect(never).to.include({ code: 'no-log' });
      });
    });
  }
});
