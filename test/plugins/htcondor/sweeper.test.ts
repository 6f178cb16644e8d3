import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { Bundles } from '../../../src/plugins/htcondor/payload/bundles.ts';
import { Submits } from '../../../src/plugins/htcondor/submitting/submits.ts';
import { HTCondorSweeper } from '../../../src/plugins/htcondor/sweeper.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the sweeper of HTCondor', () => {
  const { signal } = new AbortController();
  let directory: string;
  let submits: Submits;
  let child: ChildProcess;
  let ended: Promise<unknown>;

  beforeEach(async () => {
    directory = join(temporaryDirectory(), 'submits');
    submits = new Submits(directory, systemClock);
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

  function remove(workerId: number) {
    const queueAs = async () => [];
    const schedd = {
      submits,
      bundles: new Bundles(join(directory, 'payloads')),
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
});
