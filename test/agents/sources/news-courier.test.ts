import { expect } from 'chai';
import { NewsCourier } from '../../../src/agents/sources/news-courier.ts';
import { messageOf } from '../../../src/worker/errors.ts';
import type { WorkerNews } from '../../../src/worker/news.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { workerOf } from '../../support/samples.ts';

describe('news of a source', () => {
  let parts: AgentParts;
  let courier: NewsCourier;
  let told: WorkerNews[][];
  let duringTold: (signal: AbortSignal) => Promise<void>;
  const { signal } = new AbortController();

  beforeEach(async () => {
    parts = await AgentParts.open();
    parts.store.news.listen(new Set(['toy']));
    told = [];
    duringTold = async () => undefined;
    courier = courierOf();
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  function courierOf(changes: Partial<AgentParts['context']> = {}): NewsCourier {
    const source = {
      told: async (news: readonly WorkerNews[], end: AbortSignal) => {
        await duringTold(end);
        told.push([...news]);
      },
    };
    return new NewsCourier('toy', source, { ...parts.context, ...changes });
  }
  const named = (id: number) => workerOf(id, { origin: { kind: 'toy', uid: 'job', index: id } });
  const intend = (...ids: number[]) => parts.ledger.intend(ids.map(named));
  const change = (workerId: number, to: 'submitted' | 'running' | 'failed') =>
    parts.ledger.change([{ workerId, to, source: 'test' }]);
  const lines = () =>
    told.flat().map(({ what, origin, worker }) => `${what} ${origin.index} ${worker.status}`);
  const backlog = async () => (await parts.store.news.backlog())[0]?.count ?? 0;

  it('come in order, and are gone once it took them', async () => {
    await intend(1, 2);
    await change(1, 'submitted');
    await change(1, 'running');
    await courier.pass(signal);
    expect(lines()).to.deep.equal([
      'added 1 pending',
      'added 2 pending',
      'changed 1 submitted',
      'changed 1 running',
    ]);
    expect(await backlog()).to.equal(0);
    await courier.pass(signal);
    expect(told).to.have.length(1);
  });

  it('come again after it refused them, in the same order and before all later ones', async () => {
    await intend(1);
    duringTold = async () => {
      throw new Error('its server is down');
    };
    expect(await courier.pass(signal).catch(messageOf)).to.equal('its server is down');
    expect(await backlog()).to.equal(1);
    await change(1, 'submitted');
    duringTold = async () => undefined;
    await courier.pass(signal);
    expect(lines()).to.deep.equal(['added 1 pending', 'changed 1 submitted']);
  });

  it('come again after it took too long', async () => {
    await intend(1);
    duringTold = () => new Promise(() => undefined);
    const pass = courier.pass(signal).catch(messageOf);
    while (!parts.clock.sleeping.includes(60_000)) await parts.clock.settle();
    await parts.clock.advance(61_000);
    expect(await pass).to.contain('news of source toy did not come back within 60 s');
    expect(await backlog()).to.equal(1);
  });

  it('come again after a crash between their commit and their delivery, and between delivery and their end', async () => {
    await intend(1);
    for (const at of ['news:before-told', 'news:before-taken'] as const) {
      const step = (now: string) => {
        if (now === at) throw new Error('SIGKILL');
      };
      await courierOf({ step })
        .pass(signal)
        .catch(() => undefined);
    }
    await courierOf().pass(signal);
    expect(lines()).to.deep.equal(['added 1 pending', 'added 1 pending']);
    expect(await backlog()).to.equal(0);
  });

  it('come at most a thousand at once', async () => {
    await intend(...Array.from({ length: 2500 }, (_, index) => index + 1));
    await courier.pass(signal);
    expect(told.map(({ length }) => length)).to.deep.equal([1000, 1000, 500]);
    expect(told.flat().map(({ origin }) => origin.index)).to.deep.equal(
      Array.from({ length: 2500 }, (_, index) => index + 1),
    );
  });

  it('come fewer at once to a source that is too slow for them, until it takes them', async () => {
    await intend(...Array.from({ length: 1000 }, (_, index) => index + 1));
    const tried: number[] = [];
    const source = {
      told: async (news: readonly WorkerNews[]) => {
        tried.push(news.length);
        if (tried.length < 4) throw new Error('too slow');
      },
    };
    courier = new NewsCourier('toy', source, parts.context);
    for (let pass = 0; pass < 3; pass++) await courier.pass(signal).catch(messageOf);
    await courier.pass(signal);
    expect(tried).to.deep.equal([1000, 500, 250, 125, 250, 500, 125]);
    expect(await backlog()).to.equal(0);
  });

  it('stop coming once the daemon stops', async () => {
    const stop = new AbortController();
    await intend(...Array.from({ length: 1500 }, (_, index) => index + 1));
    duringTold = async () => {
      stop.abort();
    };
    await courier.pass(stop.signal);
    expect(told).to.have.length(1);
    expect(await backlog()).to.equal(500);
  });

  it('tell of an origin that it asked for again, after all earlier news of this worker', async () => {
    await intend(1);
    await change(1, 'submitted');
    courier.askedAgain([{ uid: 'job', index: 1 }]);
    await courier.pass(signal);
    expect(lines(), 'the news tell it already').to.deep.equal(['added 1 pending', 'changed 1 submitted']);
    courier.askedAgain([{ uid: 'job', index: 1 }]);
    await courier.pass(signal);
    expect(lines().at(-1)).to.equal('known 1 submitted');
    await courier.pass(signal);
    expect(told).to.have.length(2);
  });

  it('tell of an origin that was withdrawn', async () => {
    await parts.ledger.endOrigins('toy', [{ uid: 'job', index: 7 }], 'not needed');
    await courier.pass(signal);
    courier.askedAgain([{ uid: 'job', index: 7 }]);
    await courier.pass(signal);
    expect(lines()).to.deep.equal(['changed 7 withdrawn', 'known 7 withdrawn']);
  });

  it('tell again of an origin that it asked for, when it refused to hear of it', async () => {
    await intend(1);
    await courier.pass(signal);
    courier.askedAgain([{ uid: 'job', index: 1 }]);
    duringTold = async () => {
      throw new Error('no');
    };
    await courier.pass(signal).catch(() => undefined);
    duringTold = async () => undefined;
    await courier.pass(signal);
    expect(lines()).to.deep.equal(['added 1 pending', 'known 1 pending']);
  });
});
