import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Submits } from '../../../../src/plugins/htcondor/submitting/submits.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const { signal } = new AbortController();

describe('the record of submissions under way', () => {
  let directory: string;
  let submits: Submits;

  beforeEach(() => {
    directory = join(temporaryDirectory(), 'submits');
    submits = new Submits(directory, systemClock);
  });

  /** A process like that of a condor_submit that hangs, with the input that it waits for. */
  function hanging(): { readonly pid: number; readonly ended: Promise<unknown> } {
    const child = spawn('cat', { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    return { pid: child.pid ?? 0, ended: once(child, 'exit') };
  }

  it('is on the disk as soon as the process runs, and gone when that is over', async () => {
    const { pid, ended } = hanging();
    const begun = await submits.begin([1, 2]);
    begun.onStart(pid);
    const [file = ''] = readdirSync(directory);
    expect(JSON.parse(readFileSync(join(directory, file), 'utf8'))).to.deep.include({
      pid,
      workerIds: [1, 2],
    });
    await begun.over();
    expect(readdirSync(directory)).to.deep.equal([]);
    process.kill(-pid, 'SIGKILL');
    await ended;
  });

  it('lets a daemon that comes later end what an earlier one left, and nothing of other workers', async () => {
    const [one, other] = [hanging(), hanging()];
    (await submits.begin([1, 2])).onStart(one.pid);
    (await submits.begin([3])).onStart(other.pid);
    await new Submits(directory, systemClock).end(new Set([2]), signal);
    expect(await one.ended).to.deep.equal([null, 'SIGKILL']);
    expect(readdirSync(directory)).to.have.length(1);
    expect(() => process.kill(other.pid, 0)).not.to.throw();
    process.kill(-other.pid, 'SIGKILL');
    await other.ended;
  });

  it('ends all that an earlier daemon left before its first listing, and none of its own', async () => {
    const [earlier, own] = [hanging(), hanging()];
    (await submits.begin([1])).onStart(earlier.pid);
    const later = new Submits(directory, systemClock);
    (await later.begin([2])).onStart(own.pid);
    await later.endEarlier(signal);
    expect(await earlier.ended).to.deep.equal([null, 'SIGKILL']);
    expect(() => process.kill(own.pid, 0)).not.to.throw();
    process.kill(-own.pid, 'SIGKILL');
    await own.ended;
  });

  it('ends a process that may not start any more, before it has got anything, and records nothing', async () => {
    const { pid, ended } = hanging();
    const begun = await submits.begin([1], () => {
      throw new Error('given up');
    });
    expect(() => {
      begun.onStart(pid);
    }).to.throw('given up');
    expect(await ended).to.deep.equal([null, 'SIGKILL']);
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it('ends nobody who has got the number of a process since', async () => {
    const { pid, ended } = hanging();
    (await submits.begin([1])).onStart(pid);
    const [file = ''] = readdirSync(directory);
    const written = JSON.parse(readFileSync(join(directory, file), 'utf8')) as Record<string, unknown>;
    for (const change of [{ startTicks: 1 }, { bootId: 'another' }]) {
      writeFileSync(join(directory, file), JSON.stringify({ ...written, ...change }));
      await submits.end(new Set([1]), signal);
      expect(() => process.kill(pid, 0)).not.to.throw();
    }
    process.kill(-pid, 'SIGKILL');
    await ended;
  });

  it('says that nobody knows of one that another machine has started', async () => {
    mkdirSync(directory);
    const submit = { pid: 7, startTicks: 1, bootId: 'x', host: 'elsewhere', workerIds: [1] };
    writeFileSync(join(directory, 'a.json'), JSON.stringify(submit));
    const { pid, ended } = hanging();
    (await submits.begin([2])).onStart(pid);
    const failed = await submits.end(new Set([1, 2]), signal);
    expect(await ended, 'others are ended all the same').to.deep.equal([null, 'SIGKILL']);
    expect([...failed.keys()]).to.deep.equal([1]);
    expect(failed.get(1)?.code).to.equal('htcondor-submit-elsewhere');
    expect(failed.get(1)?.message).to.contain('process 7 on elsewhere').and.to.contain('a.json');
    expect(readdirSync(directory)).to.deep.equal(['a.json']);
    expect((await submits.end(new Set([2]), signal)).size).to.equal(0);
  });

  it('ends a process that it cannot write down', async () => {
    const { pid, ended } = hanging();
    const begun = await submits.begin([1]);
    begun.onStart(pid);
    // A second one in the same file.
    expect(() => {
      begun.onStart(pid);
    }).to.throw(/EEXIST/);
    expect(await ended).to.deep.equal([null, 'SIGKILL']);
  });

  for (const content of ['', '{"pid": 1', '[]', '{"pid": 1}']) {
    it(`takes a file with ${content === '' ? 'nothing' : content} for no process, and ends those of the other files`, async () => {
      const { pid, ended } = hanging();
      (await submits.begin([1])).onStart(pid);
      writeFileSync(join(directory, 'half.json'), content);
      expect([...(await submits.unfinished(new Set([1]))).keys()], 'the process that hangs').to.deep.equal([
        1,
      ]);
      expect(await submits.end(new Set([1]), signal)).to.deep.equal(new Map());
      expect(await ended).to.deep.equal([null, 'SIGKILL']);
      expect(await submits.unfinished(new Set([1]))).to.deep.equal(new Map());
      expect(readdirSync(directory)).to.deep.equal(['half.json']);
    });
  }
});
