import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { adText, type AdText } from '../../src/clients/htcondor/ad-text.ts';
import { whereJobs } from '../../src/clients/htcondor/classad.ts';
import type { HTCondorClient } from '../../src/clients/htcondor/client.ts';
import { PoolClient } from '../../src/clients/htcondor/pool-client.ts';
import { PoolLooker } from '../../src/sources/htcondor-idle/look/index.ts';
import { sign } from '../../src/sources/htcondor-idle/look/answers.ts';
import { MatchTable } from '../../src/sources/htcondor-idle/look/matching.ts';
import type { PoolLook, Template } from '../../src/sources/htcondor-idle/look/result.ts';
import type { Need } from '../../src/sources/htcondor-idle/model.ts';
import { systemClock } from '../../src/util/clock.ts';
import { clientOf, ownPool, type Pool, placeOf, scheddPid, type ScheddKind } from '../support/htcondor.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const { signal } = new AbortController();

/** Jobs of the tests do not match it: they are to wait. */
const settings = [
  'START = TARGET.WantsPool is true',
  'SLATE_LIMIT = 3',
  'NEGOTIATOR_UPDATE_INTERVAL = 300',
  // The machine is a worker of another factory.
  ...['ThresherFactory = "other"', 'ThresherWorker = 7', 'ThresherQueue = "Q"', 'ThresherShape = "Q"'],
  'STARTD_ATTRS = $(STARTD_ATTRS) ThresherFactory ThresherWorker ThresherQueue ThresherShape',
];

let pool: Pool & { readonly stop: () => Promise<void> };
let machine: AdText;
/** The directory for temporary files of these tests alone. */
let own: { readonly before: string | undefined; readonly directory: string } | undefined;

const optionsOfPool = () => ({
  place: placeOf(pool, 'local'),
  clock: systemClock,
  environment: process.env,
});
const poolClient = () => new PoolClient(optionsOfPool());

/** Waits for the answers of one schedd for a short time only. The others may be slow on a busy machine. */
class ImpatientClient extends PoolClient {
  readonly #impatient: PoolClient;
  readonly #with: string;

  constructor(schedd: string, patience: number) {
    super(optionsOfPool());
    this.#impatient = new PoolClient({ ...optionsOfPool(), timeLimits: { ask: patience } });
    this.#with = schedd;
  }

  override schedd(name: string): HTCondorClient {
    return name === this.#with ? this.#impatient.schedd(name) : super.schedd(name);
  }
}

const looker = (client = poolClient(), factoryId = 'look-test') =>
  new PoolLooker({ pool: client, clock: systemClock, factoryId });

/** A shape whose slot is the pool's own machine with other values. */
function template(key: string, changes: Readonly<Record<string, string>> = {}): Template {
  const ad = new Map([...machine, ['start', 'true'], ...Object.entries(changes)]);
  const resources = new Map(['cpus', 'memory', 'gpus'].map((name) => [name, Number(ad.get(name) ?? 0)]));
  return { shape: { key, queue: key, resources, oneJob: false, cost: 1, most: Infinity }, ad: adText(ad) };
}

const small = () => template('small', { cpus: '1', memory: '1000' });
const big = () => template('big', { cpus: '8', memory: '16000' });
const gpu = () => template('gpu', { cpus: '4', memory: '4000', gpus: '1' });

const usual = {
  executable: '/bin/true',
  transfer_executable: 'false',
  request_memory: '100',
  request_disk: '10',
};

async function submit(count: number, lines: Readonly<Record<string, string>>, kind: ScheddKind = 'local') {
  const text = Object.entries({ ...usual, ...lines }).map(([name, value]) => `${name} = ${value}`);
  const spool = kind === 'remote' ? { spool: true } : {};
  return clientOf(pool, kind).submit([...text, `queue ${count}`, ''].join('\n'), spool, signal);
}

const counts = ({ needs }: PoolLook) => needs.reduce((sum, { count }) => sum + count, 0);

/** Looks until so many jobs wait for a machine. */
function lookUntil(count: number, templates: readonly Template[], one = looker()): Promise<PoolLook> {
  let last = 0;
  return until(
    () => `${count} jobs count, not ${last}`,
    async () => {
      const look = await one.look(templates, signal);
      last = counts(look);
      return last === count && look;
    },
  );
}

const matching = ({ matching: { shape } }: PoolLook, need: Need, templates: readonly Template[]) =>
  templates.map((one) => shape(need, one.shape));

describe('a look at a real pool', () => {
  before(async () => {
    pool = await ownPool(settings);
    const [ad] = await poolClient().adTexts('slots', { attributes: [] }, (one) => one, signal);
    if (ad === undefined) throw new Error('the pool has no slot');
    machine = ad;
    // Other daemons of this machine lay out their jobs in the common directory.
    own = { before: process.env['TMPDIR'], directory: temporaryDirectory() };
    process.env['TMPDIR'] = own.directory;
  });

  after(async () => {
    if (own?.before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = own.before;
    await pool.stop();
  });

  afterEach(async () => {
    for (const kind of ['local', 'remote'] as const)
      await clientOf(pool, kind).act('remove', 'true', 'the test is over', signal);
    await until('all jobs are gone', async () => {
      const left = [await clientOf(pool, 'local').queue('true', ['ClusterId'], signal)];
      left.push(await clientOf(pool, 'remote').queue('true', ['ClusterId'], signal));
      return left.flat().length === 0;
    });
  });

  it('jobs count after a negotiation cycle, each in its kind, with its owner', async () => {
    await submit(3, {});
    await submit(2, { request_cpus: '4', request_memory: '2000' });
    const templates = [small(), big()];
    const look = await lookUntil(5, templates);
    expect(look.unknown).to.deep.equal([]);
    expect(look.needs.map(({ count }) => count).toSorted()).to.deep.equal([2, 3]);
    for (const need of look.needs) {
      expect([...need.owners]).to.deep.equal([['pilot', need.count]]);
      expect(matching(look, need, templates)).to.deep.equal(need.count === 3 ? [true, true] : [false, true]);
      expect(need.exact.get('cpus')).to.equal(need.count === 3 ? 1 : 4);
      expect(need.request.get('memory')).to.equal(need.count === 3 ? 128 : 2048);
    }
    expect(look.collectorStartedAt).to.be.within(Date.now() - 600_000, Date.now());
  });

  it('jobs that just came do not count', async () => {
    const one = looker();
    await one.look([small()], signal);
    const release = stopNegotiator();
    try {
      await submit(4, {});
      const look = await one.look([small()], signal);
      expect([counts(look), look.fresh]).to.deep.equal([0, 4]);
    } finally {
      release();
    }
    await lookUntil(4, [small()], one);
  });

  it('held, removed, running and foreign jobs do not count', async () => {
    const [held] = await submit(1, {});
    const [removed] = await submit(1, {});
    const [running] = await submit(1, { '+WantsPool': 'true', executable: '/bin/sleep', arguments: '600' });
    await submit(1, { universe: 'scheduler', executable: '/bin/sleep', arguments: '600' });
    await submit(1, { universe: 'local', executable: '/bin/sleep', arguments: '600' });
    await submit(1, { universe: 'parallel', machine_count: '2' });
    await submit(1, {});
    await clientOf(pool, 'local').act('hold', whereJobs(held ? [held] : []), 'test', signal);
    await clientOf(pool, 'local').act('remove', whereJobs(removed ? [removed] : []), 'test', signal);
    await until('the job runs', async () => {
      const [ad] = await clientOf(pool, 'local').queue(
        whereJobs(running ? [running] : []),
        ['JobStatus'],
        signal,
      );
      return ad?.['JobStatus'] === 2;
    });
    const look = await lookUntil(1, [small()]);
    expect(look.needs).to.have.length(1);
  });

  it('jobs of each schedd count, and of a named one alone where it is named', async () => {
    await submit(2, {});
    await submit(3, {}, 'remote');
    const look = await lookUntil(5, [small()]);
    expect(new Map(look.needs.map(({ schedd, count }) => [schedd, count]))).to.deep.equal(
      new Map([
        [pool.local.schedd, 2],
        [pool.remote.schedd, 3],
      ]),
    );
    const named = new PoolLooker({
      pool: poolClient(),
      clock: systemClock,
      factoryId: 'look-test',
      schedds: [pool.remote.schedd, 'gone@pool.test'],
    });
    const other = await lookUntil(3, [small()], named);
    expect(other.unknown.map(({ part, name }) => [part, name])).to.deep.equal([['schedd', 'gone@pool.test']]);
  });

  it('custom requirements, GPUs and partial matches are told apart by HTCondor', async () => {
    const picky = template('picky', { cpus: '8', memory: '16000', start: 'TARGET.WantsPicky is true' });
    const labelled = template('labelled', { cpus: '8', memory: '16000', haslabel: 'true' });
    const templates = [small(), gpu(), picky, labelled];
    await submit(1, { request_gpus: '1' });
    await submit(2, { requirements: 'TARGET.HasLabel is true' });
    await submit(3, { '+WantsPicky': 'true', request_cpus: '8' });
    const look = await lookUntil(6, templates);
    const by = new Map(look.needs.map((need) => [need.count, matching(look, need, templates)]));
    expect(by.get(1)).to.deep.equal([false, true, false, false]);
    expect(by.get(2)).to.deep.equal([false, false, false, true]);
    expect(by.get(3)).to.deep.equal([false, false, true, true]);
  });

  it('jobs of one autocluster are told apart where a shape alone asks for an attribute', async () => {
    const picky = template('picky', { start: 'TARGET.WantsMe is true' });
    await submit(2, { '+WantsMe': 'true' });
    await submit(1, { '+WantsMe': 'false' });
    const look = await lookUntil(3, [picky]);
    const found = new Map(look.needs.map((need) => [need.count, look.matching.shape(need, picky.shape)]));
    expect(found).to.deep.equal(
      new Map([
        [2, true],
        [1, false],
      ]),
    );
  });

  it('a free slot of the pool takes what it takes, and no other job', async () => {
    await submit(1, { '+WantsPool': 'true', request_cpus: '500' });
    await submit(2, {});
    const look = await lookUntil(3, [small()]);
    const [slot] = look.spaces ?? [];
    if (slot === undefined) throw new Error('the pool has no free slot');
    expect(slot.oneJob).to.equal(false);
    for (const need of look.needs) {
      expect(look.matching.space(need, slot)).to.equal(false);
      expect(look.matching.pool(need)).to.equal(false);
    }
  });

  it('a worker of another factory is a slot of the pool, and no worker of ours', async () => {
    const look = await looker().look([small()], signal);
    expect(look.startds).to.deep.equal([]);
    expect(look.spaces?.map(({ shape, workerId }) => [shape, workerId])).to.deep.equal([
      [undefined, undefined],
    ]);
    const own = await looker(poolClient(), 'other').look([small()], signal);
    expect(own.startds?.map(({ workerId, shape }) => [workerId, shape])).to.deep.equal([[7, 'Q']]);
  });

  it('a job that no shape takes is explained by the condition that fails', async () => {
    await submit(1, { request_gpus: '2' });
    const templates = [small(), gpu()];
    const one = looker();
    const look = await lookUntil(1, templates, one);
    const [need] = look.needs;
    const explanation = need && (await one.explain(need, templates, signal));
    expect(explanation).to.deep.include({ conditions: ['RequestGPUs >= 2'], of: 'job' });
    expect(explanation?.sentence).to.include('GPUs 0 to 1');
  });

  it('hole 8: a job whose matching has no end with a slot is left out, and the others are judged', async () => {
    const table = new MatchTable(poolClient().matchmaker, () => systemClock.monotonic());
    const requests = { requestcpus: '1', requestmemory: '100', requestdisk: '10' };
    const job = (attributes: Readonly<Record<string, string>>) => ({
      ...sign(new Map(Object.entries({ owner: '"ana"', ...requests, ...attributes }))),
      owner: 'ana',
    });
    // The schedd itself would not end with such a job once it had it: it is shown to HTCondor's matchmaking alone.
    const doubling = Array.from({ length: 40 }, (_, at) => [`a${at}`, `A${at + 1} + A${at + 1}`] as const);
    const trap: Readonly<Record<string, string>> = { ...Object.fromEntries(doubling), a40: '1' };
    const [good, picky, bad] = [
      job({ requirements: 'true' }),
      job({ requirements: 'TARGET.HasTrap is true' }),
      job({ requirements: 'TARGET.HasTrap is true && A0 > 0', ...trap }),
    ];
    const slots = [new Map([...machine, ['hastrap', 'true']]), machine].map((ad) =>
      sign(new Map([...ad, ['start', 'true']])),
    );
    const { failures, hopeless, unasked } = await table.fill([good, picky, bad], slots, [], signal);
    expect([...failures, ...unasked]).to.deep.equal([]);
    expect([...hopeless]).to.deep.equal([bad.signature]);
    const answersOf = ({ signature: job }: { readonly signature: string }) =>
      slots.map(({ signature }) => table.answer(signature, job));
    expect([good, picky].map(answersOf)).to.deep.equal([
      [true, true],
      [true, false],
    ]);
  });

  it('a concurrency limit says how much of it is free', async () => {
    await submit(1, {
      '+WantsPool': 'true',
      concurrency_limits: 'Slate:2',
      executable: '/bin/sleep',
      arguments: '600',
    });
    await until('the job runs', async () => {
      const [ad] = await clientOf(pool, 'local').queue('true', ['JobStatus'], signal);
      return ad?.['JobStatus'] === 2;
    });
    await submit(4, { concurrency_limits: 'slate, other' });
    // The negotiator counts anew in each cycle, by what the machine has told of its claims.
    const one = looker();
    const look = await until('2 of the 3 are taken', async () => {
      const found = await one.look([small()], signal);
      return counts(found) === 4 && found.concurrency.get('slate') === 1 && found;
    });
    // HTCondor's own default for a limit that nobody has set.
    expect(look.concurrency.get('other')).to.equal(2_308_032);
    expect(look.needs.map(({ concurrency }) => [...concurrency])).to.deep.equal([
      [
        ['other', 1],
        ['slate', 1],
      ],
    ]);
  });

  it('jobs keep their kinds where the pool has no machine at all', async () => {
    await condorOff('startd');
    try {
      await until('the machine is gone', async () => {
        const slots = await poolClient().adTexts('slots', { attributes: ['Name'] }, (ad) => ad, signal);
        return slots.length === 0;
      });
      await submit(2, { request_cpus: '2' });
      await submit(1, { request_memory: 'ifThenElse(TwoGigs is true, 2048, 100)', '+TwoGigs': 'true' });
      await submit(3, { request_memory: 'ifThenElse(TwoGigs is true, 2048, 100)' });
      const look = await lookUntil(6, [small(), big()]);
      expect(look.spaces).to.deep.equal([]);
      const by = new Map(look.needs.map((need) => [need.count, matching(look, need, [small(), big()])]));
      expect(by).to.deep.equal(
        new Map([
          [2, [false, true]],
          [1, [false, true]],
          [3, [true, true]],
        ]),
      );
    } finally {
      await condorOn('startd');
    }
  });

  it('a schedd that does not answer is unknown, and the other one is not', async () => {
    await submit(2, {});
    await submit(3, {}, 'remote');
    const one = looker(new ImpatientClient(pool.remote.schedd, 2000));
    await lookUntil(5, [small()], one);
    const pid = scheddPid(pool, 'remote');
    process.kill(pid, 'SIGSTOP');
    try {
      const look = await one.look([small()], signal);
      expect(look.needs.map(({ schedd, count }) => [schedd, count])).to.deep.equal([[pool.local.schedd, 2]]);
      expect(look.unknown.map(({ part, name }) => [part, name])).to.deep.equal([
        ['schedd', pool.remote.schedd],
      ]);
      const [unknown] = look.unknown;
      expect(unknown?.reason.code).to.equal('condor-timeout');
      expect(unknown?.reason.message).to.include(pool.remote.schedd);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await lookUntil(5, [small()], one);
  });

  it('nothing of a look is left behind', () => {
    expect(readdirSync(own?.directory ?? '')).to.deep.equal([]);
  });
});

function children(): { readonly pid: number; readonly name: string }[] {
  const master = pool.pid ?? 0;
  const pids = readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ').map(Number);
  return pids.map((pid) => ({
    pid,
    name: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? '',
  }));
}

/** Keeps the negotiator from its next cycle. */
function stopNegotiator(): () => void {
  const found = children().find(({ name }) => name.endsWith('condor_negotiator'));
  if (found === undefined) throw new Error('no negotiator runs');
  process.kill(found.pid, 'SIGSTOP');
  return () => {
    process.kill(found.pid, 'SIGCONT');
  };
}

const asAdministrator = () => ({
  env: {
    PATH: `${pool.programs}:${process.env['PATH'] ?? ''}`,
    CONDOR_CONFIG: join(pool.directory, 'condor_config'),
  },
});

const condorOff = (daemon: string) =>
  run(`${pool.programs}/../sbin/condor_off`, ['-fast', '-subsystem', daemon], asAdministrator());
const condorOn = (daemon: string) =>
  run(`${pool.programs}/../sbin/condor_on`, ['-subsystem', daemon], asAdministrator());
