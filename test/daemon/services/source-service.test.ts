import { expect } from 'chai';
import { Settings } from '../../../src/config/settings/settings-schema.ts';
import { LoopSet } from '../../../src/daemon/loop-set.ts';
import { SourceService } from '../../../src/daemon/services/source-service.ts';
import type { RunningSource } from '../../../src/daemon/source-set.ts';
import type { Desk, Source, SourceDefinition, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { check } from '../../../src/util/schema.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { workerOf } from '../../support/samples.ts';

const wanted = async () => ({ requests: [], groups: [], reasons: [] });
const untilAborted = (_: Desk, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

/** The sources that run, as a test sets them. */
class Running {
  all: RunningSource[] = [];
  #listener: (now: readonly RunningSource[]) => void = () => undefined;

  onChange(listener: (now: readonly RunningSource[]) => void): void {
    this.#listener = listener;
  }

  set(sources: Readonly<Record<string, Source>>): void {
    const definition = {} as SourceDefinition;
    this.all = Object.entries(sources).map(([kind, source]) => ({ kind, source, definition }));
    this.#listener(this.all);
  }
}

describe('sources at work', () => {
  let parts: AgentParts;
  let running: Running;
  let loops: LoopSet;
  let service: SourceService;
  let heard: string[];
  let desks: string[];
  /** The sources that other daemons have. */
  let elsewhere: Set<string>;

  beforeEach(async () => {
    parts = await AgentParts.open();
    running = new Running();
    heard = [];
    desks = [];
    elsewhere = new Set();
    const { clock, log, events } = parts;
    loops = new LoopSet({ clock, random: () => 0.5, log, events });
    const settings = check(Settings, { sweeper: { keepNews: 24, mostNews: 1000 } });
    if (!settings.ok) throw new Error(JSON.stringify(settings.problems));
    service = new SourceService({
      settings: settings.value,
      context: parts.context,
      loops,
      sources: running,
      sharing: { queues: new Set(['Q']), holdsSource: (kind) => !elsewhere.has(kind) },
      deskFor: (kind) => {
        desks.push(kind);
        return { queues: () => [kind] } as unknown as Desk;
      },
      changed: () => undefined,
    });
  });

  afterEach(async () => {
    parts.giveUp.abort();
    const stopped = service.stop(0);
    await parts.clock.advance(1);
    await stopped;
    await loops.stop();
    await parts[Symbol.asyncDispose]();
  });

  const hears = (name = 'toy'): Source => ({
    wanted,
    told: async (news: readonly WorkerNews[]) => {
      heard.push(...news.map(({ what, origin }) => `${name} ${what} ${origin.index}`));
    },
  });
  const intend = (id: number, kind = 'toy') =>
    parts.ledger.intend([workerOf(id, { origin: { kind, uid: 'job', index: id } })]);
  async function begin(sources: Readonly<Record<string, Source>>): Promise<void> {
    running.set(sources);
    await service.begin();
    loops.start();
    await settled();
  }
  /** Lets loops read what there is. */
  async function settled(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await parts.clock.settle();
  }

  it('hear of their workers as soon as these are written, and ask the database for nothing in between', async () => {
    let asked = 0;
    const { news } = parts.store;
    const next = news.next.bind(news);
    news.next = (kind, limit) => {
      asked++;
      return next(kind, limit);
    };
    await begin({ toy: hears(), other: hears('other') });
    expect(asked, 'once each after the start').to.equal(2);
    await parts.clock.advance(3_600_000);
    expect(asked).to.equal(2);
    await intend(1);
    await settled();
    expect(heard).to.deep.equal(['toy added 1']);
  });

  it('hear what was left for them before the start', async () => {
    parts.store.news.listen(new Set(['toy']));
    await intend(1);
    await begin({ toy: hears() });
    expect(heard).to.deep.equal(['toy added 1']);
  });

  it('hear of an origin that they ask for again', async () => {
    await begin({ toy: hears() });
    await intend(1);
    await settled();
    parts.events.emit('originsKnown', { kind: 'toy', origins: [{ uid: 'job', index: 1 }] });
    // A second wake in a row waits a moment.
    await parts.clock.advance(20);
    await settled();
    expect(heard).to.deep.equal(['toy added 1', 'toy known 1']);
  });

  it('that refuse their news get them again after a growing pause, and are shown as failing meanwhile', async () => {
    let fails = true;
    const good = hears();
    const told_ = async (news: readonly WorkerNews[], signal: AbortSignal) => {
      if (fails) throw new Error('its server is down');
      await good.told?.(news, signal);
    };
    await begin({ toy: { wanted, told: told_ } });
    await intend(1);
    await settled();
    expect(parts.clock.sleeping).to.include(1000);
    expect(service.health()).to.have.nested.property('[0].trouble.message', 'its server is down');
    fails = false;
    await parts.clock.advance(1000);
    await settled();
    expect(heard).to.deep.equal(['toy added 1']);
    expect(service.health()).to.have.nested.property('[0].trouble', undefined);
  });

  it('live with a desk of their own', async () => {
    const queues: (readonly string[])[] = [];
    const run = (desk: Desk, signal: AbortSignal) => {
      queues.push(desk.queues());
      return untilAborted(desk, signal);
    };
    await begin({ toy: { wanted, run }, other: { wanted, run } });
    expect(queues).to.deep.equal([['toy'], ['other']]);
    expect(service.health().map(({ name }) => name)).to.deep.equal(['source toy', 'source other']);
  });

  it('that neither hear nor live are no service', async () => {
    await begin({ fill: { wanted } });
    expect([service.health(), desks, loops.health]).to.deep.equal([[], [], []]);
  });

  it('that could not be made say why', async () => {
    const problem = { code: 'source-not-made', message: 'no key' };
    running.all = [{ kind: 'toy', source: { wanted }, definition: {} as SourceDefinition, problem }];
    await service.begin();
    expect(service.health()).to.have.nested.property('[0].trouble.message', 'no key');
  });

  it('that were made anew take the place of the former after its end, and hear the rest of the news', async () => {
    const lives: string[] = [];
    const living = (name: string): Source => ({
      ...hears(name),
      run: async (desk, signal) => {
        lives.push(`${name} begins`);
        await untilAborted(desk, signal);
        lives.push(`${name} ends`);
      },
    });
    await begin({ toy: living('old') });
    running.set({ toy: living('new') });
    await settled();
    expect(lives).to.deep.equal(['old begins', 'old ends', 'new begins']);
    await intend(1);
    await settled();
    expect(heard).to.deep.equal(['new added 1']);
    expect(loops.health.map(({ name }) => name)).to.deep.equal(['news toy']);
  });

  it('that went leave nothing behind, and their workers write no news any more', async () => {
    await begin({ toy: hears() });
    running.set({});
    await settled();
    await intend(1);
    expect(await parts.store.news.backlog()).to.deep.equal([]);
    expect([service.health(), loops.health]).to.deep.equal([[], []]);
  });

  it('that hang at their end cost five seconds, and their successors live all the same', async () => {
    const begun: string[] = [];
    const hanging: Source = { wanted, run: () => new Promise(() => undefined) };
    await begin({ toy: hanging });
    running.set({
      toy: {
        wanted,
        run: (desk, signal) => {
          begun.push('new');
          return untilAborted(desk, signal);
        },
      },
    });
    await settled();
    expect(begun).to.deep.equal([]);
    await parts.clock.advance(5000);
    await settled();
    expect(begun).to.deep.equal(['new']);
    expect(parts.log.lines.map(({ message }) => message)).to.include(
      'a source does not end; it is left alone',
    );
  });

  it('that are to live elsewhere end here, and one that does not end is named until it has ended', async () => {
    const lives: string[] = [];
    let end = () => {};
    const hanging = () =>
      new Promise<void>((resolve) => {
        end = resolve;
      });
    const well = async (desk: Desk, signal: AbortSignal) => {
      lives.push('begun');
      await untilAborted(desk, signal);
      lives.push('ended');
    };
    await begin({ slow: { wanted, run: hanging }, toy: { wanted, run: well } });
    await settled();
    elsewhere = new Set(['slow', 'toy']);
    const changed = service.sharesChanged();
    await parts.clock.advance(5000);
    expect([...(await changed)]).to.deep.equal(['slow']);
    expect(lives).to.deep.equal(['begun', 'ended']);
    end();
    await settled();
    expect([...(await service.sharesChanged())]).to.deep.equal([]);
  });

  it('that are still told of news here are not over', async () => {
    let take = () => {};
    const told = () =>
      new Promise<void>((resolve) => {
        take = resolve;
      });
    await begin({ toy: { wanted, told, run: untilAborted } });
    await intend(1);
    await settled();
    elsewhere = new Set(['toy']);
    const changed = service.sharesChanged();
    await settled();
    await parts.clock.advance(5000);
    expect([...(await changed)]).to.deep.equal(['toy']);
    take();
    await settled();
    expect([...(await service.sharesChanged())]).to.deep.equal([]);
  });

  it('that hang at the stop of the daemon cost five seconds, and no more', async () => {
    await begin({ toy: { wanted, run: () => new Promise(() => undefined) } });
    let over = false;
    const stopped = service.stop(parts.clock.monotonic() + 20_000).then(() => (over = true));
    await parts.clock.advance(4999);
    expect(over).to.equal(false);
    await parts.clock.advance(1);
    await stopped;
  });

  it('that throw in their lives are shown as failing, and others go on', async () => {
    const bad = () => Promise.reject(new Error('no route'));
    await begin({ bad: { wanted, run: bad }, toy: { ...hears(), run: untilAborted } });
    await intend(1);
    await settled();
    expect(heard).to.deep.equal(['toy added 1']);
    expect(service.health().map(({ name, trouble }) => [name, trouble?.code])).to.deep.equal([
      ['source bad', 'source-failed'],
      ['source toy', undefined],
    ]);
  });

  it('that do not take their news lose none because the clock jumped ahead for a moment', async () => {
    await begin({ toy: { wanted, told: () => Promise.reject(new Error('no')) } });
    await intend(1);
    parts.clock.ahead = 8 * 24 * 3_600_000;
    await service.dropOldNews();
    expect(await parts.store.news.backlog()).to.have.length(1);
    expect(service.health()).to.have.nested.property('[0].note', undefined);
  });

  it('that do not take their news lose the oldest after a while, which log and health say', async () => {
    const deaf: Source = { wanted, told: () => Promise.reject(new Error('no')) };
    await begin({ toy: deaf });
    await intend(1);
    await service.dropOldNews();
    expect(service.health()).to.have.nested.property('[0].note', undefined);
    await parts.clock.advance(24 * 3_600_000 + 1);
    await service.dropOldNews();
    expect(await parts.store.news.backlog()).to.deep.equal([]);
    expect(service.health()).to.have.nested.property('[0].note.code', 'news-dropped');
    const lost = parts.log.lines.find(({ message }) => message.startsWith('news that a source'));
    expect(lost?.facts).to.deep.equal({ source: 'toy', count: 1 });
  });
});
