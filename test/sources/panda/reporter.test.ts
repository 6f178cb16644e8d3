import { join } from 'node:path';
import { expect } from 'chai';
import { RefusedReports } from '../../../src/sources/panda/refused-reports.ts';
import type { Row } from '../../../src/sources/panda/report-sender.ts';
import { Reporter, type ReporterParts } from '../../../src/sources/panda/reporter.ts';
import type { WorkerNews } from '../../../src/worker/news.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { PandaTable, workerNews } from '../../support/panda-table.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';

const signal = new AbortController().signal;
const minute = 60_000;

describe('reports to the PanDA server', () => {
  let table: PandaTable;
  let clock: ManualClock;
  let warnings: { readonly message: string; readonly facts: unknown }[];
  let reporter: Reporter;

  const make = (parts: Partial<ReporterParts> = {}) => {
    const nothing = () => undefined;
    const warn = (message: string, facts?: unknown) => {
      warnings.push({ message, facts });
    };
    return new Reporter({
      api: table,
      probe: () => table.probe(),
      note: nothing,
      clock,
      log: { debug: nothing, info: nothing, warn, error: warn },
      batch: 100,
      repeatAfter: 30 * minute,
      host: 'factory.example.org',
      ...parts,
    });
  };
  const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => undefined,
      (error: unknown) => (error as { code?: unknown }).code,
    );
  const statuses = () => Object.fromEntries([...table.rows].map(([id, { status }]) => [id, status]));
  const many = (count: number, facts = {}) =>
    Array.from({ length: count }, (_, at) => workerNews(at + 1, at + 1, facts));

  beforeEach(() => {
    table = new PandaTable();
    clock = new ManualClock();
    warnings = [];
    reporter = make();
  });

  describe('of changes', () => {
    it('come in batches, each worker once with the last that is known of it', async () => {
      reporter = make({ batch: 3 });
      const news = [
        ...many(4, { status: 'submitted' }),
        workerNews(2, 5, { status: 'running' }),
        workerNews(2, 6, { status: 'finished' }),
      ];
      await reporter.report(news, signal);
      expect(table.calls).to.deep.equal([[1, 2, 3], [4]]);
      expect(statuses()).to.deep.equal({ 1: 'submitted', 2: 'finished', 3: 'submitted', 4: 'submitted' });
    });

    it('say nothing of intents, of swept traces, of answers, and of origins without a worker', async () => {
      await reporter.report(
        [
          workerNews(1, 1, { status: 'pending' }, 'added'),
          workerNews(2, 2, { status: 'finished' }, 'swept'),
          workerNews(3, 0, { status: 'running' }, 'known'),
          workerNews(4, 3, { status: 'withdrawn', workerId: null }),
        ],
        signal,
      );
      expect(table.calls).to.deep.equal([]);
    });

    it('are not told by half: the server that is away gets the same again, with the code of the failure', async () => {
      table.next.push('unreachable');
      expect(await codeOf(reporter.report(many(2), signal))).to.equal('panda-unreachable');
      await reporter.report(many(2), signal);
      expect(statuses()).to.deep.equal({ 1: 'running', 2: 'running' });
      expect(reporter.facts).to.deep.include({ taken: 2, lastTaken: clock.now() });
    });

    it('go on behind the batches that were taken before the failure', async () => {
      reporter = make({ batch: 2 });
      const send = table.updateWorkers.bind(table);
      table.updateWorkers = async (workers) => {
        if (table.calls.length === 2) table.next.push('unreachable');
        return send(workers);
      };
      expect(await codeOf(reporter.report(many(6), signal))).to.equal('panda-unreachable');
      table.calls.length = 0;
      table.updateWorkers = send;
      await reporter.report(many(6), signal);
      expect(table.calls).to.deep.equal([[5, 6]]);
    });

    it('do not skip a newer change of a worker whose older one was taken before the failure', async () => {
      reporter = make({ batch: 1 });
      table.next.push('unreachable');
      await codeOf(reporter.report(many(1), signal));
      await reporter.report([...many(1), workerNews(1, 9, { status: 'failed' })], signal);
      expect(statuses()).to.deep.equal({ 1: 'failed' });
    });

    it('of a call with a lost answer are sent again, and change nothing', async () => {
      table.next.push('lost-answer');
      expect(await codeOf(reporter.report(many(3), signal))).to.equal('panda-no-answer');
      await reporter.report(many(3), signal);
      expect([...table.history.values()]).to.deep.equal([['running'], ['running'], ['running']]);
    });
  });

  describe('that the server refuses', () => {
    it('for the text of one worker reach it without the texts, and those of the others in full', async () => {
      table.refuses = ({ diagMessage }) => diagMessage === 'poison';
      const news = many(100, { status: 'failed', nativeStatus: 'H' });
      news[42] = workerNews(43, 43, { status: 'failed', diagMessage: 'poison', nativeStatus: 'H' });
      await reporter.report(news, signal);
      expect(table.rows.size).to.equal(100);
      expect(table.rows.get(43)).to.deep.include({ status: 'failed' });
      expect(table.rows.get(43)).not.to.have.any.keys('diagMessage', 'nativeStatus');
      expect([...table.rows.values()].filter(({ nativeStatus }) => nativeStatus === 'H')).to.have.length(99);
      expect(reporter.facts.refused).to.deep.equal([]);
    });

    it('whatever they say hold up none of the others, are said once and tried again later', async () => {
      const bad = new Set([1, 50, 51, 100]);
      table.refuses = ({ workerID }) => bad.has(workerID);
      await reporter.report(many(100), signal);
      expect(table.rows.size).to.equal(96);
      expect(reporter.facts.refused).to.have.members([...bad]);
      await reporter.report([workerNews(50, 101, { status: 'finished' })], signal);
      expect(warnings).to.have.length(4);
      expect(warnings[0]?.facts).to.deep.include({ workerId: 1, status: 'running' });
      table.refuses = () => false;
      await clock.advance(31 * minute);
      await reporter.repeat(new Map(), signal);
      expect(table.rows.get(50)).to.deep.include({ status: 'finished' });
      expect(reporter.facts.refused).to.deep.equal([]);
    });

    it('even the first after a start, alone in its batch, does not hold up the next', async () => {
      table.refuses = ({ workerID }) => workerID === 1;
      await reporter.report([workerNews(1, 1)], signal);
      await reporter.report([workerNews(2, 2)], signal);
      expect([...table.rows.keys()]).to.deep.equal([2]);
    });

    it('of an ended worker are kept over a restart, and forgotten once the server takes them', async () => {
      const directory = join(temporaryDirectory(), 'panda');
      table.refuses = ({ workerID }) => workerID === 2;
      reporter = make({ kept: new RefusedReports(inFiles(directory)('panda')) });
      await reporter.report(
        [workerNews(1, 1), workerNews(2, 2, { status: 'failed', errorCode: 'lost' })],
        signal,
      );
      table.refuses = () => false;
      reporter = make({ kept: new RefusedReports(inFiles(directory)('panda')) });
      await reporter.repeat(new Map(), signal);
      expect(statuses()).to.deep.equal({ 1: 'running', 2: 'failed' });
      table.calls.length = 0;
      reporter = make({ kept: new RefusedReports(inFiles(directory)('panda')) });
      await reporter.repeat(new Map(), signal);
      expect(table.calls).to.deep.equal([]);
    });

    it('of an ended worker do not count as told while the disk takes nothing', async () => {
      let isFull = true;
      const written: number[] = [];
      const keep = async (rows: readonly Row[]) => {
        if (isFull) throw new Error('ENOSPC');
        written.push(...rows.map(({ report }) => report.workerID));
      };
      reporter = make({ kept: { load: async () => [], keep } });
      table.refuses = ({ workerID }) => workerID === 2;
      const news = many(3, { status: 'finished' });
      expect(await reporter.report(news, signal).then(() => 'told', String)).to.match(/ENOSPC/);
      isFull = false;
      await reporter.report(news, signal);
      expect(written).to.deep.equal([2]);
    });

    it('for the number of its error reach it without the number', async () => {
      table.refuses = ({ errorCode }) => errorCode !== undefined;
      await reporter.report([workerNews(1, 1, { status: 'failed', errorCode: 'lost' })], signal);
      expect(statuses()).to.deep.equal({ 1: 'failed' });
      expect(reporter.facts.refused).to.deep.equal([]);
    });

    it('by an endless call for one worker hold up none of the others', async () => {
      await reporter.report([workerNews(1000, 1)], signal);
      table.hangs = ({ workerID }) => workerID === 43;
      const news = many(100, { status: 'finished' });
      expect(await codeOf(reporter.report(news, signal))).to.equal('panda-no-answer');
      expect(await codeOf(reporter.report(news, signal))).to.equal(undefined);
      expect(table.rows.size).to.equal(100);
      expect(reporter.facts.refused).to.deep.equal([43]);
      table.hangs = () => false;
      await clock.advance(31 * minute);
      await reporter.repeat(new Map(), signal);
      expect(statuses()).to.deep.include({ 43: 'finished' });
    });

    it('by an endless call for the worker that it took last hold up none of the others', async () => {
      await reporter.report([workerNews(1, 1)], signal);
      table.hangs = ({ workerID }) => workerID === 1;
      const news = [workerNews(1, 2, { status: 'finished' }), workerNews(2, 3), workerNews(3, 4)];
      expect(await codeOf(reporter.report(news, signal))).to.equal('panda-no-answer');
      expect(await codeOf(reporter.report(news, signal))).to.equal(undefined);
      expect([...table.rows.keys()]).to.have.members([1, 2, 3]);
      expect(reporter.facts.refused).to.deep.equal([1]);
    });

    it('by endless calls for all workers are never taken for refused', async () => {
      await reporter.report([workerNews(1000, 1)], signal);
      table.hangs = () => true;
      for (let attempt = 0; attempt < 5; attempt++)
        expect(await codeOf(reporter.report(many(4), signal))).to.equal('panda-no-answer');
      expect(reporter.facts.refused).to.deep.equal([]);
    });

    it('because its database is down are not taken for refused, and cost two calls', async () => {
      await reporter.report([workerNews(1000, 1)], signal);
      table.calls.length = 0;
      table.always = 'down';
      expect(await codeOf(reporter.report(many(100), signal))).to.equal('panda-database');
      expect(table.calls).to.have.length(2);
      expect(reporter.facts.refused).to.deep.equal([]);
      table.always = undefined;
      await reporter.report(many(100), signal);
      expect(table.rows.size).to.equal(101);
    });

    it('while its database comes and goes are never counted as told', async () => {
      let turn = 0;
      const send = table.updateWorkers.bind(table);
      table.updateWorkers = async (workers) => {
        // Two of three calls fail.
        if (turn++ % 3 !== 0) table.next.push('down');
        return send(workers);
      };
      let told = false;
      for (let attempt = 0; attempt < 200 && !told; attempt++)
        told = (await codeOf(reporter.report(many(5), signal))) === undefined;
      expect(told).to.equal(true);
      const refused = new Set(reporter.facts.refused);
      expect(many(5).filter(({ worker: { workerId } }) => !refused.has(workerId ?? 0))).to.have.length(
        table.rows.size,
      );
      table.updateWorkers = send;
      await clock.advance(31 * minute);
      await reporter.repeat(new Map(), signal);
      expect(table.rows.size).to.equal(5);
    });
  });

  describe('of unchanged workers', () => {
    const living = (...news: readonly WorkerNews[]) =>
      new Map(news.map((one) => [one.worker.workerId ?? 0, one]));

    it('come each half hour, and not before', async () => {
      const now = living(...many(3));
      await reporter.report(many(3), signal);
      table.calls.length = 0;
      await clock.advance(29 * minute);
      await reporter.repeat(now, signal);
      expect(table.calls).to.deep.equal([]);
      await clock.advance(2 * minute);
      await reporter.repeat(now, signal);
      await reporter.repeat(now, signal);
      expect(table.calls).to.deep.equal([[1, 2, 3]]);
    });

    it('are spread after a start, when nothing is known of their last reports', async () => {
      reporter = make({ batch: 1000 });
      const now = living(...many(1000));
      const perCall: number[] = [];
      for (let passed = 0; passed <= 32; passed++) {
        await reporter.repeat(now, signal);
        perCall.push(table.calls.flat().length);
        table.calls.length = 0;
        await clock.advance(minute);
      }
      expect(perCall.reduce((sum, count) => sum + count, 0)).to.be.within(1000, 1100);
      expect(Math.max(...perCall)).to.be.at.most(40);
    });

    it('leave out a worker whose change is being reported', async () => {
      await reporter.report(many(2), signal);
      await clock.advance(31 * minute);
      const now = living(...many(2));
      const ended = workerNews(1, 5, { status: 'finished' });
      const reported = reporter.report([ended], signal);
      now.delete(1);
      await Promise.all([reported, reporter.repeat(now, signal)]);
      expect(table.calls.slice(1)).to.deep.equal([[1], [2]]);
      expect(table.history.get(1)).to.deep.equal(['running', 'finished']);
    });

    it('do not throw when the server is away, and come with the next call', async () => {
      await reporter.report(many(1), signal);
      await clock.advance(31 * minute);
      table.next.push('unreachable');
      await reporter.repeat(living(...many(1)), signal);
      expect(table.calls).to.have.length(2);
      await reporter.repeat(living(...many(1)), signal);
      expect(table.calls).to.have.length(3);
    });
  });

  it('confirm a final status once more where a call with an older one may still be under way there', async () => {
    table.next.push('lost-answer');
    await codeOf(reporter.report(many(1), signal));
    await reporter.report([workerNews(1, 2, { status: 'finished' })], signal);
    // The server carries the first call out after the second.
    table.rows.set(1, { workerID: 1, status: 'running' });
    await clock.advance(6 * minute);
    await reporter.repeat(new Map(), signal);
    expect(statuses()).to.deep.equal({ 1: 'finished' });
    table.calls.length = 0;
    await clock.advance(60 * minute);
    await reporter.repeat(new Map(), signal);
    expect(table.calls).to.deep.equal([]);
  });

  it('go one after the other, whatever asks for them', async () => {
    let underWay = 0;
    let most = 0;
    const send = table.updateWorkers.bind(table);
    table.updateWorkers = async (workers) => {
      most = Math.max(most, ++underWay);
      await Promise.resolve();
      underWay--;
      return send(workers);
    };
    await Promise.all(many(5).map((one) => reporter.report([one], signal)));
    expect(most).to.equal(1);
    expect(table.calls).to.deep.equal([[1], [2], [3], [4], [5]]);
  });
});
