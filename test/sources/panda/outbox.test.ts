import { expect } from 'chai';
import { NewsCourier } from '../../../src/agents/sources/news-courier.ts';
import type { NewsStore } from '../../../src/store/news.ts';
import { Reporter } from '../../../src/sources/panda/reporter.ts';
import type { FinalStatus } from '../../../src/worker/status.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { PandaTable } from '../../support/panda-table.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';

describe('the outbox of the PanDA link', () => {
  let parts: AgentParts;
  let table: PandaTable;
  const { signal } = new AbortController();

  beforeEach(async () => {
    parts = await AgentParts.open();
    parts.store.news.listen(new Set(['panda']));
    table = new PandaTable();
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  /** A link as after a start: it remembers nothing. */
  function startedLink(news: Partial<NewsStore> = {}): NewsCourier {
    const { store, clock } = parts;
    const reporter = new Reporter({
      api: table,
      probe: () => table.probe(),
      note: () => undefined,
      clock,
      log: recordingLog(),
      batch: 100,
      repeatAfter: 1_800_000,
      host: 'h',
    });
    const source = { told: reporter.report.bind(reporter) };
    const next = store.news.next.bind(store.news);
    const taken = store.news.taken.bind(store.news);
    const context = { ...parts.context, store: { news: { next, taken, ...news }, origins: store.origins } };
    return new NewsCourier('panda', source, context);
  }

  const idsTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
  const finalOf = (id: number): FinalStatus => (id % 3 === 0 ? 'failed' : 'finished');
  const waiting = async () => (await parts.store.news.backlog())[0]?.count ?? 0;

  /** Workers whose whole lives nothing was told of. */
  async function untoldWorkers(count: number): Promise<void> {
    const { store } = parts;
    for (let first = 0; first < count; first += 1000) {
      const ids = idsTo(Math.min(1000, count - first)).map((id) => first + id);
      const origin = (index: number) => ({ kind: 'panda', uid: 'SITE#1', index });
      await store.workers.insert(
        ids.map((id) => workerOf(id, { origin: origin(id) })),
        'pending',
        1,
        'submitter',
      );
      const common = { at: 2, source: 'monitor' };
      await store.workers.apply(
        ids.map((workerId) => ({ ...common, workerId, from: 'pending' as const, to: 'running' as const })),
      );
      await store.workers.apply(
        ids.map((workerId) => ({
          ...common,
          workerId,
          from: 'running' as const,
          to: finalOf(workerId),
          error: { code: 'exit-status', message: `worker ${workerId} ended — größer als 0` },
        })),
      );
    }
  }

  /** @returns how many passes failed before one took everything */
  async function passes(link: () => NewsCourier): Promise<number> {
    for (let failed = 0; failed < 500; failed++) {
      try {
        await link().pass(signal);
        return failed;
      } catch {
        // The loop of the source comes again.
      }
    }
    throw new Error('the news were never taken');
  }

  it('brings 20,000 workers, whose ends came while the server was down, through every kind of failure', async () => {
    await untoldWorkers(20_000);
    expect(await waiting()).to.equal(60_000);
    const send = table.updateWorkers.bind(table);
    const faults = ['unreachable', 'down', 'lost-answer'] as const;
    let calls = 0;
    table.updateWorkers = async (workers) => {
      calls++;
      // Every 40th call meets the next kind of failure.
      const fault = calls % 40 === 0 ? faults[(calls / 40) % faults.length] : undefined;
      if (fault !== undefined) table.next.push(fault);
      return send(workers);
    };
    const link = startedLink();
    expect(await passes(() => link)).to.be.above(3);
    expect(await waiting()).to.equal(0);
    expect(table.rows.size).to.equal(20_000);
    for (const id of idsTo(20_000)) {
      expect(table.rows.get(id)?.status, String(id)).to.equal(finalOf(id));
      expect(table.history.get(id)?.at(-1), String(id)).to.equal(finalOf(id));
    }
    expect(calls).to.be.below(1.2 * 400);
    expect(Math.max(...table.calls.map(({ length }) => length))).to.equal(100);
  }).timeout(120_000);

  it('loses nothing when the daemon dies at any moment', async () => {
    await untoldWorkers(1500);
    const send = table.updateWorkers.bind(table);
    let calls = 0;
    table.updateWorkers = async (workers) => {
      const outcome = await send(workers);
      // Every third call ends with the daemon, and its answer reaches no process.
      if (++calls % 3 === 0) throw new Error('SIGKILL');
      return outcome;
    };
    // Progress within a batch is forgotten with the process: the calls of a told batch all have to succeed in one life.
    let lives = 0;
    const survive = () => {
      if (++lives > 20) table.updateWorkers = send;
      return startedLink();
    };
    expect(await passes(survive)).to.be.above(10);
    for (const id of idsTo(1500)) expect(table.rows.get(id)?.status).to.equal(finalOf(id));
  });

  it('tells again what it could not strike off on a full disk', async () => {
    await untoldWorkers(10);
    let full = 2;
    const taken: NewsStore['taken'] = async (kind, upTo) => {
      if (full-- > 0) throw new Error('database or disk is full');
      await parts.store.news.taken(kind, upTo);
    };
    const link = startedLink({ taken });
    expect(await passes(() => link)).to.equal(2);
    expect(await waiting()).to.equal(0);
    for (const id of idsTo(10)) expect(table.history.get(id)).to.deep.equal([finalOf(id)]);
  });

  it('goes on beside a worker that the server refuses for ever', async () => {
    await untoldWorkers(2500);
    table.refuses = ({ workerID }) => workerID === 1001;
    const link = startedLink();
    expect(await passes(() => link)).to.equal(0);
    expect(table.rows.size).to.equal(2499);
    expect(await waiting()).to.equal(0);
  });
});
