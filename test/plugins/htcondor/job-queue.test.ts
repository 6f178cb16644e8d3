import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import { type Asked, JobQueue, type NamedQueue } from '../../../src/plugins/htcondor/job-queue.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const { signal } = new AbortController();
const [first, second] = [1_700_000_000, 1_700_086_400];

describe('hole 3: the job queue of a schedd', () => {
  let file: string;
  let clock: ManualClock;
  /** What the schedd says; undefined: nothing. */
  let said: { birth: number; started: number; name?: string } | undefined;
  let asked: number;
  /** Where set, an answer waits for this. */
  let held: (() => Promise<void>) | undefined;
  let log: ReturnType<typeof recordingLog>;
  let queue: JobQueue;
  let restart: () => JobQueue;
  const why = (before?: Asked) =>
    (before === undefined ? queue.requireNow(signal) : queue.require(before, signal)).then(
      () => undefined,
      (error: unknown) => error as Error & { readonly code: string },
    );
  const code = async (before?: Asked) => (await why(before))?.code;

  beforeEach(() => {
    file = join(temporaryDirectory(), 'queues', 'S%2CNone.json');
    clock = new ManualClock();
    held = undefined;
    [said, asked] = [{ birth: first, started: 1 }, 0];
    const jobQueue = async () => {
      asked++;
      await held?.();
      if (said === undefined)
        throw new HTCondorError({ code: 'condor-timeout', message: 'no answer', maybeDone: false });
      return { name: 'S', ...said };
    };
    log = recordingLog();
    const client = { jobQueue, callAt: () => undefined };
    const clientAt = () => ({ jobQueue, queue: async () => [] });
    const memory = inFiles(dirname(dirname(file)))('queues');
    const parts = { client, clientAt, clock, log, place: { name: 'S' }, mine: 'true', memory };
    restart = () => new JobQueue({ ...parts, names: new Map() });
    queue = restart();
  });

  it('is the one that it had, whenever the schedd or thresher were started', async () => {
    expect(await code()).to.equal(undefined);
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.equal({ jobQueueBirthdate: first, name: 'S' });
    queue = restart();
    expect(await code()).to.equal(undefined);
  });

  it('is another one after its spool was lost, until it is back or the file is removed', async () => {
    await code();
    said = { birth: second, started: 2 };
    for (let n = 0; n < 3; n++) expect(await code()).to.equal('htcondor-other-queue');
    queue = restart();
    const { message } = (await why()) ?? {};
    expect(message)
      .to.contain('the job queue of S,None (S) was made at 2023-11-15T22:13:20.000Z')
      .and.to.contain('not the one of S of 2023-11-14T22:13:20.000Z')
      .and.to.contain(`remove ${file}`);
    said = { birth: first, started: 3 };
    queue = restart();
    expect(await code()).to.equal(undefined);
    said = { birth: second, started: 3 };
    rmSync(file);
    expect(await code()).to.equal(undefined);
    said = { birth: first, started: 3 };
    expect(await code()).to.equal('htcondor-other-queue');
  });

  it('is asked for again where the schedd was started anew: each answer before may be of the other queue', async () => {
    const before = [await queue.started(signal), await queue.started(signal)];
    expect([before.map((one) => one?.started), asked]).to.deep.equal([[1, 1], 1]);
    said = { birth: first, started: 2 };
    for (const one of before) expect(await code(one)).to.equal('condor-answer');
    expect(await code(await queue.started(signal))).to.equal(undefined);
  });

  it('is asked for again where it is not known when the schedd was started before, and no other queue was kept then', async () => {
    await code();
    queue = restart();
    said = undefined;
    const before = await queue.started(signal);
    said = { birth: first, started: 2 };
    const required = async (started: Asked | undefined) =>
      queue.require(started, signal).then(
        () => 'the same',
        (error: unknown) => (error as { readonly code: string }).code,
      );
    expect([before, await required(before)]).to.deep.equal([undefined, 'condor-answer']);
    expect(await required(await queue.started(signal))).to.equal('the same');
    rmSync(file);
    queue = restart();
    expect(await required(undefined), 'nothing is known of it').to.equal('the same');
  });

  it('is the one of the first answer where two questions are answered at once, whoever writes', async () => {
    for (const isDiskFull of [false, true]) {
      rmSync(dirname(file), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      if (isDiskFull) symlinkSync(join(dirname(dirname(file)), 'away'), dirname(file));
      const answers: (() => void)[] = [];
      held = () => new Promise((answer) => answers.push(answer));
      queue = restart();
      const codes: Promise<string | undefined>[] = [];
      for (const count of [1, 2]) {
        codes.push(code());
        // Each question reads the file first: of two at once, either may come to the schedd before the other.
        while (answers.length < count) await clock.advance(0);
      }
      held = undefined;
      said = { birth: first, started: 1 };
      answers[0]?.();
      await Promise.resolve();
      said = { birth: second, started: 2 };
      answers[1]?.();
      expect(await Promise.all(codes)).to.deep.equal([undefined, 'htcondor-other-queue']);
      said = { birth: first, started: 3 };
      expect(await code()).to.equal(undefined);
    }
  });

  it('is known though the disk is full, and is written once it is not', async () => {
    mkdirSync(dirname(dirname(file)), { recursive: true });
    symlinkSync(join(dirname(dirname(file)), 'away'), dirname(file));
    expect(await code()).to.equal(undefined);
    said = { birth: second, started: 1 };
    for (let n = 0; n < 3; n++) expect(await code()).to.equal('htcondor-other-queue');
    const told = () => log.lines.map(({ message }) => message);
    expect(told()).to.deep.equal([
      'which job queue a schedd has is not kept',
      'the schedd has another job queue',
    ]);
    rmSync(dirname(file));
    await clock.advance(60_001);
    expect(await code()).to.equal('htcondor-other-queue');
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.equal({ jobQueueBirthdate: first, name: 'S' });
  });

  it('is not known while a schedd does not say it that has said it before', async () => {
    await code();
    said = undefined;
    for (let n = 0; n < 3; n++) expect(await code()).to.equal('condor-timeout');
    queue = restart();
    expect(await code()).to.equal('condor-timeout');
  });

  it('is not asked for all the time where the schedd has never said it, and nothing is concluded of that', async () => {
    said = undefined;
    for (let n = 0; n < 3; n++) expect(await code()).to.equal(undefined);
    expect(await queue.started(signal)).to.equal(undefined);
    expect(asked).to.equal(1);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      'the schedd does not say which job queue it has',
    ]);
    await clock.advance(60_001);
    said = { birth: first, started: 1 };
    expect(await code()).to.equal(undefined);
    expect([asked, existsSync(file)]).to.deep.equal([2, true]);
  });

  it('is not known by a damaged file', async () => {
    await code();
    for (const text of ['', '{}', '{"jobQueueBirthdate":"1"}', '[1]', '{"jobQueueBirthdate":1,"name":2}']) {
      writeFileSync(file, text);
      const error = await why();
      expect(error).to.have.property('code', 'htcondor-other-queue');
      expect(error?.message).to.contain(`${file} cannot be read`).and.to.contain('remove it');
    }
  });
});

/** Names by which schedds can be called, and what answers to each. */
class Net {
  readonly answers = new Map<string, { birth: number; started: number; name: string }>();
  /** By the name of a schedd: those that its jobs carry in `GlobalJobId`. */
  readonly jobsOf = new Map<string, string[]>();
  /** Texts that all machines see. */
  readonly texts = new Map<string, string>();
  /** The next reading of one waits for this. */
  held: Promise<undefined> | undefined;
  readonly log = recordingLog();

  clientAt({ name }: { readonly name?: string }) {
    let called = name ?? 'LOCAL';
    const answer = () => {
      const said = this.answers.get(called);
      if (said !== undefined) return said;
      throw new HTCondorError({ code: 'condor-unreachable', message: 'no answer', maybeDone: false });
    };
    return {
      jobQueue: async () => answer(),
      queue: async (constraint: string) =>
        (this.jobsOf.get(answer().name) ?? [])
          .filter((of) => constraint === `mine && substr(GlobalJobId, 0, ${of.length + 1}) =?= "${of}#"`)
          .map(() => ({})),
      callAt: (place: { readonly name?: string }) => {
        called = place.name ?? 'LOCAL';
      },
    };
  }

  /** A daemon that knows these names. */
  daemon(...names: (string | undefined)[]): JobQueue[] {
    const all = new Map<string, NamedQueue>();
    const memory = {
      placeOf: (name: string) => `${name} of the database`,
      read: async (name: string) => {
        const { held } = this;
        this.held = undefined;
        await held;
        return this.texts.get(name);
      },
      write: async (name: string, text: string) => {
        this.texts.set(name, text);
      },
    };
    const { log } = this;
    return names.map((name) => {
      const place = name === undefined ? {} : { name };
      const clientAt = (other: { readonly name?: string }) => this.clientAt(other);
      const parts = { client: this.clientAt(place), clientAt, clock: new ManualClock(), log, memory };
      return new JobQueue({ ...parts, place, mine: 'mine', names: all });
    });
  }
}

const codeOf = (asking: Promise<unknown>) =>
  asking.then(
    () => 'the same',
    (error: unknown) => (error as { readonly code: string }).code,
  );
/** What a look does. */
async function look(queue: JobQueue | undefined): Promise<string> {
  if (queue === undefined) throw new Error('there is no such daemon');
  const code = await codeOf(queue.started(signal).then((before) => queue.require(before, signal)));
  if (code !== 'the same') await queue.callOtherwise(signal);
  return code;
}

describe('hole 5: the job queue of a schedd that another machine asks, or that has another name', () => {
  const [here, there] = [
    { birth: first, started: 1, name: 'schedd@a' },
    { birth: second, started: 1, name: 'schedd@b' },
  ];
  const renamed = { ...here, name: 'new@a' };
  let net: Net;

  beforeEach(() => {
    net = new Net();
  });

  it('is not the own one of the machine that takes over, and is followed there by its name', async () => {
    net.answers.set('LOCAL', here);
    const [ours] = net.daemon(undefined);
    expect(await look(ours)).to.equal('the same');
    net.answers.set('LOCAL', there);
    const [next] = net.daemon(undefined);
    for (let n = 0; n < 2; n++) expect(await look(next)).to.equal('htcondor-other-queue');
    expect(await codeOf(next?.requireNow(signal) ?? Promise.resolve())).to.equal('htcondor-other-queue');
    net.answers.set('schedd@a', here);
    const [local, named] = net.daemon(undefined, 'schedd@a');
    expect([await look(named), await look(local), await look(local)]).to.deep.equal([
      'the same',
      'htcondor-other-queue',
      'the same',
    ]);
    expect(await codeOf(local?.requireNow(signal) ?? Promise.resolve())).to.equal('htcondor-other-queue');
    expect(await look(local), 'what is there is followed all the same').to.equal('the same');
    const text = JSON.stringify({ jobQueueBirthdate: first, name: 'schedd@a' });
    expect([...net.texts.values()]).to.deep.equal([`${text}\n`, `${text}\n`]);
  });

  for (const restarts of [false, true])
    it(`is reached by another name of the settings where the old one is gone${restarts ? ', also after a restart' : ''}`, async () => {
      net.answers.set('old', here);
      net.answers.set('new', here);
      let [old, other] = net.daemon('old', 'new');
      expect([await look(old), await look(other)]).to.deep.equal(['the same', 'the same']);
      net.answers.delete('old');
      if (restarts) [old, other] = net.daemon('old', 'new');
      expect([await look(old), await look(other)]).to.deep.equal(['condor-unreachable', 'the same']);
      await old?.callOtherwise(signal);
      for (let n = 0; n < 2; n++) expect(await look(old)).to.equal('the same');
      expect(net.log.lines.map(({ message }) => message)).to.deep.equal([
        'the schedd is called by another of its names',
      ]);
      expect(await codeOf(old?.requireNow(signal) ?? Promise.resolve())).to.equal('htcondor-other-queue');
      net.answers.set('old', here);
      expect(await codeOf(old?.requireNow(signal) ?? Promise.resolve())).to.equal('the same');
      net.answers.delete('new');
      expect(await look(old), 'it is called by its own name again').to.equal('the same');
    });

  it('is its own again where another schedd has its old name for good, once an operator removed what is kept', async () => {
    net.answers.set('old', here);
    const [before] = net.daemon('old');
    await look(before);
    net.answers.set('old', there);
    net.answers.set('new', here);
    const [old, other] = net.daemon('old', 'new');
    expect([await look(other), await look(old), await look(old)]).to.deep.equal([
      ...['the same', 'htcondor-other-queue', 'the same'],
    ]);
    const submission = () =>
      (old?.requireNow(signal) ?? Promise.resolve()).then(
        () => 'the same',
        (error: unknown) => (error as Error).message,
      );
    const [text = ''] = [...net.texts.keys()];
    expect(await submission()).to.contain(
      `remove ${text} of the database once no job of the former one is left`,
    );
    for (const [asks, said] of [
      [submission, 'the same'],
      [() => look(old), 'condor-answer'],
    ] as const) {
      net.texts.delete(text);
      expect(await asks()).to.equal(said);
      expect([await look(old), await submission()]).to.deep.equal(['the same', 'the same']);
      expect(net.texts.get(text)).to.contain(String(second));
      net.texts.set(text, JSON.stringify({ jobQueueBirthdate: first, name: 'schedd@a' }));
      for (let n = 0; n < 2; n++) await look(old);
    }
  });

  it('is not that of another schedd that takes its name between two questions of a submission', async () => {
    net.answers.set('old', here);
    net.answers.set('new', here);
    const [old, other] = net.daemon('old', 'new');
    expect([await look(old), await look(other)]).to.deep.equal(['the same', 'the same']);
    const reading = Promise.withResolvers<undefined>();
    net.held = reading.promise;
    const asks = old?.requireNow(signal) ?? Promise.resolve();
    net.answers.set('old', there);
    // A look fails, and the schedd is called by its new name before the submission asks it.
    expect(await old?.callOtherwise(signal)).to.equal(true);
    reading.resolve(undefined);
    expect(await codeOf(asks)).to.equal('htcondor-other-queue');
    expect(old?.otherName).to.have.property('code', 'htcondor-other-queue');
  });

  it('keeps its name where it answers, whatever else made a look fail', async () => {
    net.answers.set('a', here);
    net.answers.set('b', here);
    const queues = net.daemon('a', 'b');
    for (const queue of queues) await look(queue);
    for (const queue of queues) expect(await queue.callOtherwise(signal)).to.equal(false);
    expect(net.log.lines).to.deep.equal([]);
    net.answers.delete('a');
    expect(await queues[0]?.callOtherwise(signal)).to.equal(true);
    expect(await queues[0]?.callOtherwise(signal)).to.equal(false);
  });

  it('says that the logs of this machine are not about its jobs while these are with the schedd of another one', async () => {
    for (const [name, isElsewhere] of [
      ['schedd@a', true],
      [`schedd@${hostname()}`, false],
    ] as const) {
      net = new Net();
      net.answers.set('LOCAL', here);
      await look(net.daemon(undefined)[0]);
      net.answers.set('LOCAL', there);
      net.answers.set(name, here);
      const [local, named] = net.daemon(undefined, name);
      expect(local?.logsAreOfOther, 'nothing was asked').to.equal(false);
      expect([await look(named), await look(local)]).to.deep.equal(['the same', 'htcondor-other-queue']);
      expect([await look(local), local?.logsAreOfOther]).to.deep.equal(['the same', isElsewhere]);
      net.answers.set('LOCAL', here);
      await local?.requireNow(signal);
      expect(local?.logsAreOfOther).to.equal(false);
    }
  });

  it('is that of a schedd that calls itself otherwise where this has its jobs, and not by the time of its making alone', async () => {
    net.answers.set('old', here);
    const [before] = net.daemon('old');
    await look(before);
    net.answers.delete('old');
    net.answers.set('new', renamed);
    const [old, other] = net.daemon('old', 'new');
    expect(await look(other)).to.equal('the same');
    for (let n = 0; n < 2; n++) expect(await look(old)).to.equal('condor-unreachable');
    net.jobsOf.set('new@a', ['schedd@ab']);
    for (let n = 0; n < 2; n++) expect(await look(old)).to.equal('condor-unreachable');
    net.jobsOf.set('new@a', ['new@a', 'schedd@a']);
    expect([await look(old), await look(old)]).to.deep.equal(['condor-unreachable', 'the same']);
  });

  it('is asked for again where the schedd was called by another name meanwhile, though both were started at once', async () => {
    net.answers.set('LOCAL', here);
    await look(net.daemon(undefined)[0]);
    net.answers.set('LOCAL', there);
    net.answers.set('schedd@a', here);
    const [local, named] = net.daemon(undefined, 'schedd@a');
    await look(named);
    const before = await local?.started(signal);
    await local?.callOtherwise(signal);
    expect(await codeOf(local?.require(before, signal) ?? Promise.resolve())).to.equal('condor-answer');
    expect(await look(local)).to.equal('the same');
  });

  it('is called by no other name while all are silent, and its own counts once it answers', async () => {
    net.answers.set('old', here);
    net.answers.set('new', here);
    const [old, other] = net.daemon('old', 'new');
    await look(old);
    await look(other);
    net.answers.clear();
    for (const queue of [old, other, old]) expect(await look(queue)).to.equal('condor-unreachable');
    net.answers.set('new', here);
    expect([await look(other), await look(old), await look(old)]).to.deep.equal([
      'the same',
      'condor-unreachable',
      'the same',
    ]);
    expect(await codeOf(other?.requireNow(signal) ?? Promise.resolve())).to.equal('the same');
  });
});
