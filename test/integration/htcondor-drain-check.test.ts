import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { harmlessDrain } from '../../src/clients/htcondor/drain.ts';
import { ownPool } from '../support/htcondor.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

describe('the check of a drain that must end no job, at a real startd', () => {
  let pool: Awaited<ReturnType<typeof ownPool>>;

  before(async () => {
    pool = await ownPool(['NUM_CPUS = 2', 'MAXJOBRETIREMENTTIME = 2592000', 'ALLOW_ADMINISTRATOR = *']);
  });
  after(() => pool.stop());

  const condor = async (command: string, ...args: string[]): Promise<string> => {
    const environment = { CONDOR_CONFIG: pool.local.config, _CONDOR_SEC_TOKEN_DIRECTORY: pool.local.tokens };
    const { stdout } = await run(join(pool.programs, command), ['-pool', pool.pool, ...args], {
      env: { ...process.env, ...environment },
    });
    return stdout.trim();
  };

  /** Runs a job, and waits until its slot tells for how long. */
  async function jobRuns(lines: readonly string[]): Promise<void> {
    const job = ['executable = /bin/sleep', 'arguments = 600', 'transfer_executable = false'];
    const file = join(temporaryDirectory(), 'job.sub');
    const more = [
      'initialdir = /tmp',
      'should_transfer_files = YES',
      'request_memory = 10',
      'request_disk = 10',
    ];
    writeFileSync(file, [...job, ...more, ...lines, 'queue 1', ''].join('\n'));
    await condor('condor_submit', '-name', pool.remote.schedd, file);
    const running = ['-constraint', 'Activity =?= "Busy" && RetirementTimeRemaining =!= undefined'];
    await until(
      'the job runs',
      async () => (await condor('condor_status', ...running, '-af', 'Name')) !== '',
    );
  }

  const drain = async (): Promise<string> => {
    const slot = await condor('condor_status', '-constraint', 'DynamicSlot =!= true', '-af', 'MyAddress');
    return condor('condor_drain', '-graceful', '-check', harmlessDrain, slot).catch(
      (error: unknown) => (error as { readonly stderr: string }).stderr,
    );
  };

  it('refuses for a job that wants no retirement time, and takes the order for any other', async () => {
    await jobRuns(['max_job_retirement_time = 0']);
    const said = await drain();
    expect(said, said).to.match(/Draining check expression is false/);
    await condor('condor_rm', '-name', pool.remote.schedd, '-all');
    await until('it has ended', async () => (await condor('condor_status', '-af', 'Activity')) === 'Idle');
    await jobRuns([]);
    await until('the order is taken', async () => /Sent request to drain/.test(await drain()));
    expect(await condor('condor_status', '-constraint', 'DynamicSlot', '-af', 'Activity')).to.match(
      /Busy|Retiring/,
    );
  });
});
