import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { classAdString, jobIdText, whereIs, whereJobs } from '../../src/clients/htcondor/classad.ts';
import { attributeOf, namedBeside } from '../../src/clients/htcondor/expression-steps.ts';
import { callable, expressionRefusal } from '../../src/clients/htcondor/expression.ts';
import {
  boundedValue,
  readSubmitCommands,
  submitRefusal,
} from '../../src/clients/htcondor/submit-commands.ts';
import { allowedCommands } from '../../src/clients/htcondor/submit-names.ts';
import { type CondorCode, HTCondorError } from '../../src/clients/htcondor/errors.ts';
import {
  halfReason,
  wasNeverWhole,
  wasWhole,
  whereEither,
  whereOurs,
} from '../../src/plugins/htcondor/look-up.ts';
import { jobOf, marks } from '../../src/plugins/htcondor/marks.ts';
import { TooLargeJobs } from '../../src/plugins/htcondor/state/too-large.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  ownPool,
  type Pool,
  type ScheddKind,
  scheddPid,
} from '../support/htcondor.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordingLog } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { queueRows } from '../support/condor-jobs.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();
const spaces: CondorSpace[] = [];
let pool: Pool;

function space(): CondorSpace {
  const one = condorSpace(pool);
  spaces.push(one);
  return one;
}

/** A job that does what a shell is told. */
const shellJob = ({ factory, directory }: CondorSpace, script: string, ...more: readonly string[]) =>
  [
    ...['executable = /bin/sh', `arguments = "-c '${script}'"`, 'transfer_executable = false'],
    ...['should_transfer_files = YES', 'when_to_transfer_output = ON_EXIT', `initialdir = ${directory}`],
    ...['output = out.$(Process)', 'error = err.$(Process)', `+thresherFactory = "${factory}"`],
    ...more,
    '',
  ].join('\n');

/** `request_cpus` as RequestCpus. */
const pascalCase = (key: string) =>
  key.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

async function failureOf(call: Promise<unknown>, code: CondorCode): Promise<HTCondorError> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof HTCondorError)) throw error;
    expect(error.code, error.message).to.equal(code);
    return error;
  }
  throw new Error(`it succeeded, and should have failed with ${code}`);
}

const failuresOf = (calls: readonly Promise<unknown>[], code: CondorCode) =>
  Promise.all(calls.map((call) => failureOf(call, code)));

describe('the client of HTCondor', function () {
  this.timeout(240_000);
  before(async () => {
    pool = await condorPool();
  });
  after(() => clearSpaces(pool, spaces));

  for (const kind of ['local', 'remote'] as const) {
    describe(`and a ${kind} schedd`, () => {
      it('submits, shows, holds, releases, edits and removes jobs, and finds them in the history', async () => {
        const client = clientOf(pool, kind);
        const { mine, ...own } = space();
        const text = shellJob({ ...own, mine }, 'sleep $(time)');
        const rows = queueRows(['time'], [['600'], ['601'], ['602']]);
        const jobs = await client.submit(`${text}\n${rows}`, { spool: kind === 'remote' }, signal);
        expect(jobs.map(({ proc }) => proc)).to.deep.equal([0, 1, 2]);
        const [{ User: user } = {}] = await client.queue(mine, ['User'], signal);
        expect(await client.whoAmI(signal), 'the schedd says whose jobs they are').to.equal(user);
        const states = async () => {
          const ads = await client.queue(
            mine,
            ['ProcId', 'JobStatus', 'HoldReason', 'Colour', 'Depth'],
            signal,
          );
          return ads.toSorted((a, b) => Number(a['ProcId']) - Number(b['ProcId']));
        };
        const statuses = async () => (await states()).map(({ JobStatus }) => JobStatus);
        await until('all run', async () => JSON.stringify(await statuses()) === '[2,2,2]');
        const held = await client.act('hold', whereJobs(jobs.slice(0, 2)), 'wait', signal);
        expect(held).to.include({ succeeded: 2 });
        await until('two are held', async () => JSON.stringify(await statuses()) === '[5,5,2]');
        await client.qedit(mine, { Colour: classAdString('a "red" one'), Depth: '-1' }, signal);
        expect((await states())[1]).to.include({ Colour: 'a "red" one', Depth: -1 });
        const [first, second, third] = jobs;
        if (!first || !second || !third) throw new Error('there are three');
        expect(await client.act('release', whereJobs([first]), 'go', signal)).to.include({
          succeeded: 1,
          badStatus: 0,
        });
        expect(await client.act('release', whereJobs([third]), 'go', signal)).to.include({
          succeeded: 0,
        });
        expect(await client.act('hold', whereJobs([third]), 'a "quoted" \\ reason', signal)).to.include({
          succeeded: 1,
        });
        await until('the reason is there', async () =>
          String((await states())[2]?.['HoldReason']).startsWith("a 'quoted' / reason"),
        );
        expect(await client.act('remove', mine, 'enough', signal)).to.include({ succeeded: 3, denied: 0 });
        await until('all are gone', async () => (await states()).length === 0);
        const left = await client.history(
          mine,
          ['ClusterId', 'ProcId', 'JobStatus', 'RemoveReason'],
          10,
          signal,
        );
        expect(left.map(({ JobStatus }) => JobStatus)).to.deep.equal([3, 3, 3]);
        expect(left[0]?.['RemoveReason']).to.match(/^enough/);
        expect(await client.act('remove', mine, 'again', signal)).to.include({ succeeded: 0, notFound: 0 });
        expect(await client.history(mine, ['ClusterId'], 2, signal)).to.have.length(2);
      });

      it('knows which idle jobs ask for more than any machine has', async () => {
        const client = clientOf(pool, kind);
        const own = space();
        const sizes = await client.largestMachines(signal);
        if (sizes === undefined) throw new Error('the pool has machines');
        const { cpus, gpus, memory } = sizes;
        expect(Math.min(cpus, memory)).to.be.greaterThan(0);
        const ask = (...lines: readonly string[]) =>
          client.submit(
            shellJob(own, 'sleep 600', ...lines, 'requirements = false', 'queue'),
            { spool: kind === 'remote' },
            signal,
          );
        const most = await ask(`request_cpus = ${cpus}`, `request_memory = ${memory}`);
        const large = await ask(`request_cpus = ${cpus + 1}`, `request_gpus = ${gpus + 1}`);
        const wide = await ask(`request_memory = ${memory} + RequestCpus`);
        const idle = async () =>
          (await client.queue(`${own.mine} && JobStatus == 1`, ['ClusterId', 'ProcId'], signal)).length;
        await until('all are idle', async () => (await idle()) === 3);
        const { mine } = own;
        const jobs = new TooLargeJobs({ client, mine, clock: new ManualClock(), log: recordingLog() });
        await jobs.ask(signal, 0);
        const none = 'and no machine that the collector knows has';
        const gpuText = gpus === 0 ? `1 GPU, ${none} any` : `${gpus + 1} GPUs, ${none} more than ${gpus}`;
        const why = [most, large, wide].map(([job]) => jobs.of(job === undefined ? '' : jobIdText(job)));
        expect(why).to.deep.equal([
          undefined,
          `it asks for ${cpus + 1} cores, ${none} more than ${cpus}; it asks for ${gpuText}`,
          `it asks for ${memory + 1} MiB of memory, ${none} more than ${memory}`,
        ]);
        await jobs.ask(signal, 3600);
        expect(jobs.of(large[0] ? jobIdText(large[0]) : '')).to.equal(undefined);
      });

      it('shows the end of what a running job writes', async () => {
        const client = clientOf(pool, kind);
        const own = space();
        const text = shellJob(own, 'echo to out; echo to err >&2; sleep 600', 'queue');
        const [job] = await client.submit(text, { spool: kind === 'remote' }, signal);
        if (job === undefined) throw new Error('no job');
        await failureOf(client.tail({ ...job, proc: 7 }, { stream: 'stdout' }, signal), 'condor-no-job');
        await until(
          'it runs and wrote',
          async () => (await client.tail(job, { stream: 'stdout' }, signal)) === 'to out\n',
        );
        expect(await client.tail(job, { stream: 'stderr' }, signal)).to.equal('to err\n');
        await client.act('remove', own.mine, 'seen', signal);
      });
    });
  }

  it('brings the output of a spooled job', async () => {
    const client = clientOf(pool, 'remote');
    const own = space();
    await client.submit(shellJob(own, 'echo spooled', 'queue'), { spool: true }, signal);
    await until(
      'it is done',
      async () => (await client.queue(own.mine, ['JobStatus'], signal))[0]?.['JobStatus'] === 4,
    );
    expect(existsSync(join(own.directory, 'out.0'))).to.equal(false);
    await client.transferData(own.mine, signal);
    expect(readFileSync(join(own.directory, 'out.0'), 'utf8')).to.equal('spooled\n');
    // None is no error.
    await client.transferData('false', signal);
  });

  it('says nothing of jobs where there are none', async () => {
    const client = clientOf(pool, 'local');
    expect(await client.queue('false', ['ClusterId'], signal)).to.deep.equal([]);
    expect(await client.history('false', ['ClusterId'], 5, signal)).to.deep.equal([]);
  });

  it('writes strings that HTCondor reads back as they were', async () => {
    const client = clientOf(pool, 'local');
    const own = space();
    await client.submit(shellJob(own, 'true', 'hold = true', 'queue'), {}, signal);
    const nasty = fc.constantFrom(
      '"',
      '\\',
      '\\"',
      "'",
      '\n',
      '\t',
      '$(HOME)',
      '&&',
      ')',
      '%',
      'é',
      '😀',
      '/*',
      '#',
    );
    const texts = fc.array(fc.oneof(nasty, fc.string({ unit: 'binary' })), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(texts, async (parts) => {
        const text = parts.join('').replaceAll(/[\0\n\r]/g, '');
        await client.qedit(own.mine, { Text: classAdString(text) }, signal);
        const [ad] = await client.queue(`${own.mine} && ${whereIs('Text', text)}`, ['Text'], signal);
        // It stays a computation there.
        if (!text.endsWith('\\')) expect(ad?.['Text']).to.equal(text);
        expect(ad).to.have.property('Text');
      }),
      { numRuns: 40 },
    );
  });

  it('chooses jobs by their ids and no others', async () => {
    const client = clientOf(pool, 'local');
    const own = space();
    const jobs = await client.submit(shellJob(own, 'true', 'hold = true', 'queue 6'), {}, signal);
    const ids = async (constraint: string) =>
      (await client.queue(`${own.mine} && (${constraint})`, ['ClusterId', 'ProcId'], signal))
        .map(({ ProcId }) => ProcId)
        .sort();
    expect(await ids(whereJobs([]))).to.deep.equal([]);
    expect(await ids(whereJobs(jobs.slice(1, 3)))).to.deep.equal([1, 2]);
    expect(await ids(whereJobs(jobs.filter(({ proc }) => proc % 2 === 1)))).to.deep.equal([1, 3, 5]);
  });

  it('chooses whole jobs as thresher reads them, and those in doubt also where one has no owner', () => {
    const ended = { JobStatus: 3, Owner: 'pilot', [marks.worker]: '7' };
    const each = (name: string, values: readonly unknown[], ads: readonly object[]) =>
      ads.flatMap((ad) => values.map((value) => (value === undefined ? ad : { ...ad, [name]: value })));
    const ads = [
      ['JobStartDate', [undefined, 0, 1_700_000_000]],
      ['StageInFinish', [undefined, 0, 1_700_000_000]],
      ['HoldReasonCode', [undefined, 15, 16]],
      ['LastHoldReasonCode', [undefined, 16]],
      ['RemoveReason', [undefined, 'via condor_rm', `${halfReason} (by user pilot)`]],
      ['JobStatus', [3, 4]],
    ].reduce<readonly object[]>((all, [name, values]) => each(name as string, values as [], all), [ended]);
    const { directory } = space();
    const file = join(directory, 'jobs.ads');
    const withoutOwner = { JobStatus: 4, [marks.worker]: '7' };
    const written = [...ads, withoutOwner].map((ad, cluster) =>
      Object.entries({ MyType: 'Job', ClusterId: cluster, ProcId: 0, ...ad })
        .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
        .join(''),
    );
    writeFileSync(file, written.join('\n'));
    const chosen = (constraint: string) => {
      const args = ['-jobads', file, '-constraint', constraint, '-af', 'ClusterId'];
      const env = { ...process.env, CONDOR_CONFIG: pool.local.config };
      const { stdout } = spawnSync(join(pool.programs, 'condor_q'), args, { encoding: 'utf8', env });
      return stdout.split('\n').filter(Boolean).map(Number);
    };
    const whole = ads.flatMap((ad, ClusterId) => {
      const job = jobOf({ ClusterId, ProcId: 0, ...ad }, false);
      return job !== undefined && !wasNeverWhole(job) ? [ClusterId] : [];
    });
    expect(whole.length).to.be.within(200, ads.length - 30);
    expect(chosen(wasWhole)).to.deep.equal([...whole, ads.length]);
    const open = [{ workerId: 7 }];
    const where = 'member(splitUserName(Owner)[0], {"pilot"})';
    expect(chosen(whereOurs(open, { where, unanswered: undefined }))).to.deep.equal(whole);
    expect(chosen(whereEither(open, { where, unanswered: undefined }))).to.deep.equal([...whole, ads.length]);
    const others = whereEither(open, { where: where.replace('pilot', 'games'), unanswered: undefined });
    const doubtful = ads.flatMap((ad, at) => ((ad as typeof ended).JobStatus === 3 ? [] : [at]));
    expect(chosen(others)).to.deep.equal([...doubtful, ads.length]);
  });

  it('reads thousands of jobs without keeping others waiting', async () => {
    const client = clientOf(pool, 'local');
    const own = space();
    await client.submit(shellJob(own, 'true', 'hold = true', 'queue 3000'), {}, signal);
    let [rows, reading] = [0, true];
    const each = () => ++rows;
    const read = client.queueAs(each, own.mine, [], signal).finally(() => (reading = false));
    let longest = 0;
    for (let before = 0; reading; before = rows) {
      await turn();
      longest = Math.max(longest, rows - before);
    }
    expect(await read).to.have.length(3000);
    expect(longest, 'jobs read while others waited').to.be.within(1, 1000);
  });

  describe('hole 1: lets third parties write', () => {
    /** Of HTCondor's own library: what a pool evaluates. */
    const evaluated = (expressions: readonly string[]) => {
      const program = join(pool.programs, 'classad_functional_tester');
      const input = expressions.flatMap((one) => [`eval r = ${one}`, 'print $r']).join('\n');
      const { stdout, status } = spawnSync(program, { input, encoding: 'utf8', timeout: 60_000 });
      return { status, lines: stdout.split('\n') };
    };

    const environment = () => ({ ...process.env, CONDOR_CONFIG: pool.local.config });

    /** The ad of a job that has all commands whose values are expressions, each with a number of its own. */
    const adOfAll = () => {
      const numbers = new Map(
        allowedCommands
          .flatMap(({ names }) => names)
          // Texts and numbers have bounds of their own.
          .filter(
            (name) => submitRefusal(name, `1${' + 1'.repeat(300)}`) === undefined || /^request_/.test(name),
          )
          .map((name, index) => [name, 71_001 + index]),
      );
      const lines = [...numbers].map(([name, number]) => `${name} = ${number}`);
      const { directory } = space();
      const input = ['executable = /bin/true', ...lines, 'queue', ''].join('\n');
      const output = join(directory, 'job.ad');
      const tool = join(pool.programs, 'condor_submit');
      const { status } = spawnSync(tool, ['-dry-run', output, '-'], {
        input,
        cwd: directory,
        env: environment(),
        timeout: 60_000,
      });
      expect(status).to.equal(0);
      const ad = new Map<string, string>();
      for (const line of readFileSync(output, 'utf8').split('\n')) {
        const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
        if (name !== undefined && value !== undefined) ad.set(name, value);
      }
      return { ad, numbers };
    };

    it('no size that is less than nothing, or more than a machine has, whatever its expression comes to', () => {
      const nan = 'real("NaN")';
      const given = [
        ...['-1e9', '-(1)', '1e9', '1e400', nan, `-${nan}`, `0 * ${nan}`, `max({${nan}, 1})`, `int(${nan})`],
        ...['real("INF")', '-real("INF")', 'real("INF") - real("INF")', '(9223372036854775807)'],
        ...['-9223372036854775807 - 1', '9223372036854775807 * 3', 'time()', 'true', 'undefined', 'X'],
      ];
      const sizes = [...given, '300', '1.5 * 3', '"9"', 'error', '1 / 0', '{9, 9}'].map((one) => {
        const { lines } = evaluated([boundedValue('request_memory', one)]);
        return (lines[1] ?? '').replace('> ', '').trim();
      });
      expect(sizes.slice(given.length)).to.deep.equal([
        '300',
        '4.500000000000000E+00',
        ...['error', 'error', 'error', 'error'],
      ]);
      for (const [at, one] of given.entries()) expect(Number(sizes[at] || NaN), one).to.be.within(0, 2 ** 26);
    });

    it('only functions that give a few characters, whatever they are given', () => {
      const list = `{"${String.raw`q\"`.repeat(50)}", "${'z'.repeat(50)}"}`;
      const text = `"${'a,b'.repeat(30)}"`;
      const given = [
        ...[list, text, `${list}, ${list}`, `${list}, ${text}`, `${text}, ${list}`, `${text}, ${text}`],
        ...[`"<", ${list}, 1`, `${list}, 1, 1`, `${text}, ",", ${list}`],
      ];
      // Gives what it is given.
      const others = [...callable].filter((name) => name !== 'ifthenelse');
      const { lines } = evaluated(others.flatMap((name) => given.map((one) => `${name}(${one})`)));
      expect(lines).to.have.length.greaterThan(others.length * given.length);
      expect(lines.filter((line) => line.length > 60)).to.deep.equal([]);
      expect(evaluated([`toupper(${list})`]).lines.some((line) => line.length > 300)).to.equal(true);
    });

    it('no call whose value changes with the key of a slot, whatever it is given', () => {
      const { directory } = space();
      /** What each expression gives in the ad of a running job. */
      const values = (key: string, description: string, expressions: readonly string[]) => {
        const file = join(directory, 'running.ad');
        const ad = { ClaimId: key, WantOS: 'a', JobDescription: description, Owner: 'pilot' };
        const lines = Object.entries(ad).map(([name, value]) => `${name} = ${classAdString(value)}`);
        const stats = 'TransferInputStats = [ CedarFilesCountTotal = 1 ]';
        writeFileSync(file, [...lines, stats, 'Numbers = { 1,2 }', '', ''].join('\n'));
        const args = ['-ads', file, '-af:n', ...expressions];
        const tool = join(pool.programs, 'condor_status');
        const { stdout } = spawnSync(tool, args, { encoding: 'utf8', env: environment(), timeout: 60_000 });
        const all = stdout
          .trimEnd()
          .split('\n')
          .map((one) => one.trim());
        expect(all).to.have.length(expressions.length);
        return all;
      };
      const [whole = ''] = values('a#1', '', ['MY']);
      // The ad is a text with the key in it, and a text that is less than the one and greater than the other tells the two apart.
      const guess = whole.slice(0, whole.indexOf('a#1')) + 'm';
      const bothOf = (expressions: readonly string[]) =>
        ['a#1', 'z#1'].map((key) => values(key, guess, expressions)) as [string[], string[]];
      expect(bothOf(['strcmp(MY, JobDescription)', 'versionLT(JobDescription, SELF)'])).to.deep.equal([
        ['-1', 'false'],
        ['1', 'true'],
      ]);
      const given = [
        ...['"a"', '1.5', 'Owner', 'MY.Owner', 'WantOS', 'JobDescription', 'TARGET.X', '{1, 2}', 'Numbers'],
        ...['TransferInputStats', 'MY', 'TARGET', 'SELF', 'PARENT', 'TOPLEVEL', 'ROOT', 'MY.MY', 'MY.SELF'],
        ...['{MY, 1}', 'MY ?: 1'],
      ];
      const lists = given.flatMap((one) => [
        one,
        ...given.flatMap((other) => [`${one}, ${other}`, `${one}, ${other}, "z"`, `"<", ${one}, ${other}`]),
      ]);
      const names = [...callable].filter((name) => name !== 'time');
      const taken = names
        .flatMap((name) => lists.map((one) => `${name}(${one})`))
        .filter((one) => expressionRefusal(one, 'match') === undefined);
      // What a pattern is compared with is the machine's.
      for (const name of names.filter((one) => one !== 'regexp'))
        expect(
          taken.some((one) => one.startsWith(`${name}(`)),
          name,
        ).to.equal(true);
      const [before, after] = bothOf(taken);
      expect(taken.filter((_, index) => before[index] !== after[index])).to.deep.equal([]);
    });

    it('no expression that a machine, a template or a site may have read this one again by', () => {
      const { directory } = space();
      const slot = {
        MyType: '"Machine"',
        Name: '"slot1@wn"',
        Machine: '"wn"',
        State: '"Unclaimed"',
        PartitionableSlot: 'true',
        SlotType: '"Partitionable"',
        Cpus: '4',
        Memory: '4000',
        Disk: '100000',
        // HTCondor's own, and what sites write.
        WithinResourceLimits:
          'MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory',
        Start: 'TARGET.MaxRuntime =?= undefined || TARGET.MaxRuntime < 86400',
        FitsMe: 'TARGET.RequestMemory < Memory',
        Requirements: 'START && WithinResourceLimits && FitsMe',
        Rank: 'TARGET.RequestDisk',
      };
      const job = {
        MyType: '"Job"',
        ClusterId: '1',
        ProcId: '0',
        Owner: '"pilot"',
        JobStatus: '1',
        QDate: '1',
        RequestCpus: '1',
        RequestMemory: '10',
        RequestDisk: '10',
        MemoryUsage: '(ResidentSetSize + 1023) / 1024',
        ResidentSetSize: '10',
        Requirements: '(TARGET.Cpus >= RequestCpus) && FitsMe',
        Rank: '0',
        PeriodicHold: 'MemoryUsage > 2 * RequestMemory',
        PeriodicRemove: 'PeriodicHold || MaxRuntime > 9',
        PartOfTemplate: 'RequestCpus * 2 + MaxRuntime',
      };
      const text = (ad: Readonly<Record<string, string>>) =>
        [...Object.entries(ad).map(([name, value]) => `${name} = ${value}`), '', ''].join('\n');
      const slots = join(directory, 'slots.ad');
      writeFileSync(slots, text(slot));
      /** Matches jobs with that machine, as the negotiator does. */
      const analysed = (jobs: readonly Readonly<Record<string, string>>[]) => {
        const file = join(directory, 'jobs.ad');
        writeFileSync(file, jobs.map(text).join(''));
        const args = ['-better-analyze', '-jobads', file, '-slotads', slots];
        const { status, signal } = spawnSync(join(pool.programs, 'condor_q'), args, { env: environment() });
        return { status, signal };
      };
      const sum = ' + 1'.repeat(440);
      const keys = ['request_cpus', 'request_memory', 'request_disk', '+MaxRuntime', 'rank', 'periodic_hold'];
      const names = [...new Set([...Object.keys(slot), ...Object.keys(job), 'MaxRuntime', 'JobPrio', 'X'])];
      const lines = [...keys, 'requirements', 'periodic_remove', 'require_gpus'].flatMap((key) =>
        names.flatMap((name) =>
          ['', 'MY.', 'TARGET.'].map((scope) => ({ key, value: `${scope}${name}${sum}` })),
        ),
      );
      const adOf = ({ key, value }: (typeof lines)[number]) => ({
        ...job,
        [key.startsWith('+') ? key.slice(1) : pascalCase(key)]: value,
      });
      const isTaken = ({ key, value }: (typeof lines)[number]) =>
        readSubmitCommands(`${key} = ${value}`).problems.length === 0;
      const taken = lines.filter(isTaken);
      expect(taken.length).to.be.greaterThan(100);
      expect(analysed(taken.map(adOf))).to.deep.equal({ status: 0, signal: null });
      // What it is about: HTCondor 23.9 ends.
      for (const line of [
        { key: 'request_cpus', value: `TARGET.WithinResourceLimits${sum}` },
        { key: '+MaxRuntime', value: `Start${sum}` },
        { key: 'request_memory', value: `PeriodicHold${sum}` },
      ]) {
        expect(isTaken(line), line.key).to.equal(false);
        expect(analysed([adOf(line)]).signal, line.key).to.equal('SIGSEGV');
      }
    });

    it('only patterns that are matched at once with any text of a machine', () => {
      const dots = Array.from({ length: 9 }, () => '.').join('|');
      const patterns = [
        ...['a*[bc]', `^.*(${dots})[xy]`, `^(${dots})[ab]+[xy]`, `^(${dots}).{1,60000}${'.'.repeat(60)}[xy]`],
        ...[`[ab]+${'.'.repeat(85)}[xy]`, `(${dots})${'.'.repeat(70)}[xy]`],
      ];
      for (const one of patterns)
        expect(expressionRefusal(`regexp("${one}", TARGET.Machine)`, 'match'), one).to.equal(undefined);
      const machine = `"${'a'.repeat(1000)}"`;
      // As often as a job may match: without a bound this ends in hours.
      const all = patterns.flatMap((one) => Array.from({ length: 9 }, () => `regexp("${one}", ${machine})`));
      expect(evaluated(all).status).to.equal(0);
    });

    it('no name in single quotes, and no text that ads of the old way end elsewhere', () => {
      const unlike = ['\'strcat\'("a", "b")', '\'replaceAll\'("a", "aa", "a")'];
      // HTCondor does call them.
      expect(evaluated(unlike).lines.join(' ')).to.match(/"ab".*"aa"/);
      const old = join(space().directory, 'job.ad');
      const written = String.raw`"a\\" =!= " =!= strcat(Owner, Owner) // "`;
      writeFileSync(old, `MyType = "Job"\nClusterId = 1\nProcId = 0\nOwner = "u"\nX = ${written}\n\n`);
      const tool = join(pool.programs, 'condor_q');
      const read = spawnSync(tool, ['-jobads', old, '-af:r', 'X'], { encoding: 'utf8', env: environment() });
      // What stands behind the call was a comment.
      expect(read.stdout.trim()).to.match(/ =!= strcat\(Owner,Owner\)$/);
      for (const one of [...unlike, written]) expect(expressionRefusal(one, 'match'), one).to.be.a('string');
    });

    it('commands whose attributes are known, also where HTCondor names them itself', () => {
      const { ad, numbers } = adOfAll();
      const listed = new Set(numbers.keys());
      const wrong = [...numbers].filter(([name, number]) => {
        const [attribute] = [...ad].find(([, value]) => new RegExp(`\\b${number}\\b`).test(value)) ?? [];
        return attribute !== undefined && attribute.toLowerCase() !== attributeOf(name);
      });
      expect(wrong).to.deep.equal([]);
      const ofListed = new Map([...listed].map((name) => [attributeOf(name), name]));
      for (const [attribute, value] of ad) {
        const named = (value.match(/[A-Za-z_]\w*/g) ?? []).flatMap(
          (word) => ofListed.get(word.toLowerCase()) ?? [],
        );
        expect(named, attribute).to.have.members(
          namedBeside[attribute]?.filter((name) => named.includes(name)) ?? [],
        );
      }
      expect(ad.get('Requirements')).to.include('RequestMemory');
      expect(ad.get('RequireGPUs')).to.include('GPUsMinMemory');
    });

    it('what a schedd takes from its users', async () => {
      const taken = [
        'regexp("^b(6|7)[0-9]\\\\.", Machine) || regexp("^wn", TARGET.Machine, "i")',
        'stringListIMember("a", TARGET.Sites) =!= true && !stringListMember(Machine, "wn1,wn2")',
        'max({MemoryUsage * 3 / 2, 2000}) > 1 && time() > int(QDate)',
      ];
      for (const one of taken) {
        expect(expressionRefusal(one, 'match'), one).to.equal(undefined);
        const jobs = await clientOf(pool, 'local').submit(
          shellJob(space(), 'true', 'hold = true', `requirements = ${one}`, 'queue'),
          {},
          signal,
        );
        expect(jobs, one).to.have.length(1);
      }
    });
  });

  describe('tells failures apart:', () => {
    it('a command that is not there', async () => {
      const client = clientOf(pool, 'local', { toolDirectory: temporaryDirectory() });
      const error = await failureOf(client.queue('true', [], signal), 'condor-no-tool');
      expect(error.message).to.match(/condor_q was not found: install it/);
      const { maybeDone } = await failureOf(client.submit('queue', {}, signal), 'condor-no-tool');
      expect(maybeDone).to.be.false;
    });

    it('a schedd that nobody knows', async () => {
      const client = clientOf(pool, 'remote', { name: 'nobody@pool.test' });
      const calls = [
        client.queue('true', ['ClusterId'], signal),
        client.history('true', ['ClusterId'], 1, signal),
        client.submit('executable = /bin/true\nqueue\n', {}, signal),
        client.act('remove', 'false', 'why', signal),
        client.qedit('false', { A: '1' }, signal),
        client.tail({ cluster: 1, proc: 0 }, { stream: 'stdout' }, signal),
        client.transferData('false', signal),
      ];
      for (const { maybeDone, message } of await failuresOf(calls, 'condor-schedd-unknown')) {
        expect(maybeDone).to.be.false;
        expect(message).to.contain('schedd nobody@pool.test of pool 127.0.0.1:');
      }
    });

    it('a token that is not there', async () => {
      const none = temporaryDirectory();
      for (const kind of ['local', 'remote'] as const) {
        const client = clientOf(pool, kind, { tokenDirectory: none });
        const calls = [
          client.queue('true', ['ClusterId'], signal),
          client.submit('executable = /bin/true\nqueue\n', {}, signal),
          client.act('remove', 'false', 'why', signal),
          client.qedit('false', { A: '1' }, signal),
        ];
        for (const failure of await failuresOf(calls, 'condor-auth')) {
          expect(failure).to.include({ maybeDone: false });
        }
      }
    });

    it('a pool where nobody answers', async () => {
      const client = clientOf(pool, 'remote', { pool: '127.0.0.1:1' });
      const calls = [
        client.queue('true', ['ClusterId'], signal),
        client.submit('executable = /bin/true\nqueue\n', {}, signal),
        client.act('remove', 'false', 'why', signal),
      ];
      for (const failure of await failuresOf(calls, 'condor-unreachable')) {
        expect(failure).to.include({ maybeDone: false });
      }
    });

    it('a submit text that is wrong, with its line', async () => {
      const client = clientOf(pool, 'local');
      const wrong: readonly (readonly [text: string, line: number | undefined])[] = [
        ['executable = /bin/sh\nfoo\nqueue\n', 2],
        ['executable = /bin/sh\n\nrequest_memory = lots of\nqueue\n', 3],
        ['executable = /bin/sh\n+Site = (\nqueue\n', 2],
        ['executable = /bin/sh\nqueue a from (\n1\n', 3],
        ['executable = /no/such\nqueue\n', undefined],
      ];
      for (const [text, line] of wrong) {
        const error = await failureOf(client.submit(text, {}, signal), 'condor-submit-wrong');
        expect(error, error.message).to.include({ line, maybeDone: false });
        if (line !== undefined) expect(error.message).to.contain(`, line ${line} of the submit text: `);
      }
    });

    it('an expression that is wrong', async () => {
      const client = clientOf(pool, 'local');
      // 25.x leaves it to the schedd, and then says nothing of why.
      const codes = ['condor-constraint-wrong', 'condor-failed'];
      const asked = await client.queue('a ==', [], signal).catch((error: unknown) => error);
      expect(asked instanceof HTCondorError && codes.includes(asked.code), String(asked)).to.equal(true);
      await failureOf(client.history('a ==', [], 1, signal), 'condor-constraint-wrong');
      await failureOf(client.act('remove', 'a ==', 'why', signal), 'condor-constraint-wrong');
      expect(() => whereIs('a == 1 || b', 'c')).to.throw(RangeError);
    });

    it('jobs that are not there', async () => {
      await failureOf(clientOf(pool, 'local').qedit('false', { A: '1' }, signal), 'condor-no-job');
    });

    it('a list of jobs that is cut off', async () => {
      const toolDirectory = temporaryDirectory();
      const write = (output: string) => {
        writeFileSync(join(toolDirectory, 'condor_q'), `#!/bin/sh\ncat <<'E'\n${output}\nE\n`, {
          mode: 0o755,
        });
      };
      const client = clientOf(pool, 'local', { toolDirectory });
      for (const output of ['[\n{ "ClusterId": 1 }\n', '[\n{ "ClusterId": 1', '{"a": }', 'no list']) {
        write(output);
        await failureOf(client.queue('true', [], signal), 'condor-answer');
      }
      write('[\n{ "ClusterId": 1 }\n]');
      expect(await client.queue('true', [], signal)).to.deep.equal([{ ClusterId: 1 }]);
    });
  });

  describe('with a pool of its own', () => {
    let own: Awaited<ReturnType<typeof ownPool>>;
    before(async () => {
      own = await ownPool([
        'MAX_JOBS_PER_OWNER = 5',
        'MAX_JOBS_PER_SUBMISSION = 4',
        'REMOTE.MAX_JOBS_PER_OWNER = 1000',
      ]);
    });
    after(() => own.stop());

    it('says that a limit of the schedd is reached, and that nothing was submitted', async () => {
      const client = clientOf(own, 'local');
      const mine = condorSpace(own);
      const submit = (count: number) =>
        client.submit(shellJob(mine, 'true', 'hold = true', `queue ${count}`), {}, signal);
      await submit(4);
      for (const count of [2, 5]) {
        const error = await failureOf(submit(count), 'condor-limit');
        expect(error.maybeDone).to.be.false;
        expect(error.message).to.match(/MAX_JOBS_PER_(OWNER|SUBMISSION)/);
      }
      expect(await client.queue(mine.mine, ['ProcId'], signal)).to.have.length(4);
      expect(await client.act('remove', mine.mine, 'over', signal)).to.include({ succeeded: 4 });
    });

    it('waits for a schedd that hangs no longer than it was told, while the other one answers', async () => {
      const kinds: readonly ScheddKind[] = ['local', 'remote'];
      const [hanging, other] = kinds.map((kind) =>
        clientOf(own, kind, {}, kind === 'local' ? 1500 : undefined),
      );
      if (!hanging || !other) throw new Error('there are two');
      const pid = scheddPid(own, 'local');
      const mine = condorSpace(own);
      const started: number[] = [];
      process.kill(pid, 'SIGSTOP');
      try {
        const options = { onStart: (one: number) => started.push(one) };
        const calls = [
          hanging.submit(shellJob(mine, 'true', 'hold = true', 'queue'), options, signal),
          hanging.act('remove', 'false', 'why', signal),
          hanging.queue('true', ['ClusterId'], signal),
        ].map((call) => failureOf(call, 'condor-timeout'));
        expect(await other.queue('true', ['ClusterId'], signal)).to.deep.equal([]);
        const failures = await Promise.all(calls);
        expect(failures.map(({ maybeDone }) => maybeDone)).to.deep.equal([true, true, false]);
        expect(started).to.have.length(1);
        expect(existsSync(`/proc/${started[0] ?? 0}`)).to.be.false;
      } finally {
        process.kill(pid, 'SIGCONT');
      }
      expect(await clientOf(own, 'local').queue(mine.mine, ['ClusterId'], signal)).to.have.length.below(2);
    });

    it('gives up at once when it is told to, and what waits for its turn never starts', async () => {
      const client = clientOf(own, 'local');
      const stop = new AbortController();
      const pid = scheddPid(own, 'local');
      process.kill(pid, 'SIGSTOP');
      try {
        const calls = Array.from({ length: 6 }, () =>
          failureOf(client.act('remove', 'false', 'why', stop.signal), 'condor-given-up'),
        );
        await until('four wait for the schedd', () => runningTools(own, 'condor_rm') === 4);
        stop.abort();
        const failures = await Promise.all(calls);
        expect(failures.map(({ maybeDone }) => maybeDone)).to.deep.equal([
          true,
          true,
          true,
          true,
          false,
          false,
        ]);
        expect(runningTools(own, 'condor_rm')).to.equal(0);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
    });

    it('lets only so many commands run at once, whatever is asked', async () => {
      const toolDirectory = temporaryDirectory();
      const marks = join(toolDirectory, 'running');
      mkdirSync(marks);
      // The first four wait for each other, so that a busy machine does not part them.
      const script = `#!/bin/sh
touch ${marks}/$$
until count=$(ls ${marks} | wc -l); [ $count -ge 4 ] || [ -e ${toolDirectory}/met ]; do sleep 0.02; done
touch ${toolDirectory}/met
echo $count >> ${toolDirectory}/counts
sleep 0.1
rm ${marks}/$$
`;
      writeFileSync(join(toolDirectory, 'condor_q'), script, { mode: 0o755 });
      const client = clientOf(own, 'local', { toolDirectory });
      await Promise.all(Array.from({ length: 12 }, () => client.queue('true', [], signal)));
      const counts = readFileSync(join(toolDirectory, 'counts'), 'utf8').trim().split('\n').map(Number);
      expect(counts).to.have.length(12);
      expect(Math.max(...counts)).to.equal(4);
    });
  });

  it('names jobs as HTCondor does', () => {
    expect(jobIdText({ cluster: 12, proc: 3 })).to.equal('12.3');
  });
});

/** How many processes of a command of this pool there are. */
function runningTools({ programs }: Pool, command: string): number {
  const list = readFileSync('/proc/self/task/' + String(process.pid) + '/children', 'utf8')
    .trim()
    .split(/\s+/);
  return list.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(join(programs, command));
    } catch {
      return false;
    }
  }).length;
}
