import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Worker } from '../../../src/plugins/contracts/index.ts';
import { LocalBackend } from '../../support/local-plugins.ts';
import { workerOf } from '../../support/samples.ts';

const { signal } = new AbortController();
const code = 'local-root-of-other-factory';

/** Another factory in the work directory of this one. */
const beside = (backend: LocalBackend) =>
  backend.restarted({ factoryId: 'own', stateDir: join(backend.directory, 'own-state') });

describe('hole 6: the work directory of local workers is of the factory that used it first', () => {
  let other: LocalBackend;
  let own: LocalBackend;
  let theirs: Worker;
  /** Of the same number. */
  let ours: Worker;
  const ownerFile = () => join(other.root, '.thresher-factory');

  beforeEach(async () => {
    other = new LocalBackend({ factoryId: 'other' });
    theirs = await other.start(7);
    own = beside(other);
    ours = workerOf(7, { requirements: theirs.requirements });
  });

  afterEach(() => other.clean());

  for (const [what, handle] of [
    ['was never submitted', undefined],
    ['is known by a process that is gone', { batchID: '2', pid: 2, startTicks: 1, bootId: '' }],
  ] as const)
    it(`no other factory ends or removes a worker there, or takes it for its own of that number that ${what}`, async () => {
      const bootId = own.host().bootId;
      const worker = { ...ours, ...(handle && { handle: { ...handle, bootId } }) };
      const [orphan] = await other.list();
      const codes = {
        submitted: (await own.submitter.submit([worker], signal)).get(7),
        found: await own.find(worker),
        checked: await own.check(worker),
        killed: (await own.sweeper.kill([worker], signal)).get(7),
        removed: (await own.sweeper.remove([worker], signal)).get(7),
        orphan: orphan && (await own.sweeper.removeOrphan(orphan, signal)),
      };
      for (const [call, outcome] of Object.entries(codes))
        expect(outcome && 'error' in outcome && outcome.error.code, call).to.equal(code);
      const listed = await own.list().catch((error: unknown) => error);
      expect(listed).to.include({ code });
      const { problems } = await own.submitter.preflight(signal);
      expect(problems.map((problem) => problem.code)).to.deep.equal([code]);
      expect(problems[0]?.message)
        .to.contain(`is of the factory other`)
        .and.to.contain('Give this factory (own) another workDir')
        .and.to.contain(`write own into ${ownerFile()}`);

      expect(await other.living(), 'it lives').to.include(theirs.handle?.pid);
      expect(existsSync(other.path(theirs, 'ended-by'))).to.equal(false);
      expect((await other.check(theirs))?.kind).to.equal('observed');
    });

  it('another factory has it once the file with the id of the first is removed', async () => {
    await other.kill(theirs);
    await other.sweeper.remove([theirs], signal);
    rmSync(ownerFile());
    const { handle } = await own.start(8);
    expect(await own.living()).to.include(handle?.pid);
    expect((await other.find(theirs))?.kind).to.equal('unknown');
  });

  it('no other factory gets it where an earlier version wrote no file, but has workers there', async () => {
    rmSync(ownerFile());
    expect((await own.sweeper.remove([ours], signal)).get(7)).to.have.nested.property('error.code', code);
    expect(await other.living(), 'it lives').to.include(theirs.handle?.pid);
    expect((await other.check(theirs))?.kind).to.equal('observed');
  });

  it('neither gets it where both have workers there, until an administrator decides', async () => {
    rmSync(ownerFile());
    cpSync(other.path(theirs), other.path({ workerId: 8 }), { recursive: true });
    const mark = other.path({ workerId: 8 }, 'worker.json');
    writeFileSync(mark, readFileSync(mark, 'utf8').replace(/"factory": "other"/, '"factory": "own"'));
    const both = async () => {
      const problems = [];
      for (const one of [other, own]) problems.push(...(await one.submitter.preflight(signal)).problems);
      return problems.map(({ message }) => message);
    };
    const messages = await both();
    expect(messages).to.have.length(2);
    expect(messages[0]).to.contain('has workers of this and of the factory own');
    expect((await other.check(theirs))?.kind).to.equal('unknown');
    writeFileSync(ownerFile(), 'other\n');
    expect(await both()).to.have.length(1);
    expect((await other.check(theirs))?.kind).to.equal('observed');
  });

  it('the file is written again where a cleaner took it, or a power cut left it empty', async () => {
    for (const left of [undefined, '', 'no id\n']) {
      rmSync(ownerFile());
      if (left !== undefined) writeFileSync(ownerFile(), left);
      expect((await other.check(theirs))?.kind).to.equal('observed');
      expect(readFileSync(ownerFile(), 'utf8')).to.equal('other\n');
      expect((await own.check(ours))?.kind).to.equal('unknown');
    }
  });
});

describe('hole 6: two factories that come at once to one work directory', () => {
  it('leave it to one of them', async () => {
    const one = new LocalBackend({ factoryId: 'other' });
    const backends = [one, beside(one)];
    const problems = await Promise.all(
      backends.map(async ({ submitter }) => (await submitter.preflight(signal)).problems),
    );
    const refused = problems.map((some) => some.some((problem) => problem.code === code));
    expect(refused.filter((is) => is)).to.have.length(1);
  });
});
