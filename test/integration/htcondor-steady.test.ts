import { expect } from 'chai';
import { boundedValue, readSubmitCommands, submitText } from '../../src/clients/htcondor/submit-commands.ts';
import { clientOf, condorSpace, ownPool } from '../support/htcondor.ts';
import { until } from '../support/until.ts';

describe('what machines compare of a job, at a real startd', function () {
  this.timeout(180_000);
  let pool: Awaited<ReturnType<typeof ownPool>>;
  before(async () => {
    pool = await ownPool([
      'NUM_CPUS = 4',
      'START = (TARGET.MaxRuntime ?: 0) < 86400 && (TARGET.BigMemJob ?: 0) < 9000',
    ]);
  });
  after(() => pool.stop());

  it('is the same from its match to its start: each job has one shadow, and ends', async () => {
    const lines = [
      'request_memory = ifThenElse(MemoryUsage =!= undefined, MemoryUsage * 3 / 2, 100)',
      'request_memory = 64 * (NumJobStarts + 1)',
      'request_memory = BigMemJob\n+BigMemJob = 32 * (NumJobStarts + NumHolds + 2)',
      'request_disk = max({1024, (TransferInputSizeMB + 1) * 1.25}) * 8',
      'request_disk = ifThenElse(isUndefined(DiskUsage), 1024, DiskUsage + ImageSize + 1024)',
      '+MaxRuntime = 600 * (1 + NumJobStarts + JobUniverse)\njob_lease_duration = 900',
    ];
    const space = condorSpace(pool);
    const client = clientOf(pool, 'local');
    const { signal } = new AbortController();
    for (const text of lines) {
      const { commands, problems } = readSubmitCommands(text);
      expect(problems).to.deep.equal([]);
      const base = { executable: '/bin/true', request_memory: '64', request_disk: '1024', request_cpus: '1' };
      const all = [
        ...Object.entries(base).map(([key, value]) => `${key} = ${value}`),
        ...[`+thresherFactory = "${space.factory}"`, 'leave_in_queue = true', `log = ${space.directory}/log`],
        ...Object.entries(commands).map(([key, value]) => `${key} = ${submitText(boundedValue(key, value))}`),
      ];
      await client.submit(`${all.join('\n')}\nqueue 1\n`, {}, signal);
    }
    const names = ['JobStatus', 'NumShadowStarts', 'NumJobStarts'];
    const ended = await until('all have ended', async () => {
      const rows = await client.queue(space.mine, names, signal);
      const isLooping = rows.some(({ NumShadowStarts }) => Number(NumShadowStarts) > 20);
      return isLooping || rows.every(({ JobStatus }) => JobStatus === 4) ? rows : undefined;
    });
    const counts = ended.map((row) => names.map((name) => row[name]));
    expect(counts).to.deep.equal(lines.map(() => [4, 1, 1]));
  });
});
