import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { LeftOutputs } from '../../../src/plugins/htcondor/output/left-outputs.ts';
import { Bundles } from '../../../src/plugins/htcondor/payload/bundles.ts';
import { Submits } from '../../../src/plugins/htcondor/submitting/submits.ts';
import { HTCondorSweeper } from '../../../src/plugins/htcondor/sweeper.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the sweeper of HTCondor', () => {
  const { signal } = new AbortController();
  let directory: string;
  let submits: Submits;
  let outputs: LeftOutputs;
  let child: ChildProcess;
  let ended: Promise<unknown>;

  beforeEach(async () => {
    directory = join(temporaryDirectory(), 'submits');
    submits = new Submits(directory, systemClock);
    const files = new FileLane({ clock: systemClock, name: 'test', atOnce: 2, timeoutMs: 10_000 });
    outputs = new LeftOutputs(join(directory, 'outputs/schedd'), files);
    // A process like that of a condor_submit that hangs.
    child = spawn('cat', { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    ended = once(child, 'exit');
    (await submits.begin([1, 2])).onStart(child.pid ?? 0);
  });

  afterEach(async () => {
    end();
    await ended;
  });

  function end(): void {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  }

  function remove(workerId: number, queueAs: () => Promise<readonly unknown[]> = async () => []) {
    const schedd = {
      submits,
      bundles: new Bundles(join(directory, 'payloads')),
      outputs,
      refused: new Map(),
      mine: 'true',
      client: { queueAs },
    } as unknown as HTCondorSchedd;
    const daemon = { ...pluginContext(), queue: () => undefined };
    const options = () => ({ heldTimeout: 60 });
    const sweeper = new HTCondorSweeper({ schedd, daemon, options } as never);
    return sweeper.remove([workerOf(workerId)], signal);
  }

  it('keeps a worker whose condor_submit still runs, and says so', async () => {
    const outcome = (await remove(1)).get(1);
    expect(outcome).to.have.property('kind', 'pending');
    expect(outcome).to.have.nested.property('reason.code', 'late-creation');
    expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
    expect(() => process.kill(child.pid ?? 0, 0), 'that of others is not its to end').not.to.throw();
  });

  it('removes a worker once its condor_submit has ended', async () => {
    end();
    await ended;
    expect((await remove(1)).get(1)).to.deep.equal({ kind: 'gone' });
  });

  it('leaves to an operator what another machine may still submit', async () => {
    const [file = ''] = readdirSync(directory);
    const written = JSON.parse(readFileSync(join(directory, file), 'utf8')) as Record<string, unknown>;
    writeFileSync(join(directory, file), JSON.stringify({ ...written, host: 'elsewhere' }));
    expect((await remove(1)).get(1)).to.have.nested.property('error.code', 'htcondor-submit-elsewhere');
  });

  describe('and the output that a worker left', () => {
    const left = () => readdirSync(join(directory, 'outputs/schedd')).sort();
    /** The second question is for what has to be removed. */
    const failsFirst = () => {
      let asked = 0;
      return async () => {
        if (asked++ === 0) throw new Error('the schedd does not answer');
        return [];
      };
    };

    it('keeps a worker until its source took the output, and removes all its files then', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      expect(left()).to.deep.equal(['3', '3.err', '3.log', '3.out']);
      writeFileSync(outputs.pathOf(3), 'an output');
      const outcome = (await remove(3)).get(3);
      expect(outcome).to.have.property('kind', 'pending');
      expect(outcome).to.have.nested.property('reason.code', 'output-awaited');
      await outputs.drop([3]);
      expect(left()).to.deep.equal(['3.err', '3.log', '3.out', '3.taken']);
      // Another fetch from the spool brings it once more.
      writeFileSync(outputs.pathOf(3), 'an output');
      expect(await outputs.bytesOf(3)).to.equal(undefined);
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });

    it('keeps no worker that left none, or leaves none', async () => {
      await outputs.make([
        { workerId: 3, leaves: true },
        { workerId: 4, leaves: false },
      ]);
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect((await remove(4)).get(4)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });

    it('keeps a worker whose output may lie in the spool of a schedd that is away', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      expect((await remove(3, failsFirst())).get(3)).to.have.nested.property('reason.code', 'output-awaited');
      await outputs.drop([3]);
      expect((await remove(3, failsFirst())).get(3)).to.deep.equal({ kind: 'gone' });
    });

    it('keeps it for ten days, and no longer', async () => {
      await outputs.make([{ workerId: 3, leaves: true }]);
      writeFileSync(outputs.pathOf(3), 'an output');
      const daysAgo = (days: number) => Date.now() / 1000 - days * 24 * 3600;
      utimesSync(outputs.pathOf(3), daysAgo(9.9), daysAgo(9.9));
      expect((await remove(3)).get(3)).to.have.property('kind', 'pending');
      utimesSync(outputs.pathOf(3), daysAgo(10.1), daysAgo(10.1));
      expect((await remove(3)).get(3)).to.deep.equal({ kind: 'gone' });
      expect(left()).to.deep.equal([]);
    });
  });
});
