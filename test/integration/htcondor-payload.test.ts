import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type {
  Context,
  Payload,
  Submitter,
  Worker,
  WorkerToStart,
} from '../../src/plugins/contracts/index.ts';
import { hasBundle } from '../../src/plugins/htcondor/payload/bundle.ts';
import { Bundles } from '../../src/plugins/htcondor/payload/bundles.ts';
import { isFinal } from '../../src/worker/status.ts';
import { clientOf, condorPool, type Pool, type ScheddKind } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { until } from '../support/until.ts';
import { type Watched, watch } from '../support/watched.ts';

const { signal } = new AbortController();
const runs: Payload = { argv: ['sleep', '1000'], files: [{ name: 'x', mode: 0o600, content: 'eA==' }] };

describe('payloads of HTCondor', () => {
  let pool: Pool;
  let backend: HTCondorBackend;
  let context: Context;
  let watched: Watched | undefined;

  before(async () => {
    pool = await condorPool();
  });
  afterEach(async () => {
    await watched?.[Symbol.asyncDispose]();
    watched = undefined;
    await backend.clean();
  });

  function begin(kind: ScheddKind): void {
    backend = new HTCondorBackend(pool, kind);
    backend.letJobsReadPayloads();
    context = backend.context();
  }

  const start = (payload?: Payload, changes: Partial<Worker> = {}): WorkerToStart => ({
    ...backend.worker(changes),
    ...(payload && { payload }),
  });

  async function accepted(
    submitter: Submitter,
    workers: readonly WorkerToStart[],
  ): Promise<Map<number, string>> {
    const outcomes = await submitter.submit(workers, signal);
    return new Map(
      workers.map(({ workerId }) => {
        const outcome = outcomes.get(workerId);
        if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
        return [workerId, outcome.handle.batchID];
      }),
    );
  }

  /** The directory of all bundles on this machine, and those in it. */
  function bundles() {
    const directory = join(backend.directory, 'state/htcondor/payloads');
    if (!existsSync(directory)) return [];
    return readdirSync(directory).flatMap((schedd) =>
      readdirSync(join(directory, schedd)).map((name) => join(directory, schedd, name)),
    );
  }
  const bundleOf = ({ workerId }: Worker) => bundles().some((path) => path.includes(`/${workerId}.`));
  const act = (action: 'hold' | 'release' | 'remove', kind: ScheddKind, worker: Worker) =>
    clientOf(pool, kind).act(
      action,
      `${backend.space.mine} && harvesterWorkerID == "${worker.workerId}"`,
      'the test says so',
      signal,
    );
  const follow = (monitor = backend.plugin('monitor', context, { pollInterval: 0.3 })) =>
    (watched = watch(monitor));
  const hasEnded = (seen: Watched, { workerId }: Worker) =>
    isFinal(seen.history.get(workerId)?.at(-1)?.status ?? 'idle');
  const runsNow = (seen: Watched, { workerId }: Worker) =>
    seen.history.get(workerId)?.at(-1)?.status === 'running';

  for (const kind of ['local', 'remote'] as const) {
    describe(`on a ${kind} schedd`, () => {
      it("run around the template's own program, which comes with its arguments", async () => {
        begin(kind);
        // condor_submit -spool divides its list of files at blanks.
        const program = join(
          backend.directory,
          kind === 'local' ? "a pilot's wrapper.sh" : "pilot's-wrapper.sh",
        );
        writeFileSync(program, '#!/bin/sh\necho "$@" "$VARIABLE"; cat "$THRESHER_PAYLOAD_DIR/in"; exit 4\n');
        chmodSync(program, 0o755);
        const template = { executable: program, transfer_executable: true, arguments: ['one two', '$HOME'] };
        backend.template('pilot.yaml', '', template);
        const submitter = backend.plugin('submitter', context, {
          templateFile: 'pilot.yaml',
          logDir: 'logs',
        });
        const worker = start({
          files: [{ name: 'in', mode: 0o644, content: Buffer.from('a file').toString('base64') }],
          env: { VARIABLE: 'of the payload' },
        });
        await accepted(submitter, [worker]);
        const seen = follow();
        await until('it has ended', () => hasEnded(seen, worker));
        expect(seen.history.get(worker.workerId)?.at(-1)).to.include({ status: 'failed', exitCode: 4 });
        if (kind === 'remote')
          await clientOf(pool, kind).transferData(
            `${backend.space.mine} && harvesterWorkerID == "${worker.workerId}"`,
            signal,
          );
        const output = readFileSync(join(backend.space.directory, `out.${worker.workerId}`), 'utf8');
        expect(output).to.equal('one two $HOME of the payload\na file');
      });

      it('get no leave to set attributes of their jobs while they run, as pilots have it', async () => {
        begin(kind);
        // What condor_chirp speaks to is named there.
        const submitter = backend.submitter('ls -A "$_CONDOR_SCRATCH_DIR"', context);
        const all = [start({ env: { OF: 'a third party' } }), start()];
        await accepted(submitter, all);
        const seen = follow();
        await until('they have ended', () => all.every((worker) => hasEnded(seen, worker)));
        if (kind === 'remote') await clientOf(pool, kind).transferData(backend.space.mine, signal);
        const listed = all.map(({ workerId }) =>
          readFileSync(join(backend.space.directory, `out.${workerId}`), 'utf8').includes('.chirp.config'),
        );
        expect(listed).to.deep.equal([false, true]);
      });

      it('bring back no more than the bound of the queue, whatever the job released', async () => {
        begin(kind);
        // A file without blocks takes no disk where the job runs, and all of its size where it comes to.
        const submitter = backend.submitter('truncate -s 50000000 /proc/self/fd/1', context, {
          max_transfer_output_mb: 10,
        });
        const worker = start({ env: { OF: 'a third party' }, submit: { periodic_release: 'true' } });
        await accepted(submitter, [worker]);
        const seen = follow();
        await until('it has ended', () => hasEnded(seen, worker));
        const last = seen.history.get(worker.workerId)?.at(-1);
        expect([last?.status, last?.error?.code]).to.deep.equal(['failed', 'htcondor-output']);
        expect(last?.error?.message).to.match(/max(=|imum|.*)10 MB|exceed/i);
      });

      it('share a cluster with the others of their group, and with no other worker', async () => {
        begin(kind);
        const submitter = backend.submitter('exec sleep 1000', context);
        const of = (groupId: string | undefined, payload?: Payload) =>
          start(payload, groupId === undefined ? {} : { groupId });
        const [a1, a2, none1, b1, a3, none2, b2] = [
          of('a', runs),
          of('a', { ...runs, env: { A: '1' } }),
          of(undefined),
          of('b', runs),
          of('a', runs),
          of(undefined),
          of('b', runs),
        ];
        const all = [a1, a2, none1, b1, a3, none2, b2];
        const ids = await accepted(submitter, all);
        const cluster = ({ workerId }: Worker) => (ids.get(workerId) ?? '').split('.')[0];
        const process_ = ({ workerId }: Worker) => (ids.get(workerId) ?? '').split('.')[1];
        expect([a1, a2, a3].map(process_)).to.deep.equal(['0', '1', '2']);
        expect([b1, b2].map(process_)).to.deep.equal(['0', '1']);
        expect([none1, none2].map(process_)).to.deep.equal(['0', '1']);
        expect(new Set([a1, a2, a3].map(cluster)).size).to.equal(1);
        expect(new Set([a1, b1, none1].map(cluster)).size).to.equal(3);
        const found = await backend
          .plugin('submitter', backend.context(), {
            templateFile: 'other.yaml',
            logDir: 'logs',
          })
          .find(all, signal);
        for (const { workerId } of all) {
          const outcome = found.get(workerId);
          expect(outcome?.kind === 'found' && outcome.handle.batchID).to.equal(ids.get(workerId));
        }
      });
    });
  }

  it('lie in a file of the jobs’ user alone while a job needs it, and go as it ends', async () => {
    begin('local');
    const submitter = backend.submitter('exit 0', context);
    const [kept, removed, ended] = [start(runs), start(runs), start({ argv: ['true'] })];
    await accepted(submitter, [kept, removed, ended]);
    for (const directory of bundles()) {
      const found = statSync(join(directory, 'thresher-payload.sh'));
      expect({ mode: found.mode & 0o777, uid: found.uid }).to.deep.equal({ mode: 0o600, uid: pool.uid });
    }
    expect(bundles()).to.have.length(3);
    const seen = follow();
    await until('two run and one has ended', () => {
      return runsNow(seen, kept) && runsNow(seen, removed) && hasEnded(seen, ended);
    });
    // A job that was held starts anew: its payload is read again.
    await act('hold', 'local', kept);
    await act('remove', 'local', removed);
    await until('the others have gone', () => !bundleOf(removed) && !bundleOf(ended));
    await act('release', 'local', kept);
    await until('it is held no more', () => runsNow(seen, kept));
    expect(bundleOf(kept)).to.equal(true);
    const sweeper = backend.plugin('sweeper', context);
    await until(
      'it is swept',
      async () => (await sweeper.remove([kept], signal)).get(kept.workerId)?.kind === 'gone',
    );
    expect(bundles()).to.deep.equal([]);
  });

  it('are with a schedd that spools as soon as it has the job', async () => {
    begin('remote');
    const worker = start(runs);
    await accepted(backend.submitter('exit 0', context), [worker]);
    expect(bundles()).to.deep.equal([]);
    const seen = follow();
    await until('it runs', () => runsNow(seen, worker));
  });

  it('that a crash left are found and removed, those of jobs in the queue are not', async () => {
    begin('local');
    const worker = start(runs);
    await accepted(backend.submitter('exit 0', context), [worker]);
    const crashed = new Bundles(join(backend.directory, 'state/htcondor/payloads/LOCAL'));
    const lost = start(runs);
    // Written, and the daemon was killed before it had told condor_submit.
    if (hasBundle(lost)) await crashed.write([lost]);
    expect(bundles()).to.have.length(2);
    context = backend.context();
    const seen = follow();
    await until('it is removed', () => !bundleOf(lost));
    await until('the other runs', () => runsNow(seen, worker));
    expect(bundleOf(worker)).to.equal(true);
  });

  it('go with the attempt that is given up, and the next attempt has its own', async () => {
    begin('local');
    const worker = start(runs);
    const crashed = new Bundles(join(backend.directory, 'state/htcondor/payloads/LOCAL'));
    if (hasBundle(worker)) await crashed.write([worker]);
    const submitter = backend.submitter('exit 0', context);
    expect((await submitter.find([worker], signal)).get(worker.workerId)).to.deep.equal({ kind: 'absent' });
    expect(bundles()).to.deep.equal([]);
    await accepted(submitter, [{ ...worker, attempt: 2 }]);
    expect(bundles()).to.have.length(1);
    const seen = follow();
    await until('it runs', () => runsNow(seen, worker));
  });

  for (const [what, payload] of [
    ['with', runs],
    ['without', undefined],
  ] as const)
    it(`are not sent any more once their worker is given up, ${what} a payload`, async () => {
      begin('local');
      const submitter = backend.submitter('exec sleep 1000', context);
      const sweeper = backend.plugin('sweeper', context);
      const worker = start(payload);
      const submission = submitter.submit([worker], signal);
      const killed = await sweeper.kill([worker], signal);
      const outcome = (await submission).get(worker.workerId);
      expect(outcome?.kind === 'rejected' && outcome.error.code).to.equal('htcondor-fenced');
      expect(killed.get(worker.workerId)).to.deep.equal({ kind: 'gone' });
      expect(await clientOf(pool, 'local').queue(backend.space.mine, ['ClusterId'], signal)).to.deep.equal(
        [],
      );
      expect(bundles()).to.deep.equal([]);
      // The next attempt may.
      await accepted(submitter, [{ ...worker, attempt: 2 }]);
    });

  it('go at once when HTCondor refuses the submission', async () => {
    begin('local');
    backend.template('wrong.yaml', 'exit 0', { requirements: '((' });
    const submitter = backend.plugin('submitter', context, { templateFile: 'wrong.yaml', logDir: 'logs' });
    const worker = start(runs);
    const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
    expect(outcome?.kind).to.equal('rejected');
    expect(bundles()).to.deep.equal([]);
  });

  it('that cannot be written reject their workers, which may be tried again, and show nothing of them', async () => {
    begin('local');
    const submitter = backend.submitter('exit 0', context);
    // A file is where a directory has to be.
    await accepted(submitter, [start()]);
    writeFileSync(join(backend.directory, 'state/htcondor/payloads'), '');
    const worker = start(runs);
    const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
    expect(outcome).to.deep.include({ kind: 'rejected', permanent: false });
    expect(outcome?.kind === 'rejected' && outcome.error.code).to.equal('htcondor-payload-unwritten');
  });

  it('are shown by a rehearsal of a template that names their values', async () => {
    begin('local');
    backend.template('values.yaml', 'exit 0', { '+Word': '"${payload.word}"' });
    const submitter = backend.plugin('submitter', context, { templateFile: 'values.yaml', logDir: 'logs' });
    expect(await submitter.rehearse?.(start(), signal)).to.deep.equal([]);
    const rendered = await submitter.render?.(start());
    expect(String(rendered?.document)).to.contain('+Word = "payload.word"');
    expect(rendered?.notes).to.deep.equal(['${payload.word}: each worker gets it with its payload']);
    const whole = await submitter.render?.(start({ ...runs, values: { word: 'w' } }));
    expect(String(whole?.document))
      .to.contain('+Word = "w"')
      .and.to.match(/^executable = \/bin\/sh$/m);
    expect(whole?.notes).to.deep.equal(['file of the payload: "x", mode 0600, 1 bytes']);
    expect(bundles()).to.deep.equal([]);
  });
});
