import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Worker } from '../../../src/plugins/contracts/index.ts';
import { LocalBackend } from '../../support/local-plugins.ts';
import { removeDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('a local worker whose directory was removed under it', () => {
  let backend: LocalBackend;
  let worker: Worker;

  beforeEach(async () => {
    backend = new LocalBackend();
    worker = await backend.start(7);
    removeDirectory(backend.path(worker));
  });

  afterEach(() => backend.clean());

  it('is looked up by its process, and lives', async () => {
    const result = await backend.check(worker);
    expect(result?.kind === 'observed' && result.observation.status).to.equal('running');
  });

  it('goes on to be shown', async () => {
    const { seen } = await backend.observe(({ over }) => over >= 2);
    expect(seen.get(7)?.status).to.equal('running');
  });

  it('is shown and listed after a restart, with all that makes its row again', async () => {
    const next = backend.restarted();
    const { seen } = await next.observe(({ over }) => over >= 2);
    expect(seen.get(7)?.status).to.equal('running');
    const [found] = await next.list();
    const { handle, name, origin } = worker;
    expect(found?.handle).to.deep.equal(handle);
    expect(found?.identity).to.deep.include({ workerId: 7, name, origin });
    expect(found?.observation?.status).to.equal('running');
    expect(next.log.lines.map(({ facts }) => facts.code)).to.deep.equal(['local-directory-damaged']);
  });

  it('is known also where its row lost the handle: a fence finds its process and starts no other', async () => {
    const { handle, ...intent } = worker;
    const found = await backend.restarted().find(intent);
    expect(found).to.deep.equal({ kind: 'found', handle });
  });

  it('is killed, and is absent from then on', async () => {
    await backend.restarted().kill(worker);
    expect(await backend.living()).to.deep.equal([]);
    // A killed process loses its environment a moment before it is gone.
    await until('it is absent', async () => (await backend.check(worker))?.kind === 'absent');
  });

  it('is killed after its grace where it ignores TERM', async () => {
    const stubborn = await backend.start(8, 'trap "" TERM; while :; do sleep 0.1; done');
    removeDirectory(backend.path(stubborn));
    await backend.kill(stubborn);
    await backend.kill(worker);
    expect(await backend.living()).to.deep.equal([]);
  });

  it('is absent once its processes ended', async () => {
    await backend.clean();
    expect(await backend.check(worker)).to.deep.equal({ kind: 'absent' });
  });

  it('lives also where only its claim and mark were removed', async () => {
    const other = await backend.start(9);
    for (const name of ['claim.1', 'worker.json']) rmSync(backend.path(other, name));
    const next = backend.restarted();
    const { handle, ...intent } = other;
    expect((await next.list()).map(({ identity }) => identity?.workerId)).to.include(9);
    expect(await next.find(intent)).to.deep.equal({ kind: 'found', handle });
    const result = await next.check({ ...intent, handle: { batchID: '' } });
    expect(result?.kind === 'observed' && result.observation.status).to.equal('running');
  });
});

describe('a work directory', () => {
  let backend: LocalBackend;
  let worker: Worker;

  beforeEach(async () => {
    backend = new LocalBackend();
    worker = await backend.start(7);
  });

  afterEach(() => backend.clean());

  for (const [what, lose] of [
    ['that vanished', () => undefined],
    [
      'with an empty one in its place, as a missing mount leaves it',
      (root: string) => {
        mkdirSync(root);
      },
    ],
  ] as const)
    describe(what, () => {
      const away = () => `${backend.root}.away`;
      beforeEach(() => {
        renameSync(backend.root, away());
        lose(backend.root);
      });

      for (const [when, now] of [
        ['while the daemon runs', () => backend],
        ['before a restart', () => backend.restarted()],
      ] as const)
        it(`is trouble ${when}: nothing is shown as all, listed, concluded or submitted`, async () => {
          const daemon = now();
          const { trouble, over } = await daemon.observe((shown) => shown.trouble.length > 0);
          expect(over).to.equal(0);
          expect(trouble[0]).to.match(/^local-root-lost: .*Mount it again .* remove /);
          expect(await daemon.list().catch((error: unknown) => error)).to.include({
            code: 'local-root-lost',
          });
          const result = await daemon.check(worker);
          expect(result?.kind === 'unknown' && result.error.code).to.equal('local-root-lost');
          const { problems } = await daemon.submitter.preflight(new AbortController().signal);
          expect(problems.map(({ code }) => code)).to.deep.equal(['local-root-lost']);
          const error = await daemon.start(8).catch(String);
          expect(error).to.contain('local-root-lost');
          expect(readdirSync(backend.directory)).to.include('work.away');
        });

      it('lets its workers be killed all the same', async () => {
        await backend.restarted().kill(worker);
        expect(await backend.living()).to.deep.equal([]);
      });

      it('keeps a removal from counting as done, and gets no tree of ours', async () => {
        await backend.clean();
        const before = existsSync(backend.root) ? readdirSync(backend.root) : undefined;
        const daemon = backend.restarted();
        const removed = (await daemon.sweeper.remove([worker], new AbortController().signal)).get(7);
        expect(removed?.kind === 'failed' && removed.error.code).to.equal('local-root-lost');
        const found = { place: backend.path(worker), handle: { batchID: '' }, identity: worker };
        const orphan = await daemon.sweeper.removeOrphan(found, new AbortController().signal);
        expect(orphan.kind === 'failed' && orphan.error.code).to.equal('local-root-lost');
        expect(existsSync(backend.root) ? readdirSync(backend.root) : undefined).to.deep.equal(before);
      });

      it('is taken up again with its workers once it is back', async () => {
        const daemon = backend.restarted();
        removeDirectory(backend.root);
        renameSync(away(), backend.root);
        const { seen, trouble } = await daemon.observe(({ over }) => over > 0);
        expect({ trouble, status: seen.get(7)?.status }).to.deep.equal({ trouble: [], status: 'running' });
      });
    });

  it('is begun anew once the operator removed the record that the message names', async () => {
    renameSync(backend.root, `${backend.root}.away`);
    const error = (await backend.list().catch(String)) as string;
    rmSync(/remove (\S+)$/.exec(error)?.[1] ?? '');
    await backend.start(8);
    expect(readdirSync(backend.root)).to.include('8');
  });

  it('that lost its mark to a cleaner of old files is the same one', async () => {
    rmSync(join(backend.root, '.thresher-root'));
    expect((await backend.restarted().list()).length).to.equal(1);
    await backend.start(8);
    expect(readdirSync(backend.root)).to.include('.thresher-root');
  });

  it('of which the record is damaged is not taken for another', async () => {
    const records = join(backend.directory, 'state', 'local-roots');
    for (const name of readdirSync(records)) writeFileSync(join(records, name), '{');
    expect(await backend.list().catch((error: unknown) => error)).to.include({
      code: 'local-root-lost',
    });
  });
});
