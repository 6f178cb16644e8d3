import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandResult } from '../support/command-line.ts';
import { ownPool } from '../support/htcondor.ts';
import { program } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

/** The marks of a worker of thresher, and a size of its own. */
const worker = [
  'NUM_CPUS = 4',
  'MEMORY = 4096',
  'ThresherFactory = "f1"',
  'ThresherQueue = "Q"',
  'ThresherShape = "small"',
  'ThresherWorker = "12"',
  'STARTD_ATTRS = $(STARTD_ATTRS) ThresherFactory ThresherQueue ThresherShape ThresherWorker',
];

describe('thresher pool, at a real pool', () => {
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let directory: string;

  before(async () => {
    pool = await ownPool(worker);
    directory = temporaryDirectory();
  });

  after(() => pool.stop());

  function run(
    command: string,
    args: readonly string[],
    config = pool.remote.config,
  ): Promise<CommandResult> {
    const env = {
      ...process.env,
      PATH: `${pool.programs}:${process.env['PATH'] ?? ''}`,
      CONDOR_CONFIG: config,
      _CONDOR_SEC_TOKEN_DIRECTORY: pool.remote.tokens,
    };
    return new Promise((resolve) => {
      execFile(command, [...args], { env }, (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
      });
    });
  }

  const thresher = (...args: string[]) =>
    run(program(), ['pool', ...args, '--condor-pool', pool.pool, '--token-directory', pool.remote.tokens]);
  const condor = (command: string, ...args: string[]) => run(join(pool.programs, command), args);

  it('status shows the daemons as condor_status -any does, the slots, and the worker that has joined', async () => {
    const rowsOf = async () => {
      const any = await condor('condor_status', '-any', '-pool', pool.pool, '-af', 'MyType', 'Name');
      const rows = any.stdout.trim().split('\n');
      return rows.filter((row) => !row.startsWith('Accounting'));
    };
    // The ad of a machine's daemon comes to the collector after those of its slots.
    const rows = await until('the collector has all ads', async () => {
      const now = await rowsOf();
      return now.some((row) => row.startsWith('StartD')) && now;
    });
    const { stdout, stderr, status } = await thresher('status');
    expect(status, stderr).to.equal(0);
    expect(stdout).to.match(/^MyType +TargetType +Name\n/);
    for (const row of rows) {
      const [type = '', name = ''] = row.split(/ (.*)/);
      expect(stdout).to.match(
        new RegExp(`^${type} .* ${name.replaceAll(/[.*+?^$(){}|[\]\\]/g, '\\$&')}$`, 'm'),
      );
    }
    expect(stdout).to.match(/^1 collector, 1 negotiator, 2 schedds, 1 startd; 1 slot: 1 Unclaimed$/m);
    expect(stdout).to.match(/^12 +Q +small +0\/4 +- +\S+$/m);
    const { stdout: json } = await thresher('status', '--output', 'json');
    const ads = JSON.parse(json) as { type: string; workerId?: number }[];
    expect(ads.filter(({ type, workerId }) => type === 'Machine' && workerId === 12)).to.have.length(1);
  });

  it('learn writes the same template from an idle and from a busy machine, and a real job matches it', async () => {
    const idle = join(directory, 'idle.ad');
    const said = await thresher('learn', 'Q/small', '--out', idle);
    expect(said.stdout, said.stderr).to.match(
      /idle\.ad: learnt from slot1@\S+: 4 cores, 4096 MiB of memory\n$/,
    );

    const text =
      'executable = /bin/sleep\narguments = 300\nrequest_cpus = 3\nrequest_memory = 1000\nqueue 1\n';
    writeFileSync(
      join(directory, 'job.sub'),
      `should_transfer_files = YES\ntransfer_executable = false\ninitialdir = /tmp\n${text}`,
    );
    const schedd = ['-name', pool.remote.schedd, '-pool', pool.pool];
    const submitted = await condor('condor_submit', ...schedd, join(directory, 'job.sub'));
    expect(submitted.status, submitted.stderr).to.equal(0);
    await until('the job runs', async () => /3\/4/.test((await thresher('status')).stdout));

    const busy = join(directory, 'busy.ad');
    expect((await thresher('learn', 'Q', '--out', busy)).status).to.equal(0);
    const withoutDisk = (file: string) => readFileSync(file, 'utf8').replaceAll(/^\w*Disk = .*\n/gm, '');
    expect(withoutDisk(busy)).to.equal(withoutDisk(idle));

    const jobs = join(directory, 'jobs.ad');
    writeFileSync(
      jobs,
      (await condor('condor_q', ...schedd, '-allusers', '-long')).stdout.replace(
        /^JobStatus = 2/m,
        'JobStatus = 1',
      ),
    );
    const analysis = await condor('condor_q', '-jobads', jobs, '-slotads', busy, '-analyze:summary');
    expect(analysis.stdout, JSON.stringify(analysis)).to.match(/^1\.0 .* 1 +0 +0 +0 +1 pilot$/m);

    const dynamic = (
      await condor('condor_status', '-pool', pool.pool, '-af', 'Name', '-constraint', 'DynamicSlot')
    ).stdout.trim();
    const refused = await thresher('learn', '--startd', dynamic);
    expect([refused.status, refused.stdout]).to.deep.equal([1, '']);
    expect(refused.stderr).to.match(
      /is a dynamic slot, which has what one job asked for: name its startd \[pool-learn\]/,
    );
    await condor('condor_rm', ...schedd, '-all');
  });

  it('unservable names the condition that fails, by owner, and a pool that does not answer', async () => {
    const site = temporaryDirectory();
    const slotAd = join(site, 'q.ad');
    expect((await thresher('learn', 'Q', '--out', slotAd)).status).to.equal(0);
    const settings = (collector: string) => {
      const source = `condorPool: '${collector}', condorConfig: '${pool.remote.config}', tokenDirectory: '${pool.remote.tokens}'`;
      const text = `master: { stateDir: state }\nqconf: { configFile: queues.json }\nsources: { htcondor-idle: { ${source} } }\n`;
      writeFileSync(join(site, 'thresher.yaml'), text);
    };
    const queue = {
      mapType: 'NoJob',
      maxWorkers: 5,
      nQueueLimitWorker: 5,
      demand: { name: 'htcondor-idle', slotAd },
      submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml' },
      monitor: { name: 'LocalMonitor', module: 'thresher/local' },
      sweeper: { name: 'LocalSweeper', module: 'thresher/local' },
    };
    writeFileSync(join(site, 'queues.json'), JSON.stringify({ Q: queue }));
    writeFileSync(join(site, 'pilot.yaml'), 'command: exit 0\n');
    const text =
      'executable = /bin/sleep\ntransfer_executable = false\ninitialdir = /tmp\nrequest_gpus = 2\nqueue 3\n';
    writeFileSync(join(site, 'job.sub'), `should_transfer_files = YES\n${text}`);
    const schedd = ['-name', pool.remote.schedd, '-pool', pool.pool];
    expect((await condor('condor_submit', ...schedd, join(site, 'job.sub'))).status).to.equal(0);
    const ask = (...args: string[]) =>
      run(program(), ['--config', join(site, 'thresher.yaml'), 'pool', 'unservable', ...args]);

    settings(pool.pool);
    const told = await until('a negotiation cycle has passed over the jobs', async () => {
      const answer = await ask();
      return answer.stdout.includes('RequestGPUs >= 2') && answer;
    });
    expect(told.stdout).to.match(/^pilot +3 +remote@pool\.test +RequestGPUs >= 2 +/m);
    expect(told.stdout).to.match(/\n3 of 3 waiting jobs fit none of the shape Q, and no slot of the pool\n$/);
    expect([told.status, told.stderr]).to.deep.equal([0, '']);
    const [row] = JSON.parse((await ask('--output', 'json')).stdout) as object[];
    expect(row).to.deep.include({ owner: 'pilot', jobs: 3, conditions: ['RequestGPUs >= 2'] });

    settings('127.0.0.1:1');
    const silent = await ask();
    expect(silent.status).to.equal(1);
    expect(silent.stdout).to.match(/; not all of the pool answered\n$/);
    expect(silent.stderr).to.match(/the collector.* gave no answer: condor_status .*Connection refused/);
    await condor('condor_rm', ...schedd, '-all');
  });

  it('learn says how to get a worker to learn from, and which names there are', async () => {
    const none = await thresher('learn', 'NOTHING');
    expect(none.status).to.equal(1);
    expect(none.stderr).to.match(
      /no worker of NOTHING has joined the pool.*start one with `thresher submit NOTHING`/,
    );
    const shape = await thresher('learn', 'Q/big');
    expect(shape.stderr).to.match(
      /no worker of the shape big of Q has joined.*start one with `thresher submit Q --shape big`/,
    );
    const hostile = await thresher('learn', '--startd', 'x" || true || "');
    expect(hostile.stderr).to.match(/the collector knows no slot of x" \|\| true/);
  });

  it('a token of `thresher pool token` is taken by the pool, one of another key is not', async () => {
    const key = join(pool.directory, 'keys/POOL');
    const other = join(directory, 'other');
    expect((await run(program(), ['pool', 'init', '--directory', other])).status).to.equal(0);
    const whoami = async (name: string, signedBy: string) => {
      const tokens = join(directory, name);
      mkdirSync(tokens, { mode: 0o700 });
      const flags = ['--key', signedBy, '--trust-domain', 'pool.test', '--lifetime', '10m'];
      const made = await run(program(), ['pool', 'token', 'alice', ...flags, '--out', join(tokens, 'alice')]);
      expect(made.status, made.stderr).to.equal(0);
      const env = `_CONDOR_SEC_TOKEN_DIRECTORY=${tokens}`;
      return run('env', [
        env,
        join(pool.programs, 'condor_ping'),
        '-pool',
        pool.pool,
        '-type',
        'COLLECTOR',
        '-table',
        'READ',
      ]);
    };
    const taken = await whoami('good', key);
    expect(taken.stdout, taken.stderr).to.match(/READ .*ALLOW.* alice@pool\.test/);
    const refused = await whoami('bad', join(other, 'signing-key'));
    expect(refused.stdout).not.to.contain('alice@pool.test');
  });
});
