import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { JobQueue } from '../../../src/plugins/htcondor/job-queue.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const { signal } = new AbortController();
const [first, second] = [1_700_000_000, 1_700_086_400];

describe('hole 3: the job queue of a schedd', () => {
  let file: string;
  let clock: ManualClock;
  /** What the schedd says; undefined: nothing. */
  let said: { birth: number; started: number } | undefined;
  let asked: number;
  /** Where set, an answer waits for this. */
  let held: (() => Promise<void>) | undefined;
  let log: ReturnType<typeof recordingLog>;
  let queue: JobQueue;
  let restart: () => JobQueue;
  const why = (before?: number) =>
    (before === undefined ? queue.requireNow(signal) : queue.require(before, signal)).then(
      () => undefined,
      (error: unknown) => error as Error & { readonly code: string },
    );
  const code = async (before?: number) => (await why(before))?.code;

  beforeEach(() => {
    file = join(temporaryDirectory(), 'queues', 'S.json');
    clock = new ManualClock();
    held = undefined;
    [said, asked] = [{ birth: first, started: 1 }, 0];
    const jobQueue = async () => {
      asked++;
      await held?.();
      if (said === undefined)
        throw new HTCondorError({ code: 'condor-timeout', message: 'no answer', maybeDone: false });
      return said;
    };
    log = recordingLog();
    restart = () => new JobQueue({ client: { jobQueue }, clock, log, submissionHost: 'S', file });
    queue = restart();
  });

  it('is the one that it had, whenever the schedd or thresher were started', async () => {
    expect(await code()).to.equal(undefined);
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.equal({ jobQueueBirthdate: first });
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
      .to.contain('the job queue of S was made at 2023-11-15T22:13:20.000Z')
      .and.to.contain('not the one of 2023-11-14T22:13:20.000Z')
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
    expect([before, asked]).to.deep.equal([[1, 1], 1]);
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
    const required = async (started: number | undefined) =>
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
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.equal({ jobQueueBirthdate: first });
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
    for (const text of ['', '{}', '{"jobQueueBirthdate":"1"}', '[1]']) {
      writeFileSync(file, text);
      const error = await why();
      expect(error).to.have.property('code', 'htcondor-other-queue');
      expect(error?.message).to.contain(`${file} cannot be read`).and.to.contain('remove the file');
    }
  });
});
