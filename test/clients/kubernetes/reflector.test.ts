import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import {
  isKubernetesError,
  KubernetesError,
  type KubernetesCode,
} from '../../../src/clients/kubernetes/errors.ts';
import { collectionPath, jobs } from '../../../src/clients/kubernetes/paths.ts';
import { afterFailure, Reflector, type ReflectorState } from '../../../src/clients/kubernetes/reflector.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { kubeconfig, makeClient, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import {
  cut,
  json,
  lines,
  type Respond,
  type ScriptedServer,
  startScriptedServer,
  status,
} from '../../support/scripted-server.ts';
import { until } from '../../support/until.ts';

const path = collectionPath(jobs, 'grid');
const object = (name: string, version: string) => ({ metadata: { name, resourceVersion: version } });
const event = (type: string, name: string, version: string) => ({ type, object: object(name, version) });
const bookmark = (version: string) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: version } },
});
const list = (version: string, ...names: string[]): Respond =>
  json(200, {
    kind: 'JobList',
    metadata: { resourceVersion: version },
    items: names.map((name) => object(name, '1')),
  });
const end = (response: ServerResponse): void => {
  response.end();
};
const gone = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
const forbidden = (verb: string) =>
  status(
    403,
    'Forbidden',
    `jobs.batch is forbidden: User "t" cannot ${verb} resource "jobs" in API group "batch" in the namespace "grid"`,
  );

describe('a reflector', () => {
  let server: ScriptedServer;
  let client: KubernetesClient;
  let clock: ManualClock;
  let told: string[];
  let changes: ReflectorState[];
  let reflector: Reflector<string>;
  const stop = new Set<() => Promise<void>>();

  const follow = (options: { record?: (name: string) => string; random?: () => number } = {}) => {
    const { record = (name: string): string => name, random = (): number => 0.5 } = options;
    told = [];
    changes = [];
    reflector = new Reflector<string>({
      client,
      path,
      labelSelector: 'factory=f',
      record: ({ metadata }) => record(metadata?.name ?? ''),
      handlers: {
        replace: (all) => told.push(`=${all.join(',')}`),
        upsert: (name) => told.push(`+${name}`),
        remove: (name) => told.push(`-${name}`),
        changed: (state) => changes.push(state),
      },
      clock,
      random,
    });
    const abort = new AbortController();
    const running = reflector.run(abort.signal);
    stop.add(async () => {
      abort.abort();
      await running;
    });
  };
  const seen = (...wanted: string[]) =>
    until(`it told ${wanted.join(' ')}`, () => told.join(' ') === wanted.join(' '));
  const asked = (count: number) => until(`${count} requests`, () => server.requests.length >= count);
  /** The `resourceVersion` of each request; lists have none. */
  const versions = () =>
    server.requests.map(({ url }) => new URL(url, server.url).searchParams.get('resourceVersion'));

  beforeEach(async () => {
    server = await startScriptedServer();
    clock = new ManualClock();
    client = makeClient(writeKubeconfig(kubeconfig({ server: server.url })), { clock, timeout: 25_000 });
    await clock.advance(1000);
  });

  afterEach(async () => {
    await Promise.all([...stop].map((one) => one()));
    stop.clear();
    await client.close();
    await server.stop();
  });

  it('hole 8: takes a flood of events of nothing for trouble, and pauses', async () => {
    const nothing = lines(Array(1000).fill({ type: 'ADDED', object: {} }), end);
    server.next(list('5'), nothing);
    follow();
    await until('it told the trouble', () => reflector.state.trouble !== undefined);
    expect(told).to.deep.equal(['=']);
    expect(reflector.state.trouble).to.have.property('code', 'kubernetes-no-api');
    expect(reflector.state.synced).to.equal(false);
    expect(reflector.version).to.equal('5');
    expect(server.requests).to.have.length(2);
  });

  it('tells all there is, and then each change', async () => {
    server.next(
      list('5', 'a', 'b'),
      lines([event('ADDED', 'c', '6'), event('MODIFIED', 'a', '7'), event('DELETED', 'b', '8')]),
    );
    follow();
    await seen('=a,b', '+c', '+a', '-b');
    expect(versions()).to.deep.equal([null, '5']);
    for (const { url } of server.requests) expect(url).to.contain('labelSelector=factory%3Df');
    expect(reflector.state).to.deep.equal({ synced: true, aliveAt: clock.monotonic() });
  });

  it('is not synced before the whole list came', async () => {
    let answer: () => void = () => undefined;
    server.next((response, request) => {
      answer = () => {
        list('5')(response, request);
      };
    }, lines([]));
    follow();
    await asked(1);
    expect(reflector.state).to.deep.equal({ synced: false, aliveAt: -Infinity });
    answer();
    await until('it is synced', () => reflector.state.synced);
    expect(told).to.deep.equal(['=']);
  });

  it('goes on from the last change when the server ends the watch in time', async () => {
    server.next(list('5'), lines([event('ADDED', 'a', '6')], end), lines([bookmark('20')], end), lines([]));
    follow();
    await asked(4);
    expect(versions()).to.deep.equal([null, '5', '6', '20']);
    expect(told).to.deep.equal(['=', '+a']);
    expect(changes).to.have.length(1);
  });

  it('asks for watches of five minutes, and not all for the same', async () => {
    let chance = 0;
    server.next(list('5'), lines([bookmark('6')], end), lines([]));
    follow({ random: () => (chance === 0 ? chance++ : 0.999) });
    await asked(3);
    const ends = server.requests
      .slice(1)
      .map(({ url }) => new URL(url, server.url).searchParams.get('timeoutSeconds'));
    expect(ends).to.deep.equal(['290', '350']);
  });

  it('lists again when its version is gone, told by the answer or by an event', async () => {
    server.next(
      list('5', 'a', 'b'),
      lines([event('ADDED', 'c', '6'), { type: 'ERROR', object: gone }]),
      list('50', 'b', 'd'),
      status(410, 'Expired', 'too old'),
      list('90', 'e'),
      lines([]),
    );
    follow();
    // Each pause begins only once the refusal has come.
    await until('it listed three times', async () => {
      await clock.advance(2000);
      return told.includes('=e');
    });
    await seen('=a,b', '+c', '=b,d', '=e');
    await asked(6);
    expect(versions()).to.deep.equal([null, '5', null, '50', null, '90']);
  });

  it('throws half a line away, and goes on from the last whole one', async () => {
    const half = JSON.stringify(event('DELETED', 'a', '7')).slice(0, 30);
    server.next(
      list('5', 'a'),
      lines([event('ADDED', 'b', '6'), half], cut),
      list('7'),
      lines([event('DELETED', 'a', '7')]),
    );
    follow();
    await clock.pass(1000);
    await seen('=a', '+b', '-a');
    expect(versions()).to.deep.equal([null, '5', null, '6']);
  });

  it('goes on from the last good line after one that is none', async () => {
    server.next(
      list('5'),
      lines([event('ADDED', 'a', '6'), '{"type":"MODIF\n', event('ADDED', 'z', '9')]),
      list('9'),
      lines([]),
    );
    follow();
    await clock.pass(1000);
    await asked(4);
    expect(versions()).to.deep.equal([null, '5', null, '6']);
    expect(told).to.deep.equal(['=', '+a']);
  });

  it('asks less and less often where each list takes long, and each watch says that its version is gone', async () => {
    const gone = lines([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }]);
    const slow: Respond = (response, seen) => {
      const answer = async () => {
        await clock.advance(15_000);
        list('5', 'a')(response, seen);
      };
      answer().catch(() => undefined);
    };
    follow();
    for (const pause of [0, 2000, 4000, 8000]) {
      server.next(slow, gone);
      await until(`it waits for ${pause} ms`, () => clock.sleeping.includes(pause));
      expect(reflector.state.synced).to.equal(false);
      await clock.advance(pause);
    }
  });

  it('finds out by silence that a watch reports nothing, lists, and calls nothing dead where nothing happened', async () => {
    const open: ServerResponse[] = [];
    server.next(list('5'), (response, request) => {
      open.push(response);
      lines([])(response, request);
    });
    follow();
    await until('it is watched', () => open.length === 1 && clock.sleeping.includes(100_000));
    await clock.advance(70_000);
    open[0]!.write(`${JSON.stringify(bookmark('9'))}\n`);
    await until('it saw the bookmark', () => reflector.state.aliveAt === clock.monotonic());
    await clock.advance(99_000);
    expect(reflector.state.synced).to.equal(true);
    expect(clock.monotonic() - reflector.state.aliveAt).to.equal(99_000);
    server.next(list('10', 'old'), lines([event('ADDED', 'a', '11')]));
    await clock.advance(1000);
    await seen('=', '=old', '+a');
    expect(versions()).to.deep.equal([null, '5', null, '10']);
    expect(reflector.state).to.deep.equal({ synced: true, aliveAt: clock.monotonic() });
    expect(changes.map(({ synced }) => synced)).to.deep.equal([true]);
  });

  for (const [what, answers] of Object.entries({
    'has changes that the watch did not report': [
      json(200, { kind: 'JobList', metadata: { resourceVersion: '9' }, items: [object('late', '8')] }),
    ],
    'does not come': [cut],
    'is of an older state': [list('3')],
  }))
    it(`finds out by silence that a watch is dead where the list behind it ${what}`, async () => {
      let open = 0;
      server.next(list('5'), (response, request) => {
        open++;
        lines([])(response, request);
      });
      follow();
      await until('it is watched', () => open === 1 && clock.sleeping.includes(100_000));
      server.next(...answers);
      await clock.advance(100_000);
      await until('it noticed', () => reflector.state.trouble !== undefined);
      const why = what === 'does not come' ? 'closed the connection' : 'has been silent for 100 s';
      expect(reflector.state).to.have.nested.property('trouble.message').that.contains(why);
      server.next(list('9'), lines([event('ADDED', 'a', '10')]));
      await clock.pass(1000);
      await until('it goes on', () => reflector.state.synced);
      await until('it saw the event', () => told.at(-1) === '+a');
      const isListed = what.startsWith('has changes');
      expect(versions().at(-1), 'nothing older than a list is told again').to.equal(isListed ? '9' : '5');
    });

  /** A silent watch, and the list that is asked for behind it. */
  async function silent(): Promise<ServerResponse> {
    const open: ServerResponse[] = [];
    server.next(list('5'), (response, request) => {
      open.push(response);
      lines([])(response, request);
    });
    follow();
    await until('it is watched', () => open.length === 1 && clock.sleeping.includes(100_000));
    const asked = Promise.withResolvers<ServerResponse>();
    server.next(asked.resolve);
    await clock.advance(100_000);
    return asked.promise;
  }

  it('tells of no trouble where it is stopped while it lists behind a silence', async () => {
    await silent();
    for (const end of stop) await end();
    expect(reflector.state).not.to.have.property('trouble');
  });

  it('lists again where another part of the daemon sees an older state while it lists behind a silence', async () => {
    const listing = await silent();
    reflector.listed('3', '5');
    server.next(list('4', 'restored'), lines([event('ADDED', 'a', '6')]));
    list('9', 'before')(listing, server.requests.at(-1)!);
    await until('it noticed', () => reflector.state.trouble !== undefined);
    expect(reflector.state.trouble).to.have.property('code', 'kubernetes-rewound');
    await clock.pass(1000);
    await until('it saw the event', () => told.at(-1) === '+a');
    expect(versions()).to.deep.equal([null, '5', null, null, '4']);
  });

  it('the reflector asks less and less often while the server does not answer, and says so', async () => {
    server.always(cut);
    follow();
    for (const pause of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) await clock.pass(pause);
    expect(reflector.state).to.include({ synced: false, aliveAt: -Infinity });
    expect(reflector.state.trouble).to.have.property('code', 'kubernetes-unreachable');
    await until('it pauses again', () => clock.sleeping.includes(30_000));
    let watched: ServerResponse | undefined;
    server.next(list('5', 'a'), (response, request) => {
      watched = response;
      lines([event('ADDED', 'b', '6')])(response, request);
    });
    await clock.pass(30_000);
    await seen('=a', '+b');
    expect(reflector.state).not.to.have.property('trouble');
    expect(changes.at(-1)).to.include({ synced: true });
    watched?.destroy();
    await clock.pass(1000);
  });

  it('does not ask without a pause when each watch is ended at once', async () => {
    server.always((response, request) => {
      (request.url.includes('watch') ? lines([], end) : list('5'))(response, request);
    });
    follow();
    for (const pause of [1000, 2000, 4000]) await clock.pass(pause);
    await asked(8);
    expect(versions()).to.deep.equal([null, '5', null, '5', null, '5', null, '5']);
    expect(told).to.deep.equal(['=']);
  });

  it('lists again when the server fails again and again at the same version', async () => {
    server.next(list('5', 'a'));
    server.always((response, request) => {
      const error = { kind: 'Status', code: 500, message: 'etcd event received with PrevKv=nil' };
      (request.url.includes('watch') ? lines([{ type: 'ERROR', object: error }]) : list('9', 'b'))(
        response,
        request,
      );
    });
    follow();
    for (const pause of [1000, 2000, 4000, 8000, 16_000]) await clock.pass(pause);
    await seen('=a', '=b');
  });

  it('a reflector that may not list names the missing right, and asks seldom', async () => {
    server.always(forbidden('list'));
    follow();
    for (const pause of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]) await clock.pass(pause);
    await asked(8);
    expect(reflector.state.synced).to.equal(false);
    expect(reflector.state.trouble)
      .to.have.property('message')
      .that.contains('lacks the right to list jobs.batch in namespace "grid"');
    await until('it pauses again', () => clock.sleeping.includes(60_000));
    server.next(list('5'), lines([]));
    await clock.pass(60_000);
    await until('it has the right', () => reflector.state.synced && reflector.state.trouble === undefined);
  });

  it('a reflector that may list but not watch shows all objects now and then, and names the missing right', async () => {
    server.next(list('5', 'a'), forbidden('watch'), list('9', 'b'), forbidden('watch'));
    follow();
    await clock.pass(1000);
    await seen('=a', '=b');
    await until('the next pause is longer', () => clock.sleeping.includes(2000));
    await until('it said so', () => reflector.state.trouble !== undefined && !reflector.state.synced);
    expect(reflector.state.trouble)
      .to.have.property('message')
      .that.contains('lacks the right to watch jobs.batch');
  });

  it('outlives an object that its reader cannot read', async () => {
    server.always((response, request) => {
      (request.url.includes('watch') ? lines([]) : list('5', 'a', 'odd'))(response, request);
    });
    let broken = true;
    follow({
      record: (name) => {
        if (broken && name === 'odd') throw new TypeError('no such field');
        return name;
      },
    });
    await until('it said so', () => reflector.state.trouble instanceof TypeError);
    expect(told).to.deep.equal([]);
    broken = false;
    await clock.pass(60_000);
    await seen('=a,odd');
  });

  const isRewound = () =>
    until('it said so', () =>
      changes.some(({ trouble }) => isKubernetesError(trouble, 'kubernetes-rewound')),
    );

  it('lists again when the server is at an older version after a failure, and before it watches', async () => {
    server.next(list('50', 'a', 'b'), lines([event('ADDED', 'c', '60')], cut), list('20'));
    server.next(list('20', 'a'), lines([]));
    follow();
    await clock.pass(1000);
    await isRewound();
    await clock.pass(1000);
    await seen('=a,b', '+c', '=a');
    await asked(5);
    expect(versions()).to.deep.equal([null, '50', null, null, '20']);
  });

  for (const [what, told] of [
    ['a bookmark', bookmark('20')],
    ['an event', event('MODIFIED', 'a', '20')],
  ] as const) {
    it(`lists again when ${what} is of an older version`, async () => {
      server.next(list('50', 'a', 'b'), lines([told]), list('20', 'a'), lines([]));
      follow();
      await isRewound();
      await clock.pass(1000);
      await seen('=a,b', '=a');
    });
  }

  it('lists again when another listing is at an older version than it was before that was asked for', async () => {
    server.next(list('50', 'a', 'b'), lines([event('ADDED', 'c', '60')]), list('20', 'a'), lines([]));
    follow();
    await seen('=a,b', '+c');
    // A listing that was asked for before the last event came may be older than that.
    reflector.listed('55', '50');
    reflector.listed('20', undefined);
    reflector.listed('opaque', '60');
    expect(reflector.version).to.equal('60');
    reflector.listed('20', '60');
    await isRewound();
    await clock.pass(1000);
    await seen('=a,b', '+c', '=a');
  });

  it('ends when it is told to, wherever it is', async () => {
    for (const responds of [
      [list('5'), lines([])],
      [() => undefined],
      [cut],
      [list('5'), lines([], cut)],
    ] as Respond[][]) {
      server.next(...responds);
      follow();
      const before = server.requests.length;
      await asked(before + 1);
      await [...stop].at(-1)!();
    }
    await until('nothing is left open', () => clock.sleeping.length === 0);
  });
});

describe('the step of a reflector after a failure', () => {
  const failure = (code: KubernetesCode, status?: number) =>
    new KubernetesError({ code, message: 'no', maybeDone: false, ...(status && { status }) });

  const cases: [error: unknown, failures: number, relist: boolean, pause: number][] = [
    [failure('kubernetes-gone', 410), 1, true, 0],
    [failure('kubernetes-gone', 410), 3, true, 4000],
    [failure('kubernetes-rewound'), 1, true, 1000],
    [failure('kubernetes-rewound'), 9, true, 1000],
    [failure('kubernetes-unreachable'), 1, false, 1000],
    [failure('kubernetes-unreachable'), 100, false, 30_000],
    [failure('kubernetes-too-many-requests', 429), 2, false, 2000],
    [failure('kubernetes-server-error', 500), 4, false, 8000],
    [failure('kubernetes-server-error', 500), 5, true, 16_000],
    [failure('kubernetes-no-api'), 1, false, 1000],
    [failure('kubernetes-no-api', 404), 1, true, 1000],
    [failure('kubernetes-too-large'), 1, true, 1000],
    [failure('kubernetes-forbidden', 403), 1, true, 1000],
    [failure('kubernetes-forbidden', 403), 7, true, 60_000],
    [failure('kubernetes-forbidden', 403), 100, true, 60_000],
    [failure('kubernetes-unauthorized', 401), 1, false, 1000],
    [failure('kubernetes-unauthorized', 401), 100, false, 30_000],
    [failure('kubernetes-namespace', 404), 7, true, 60_000],
    [new ThresherError('kubeconfig-missing', 'no'), 1, false, 1000],
    [new ThresherError('kubernetes-credentials', 'no'), 3, false, 4000],
    [new TypeError('no'), 7, true, 60_000],
  ];
  for (const [error, failures, relist, pause] of cases) {
    const what = error instanceof ThresherError ? error.code : 'anything else';
    it(`after ${what} for the ${failures}. time the reflector makes ${relist ? 'a list' : 'a watch'} after ${pause} ms`, () => {
      expect(afterFailure(error, failures, failures)).to.deep.equal({ relist, pause });
    });
  }

  it('lists at once when a version is gone, and not so each time in a row', () => {
    const gone = failure('kubernetes-gone', 410);
    // An event before each of them begins the count of failures anew.
    expect([1, 2, 3, 9].map((alike) => afterFailure(gone, 1, alike).pause)).to.deep.equal([
      0, 2000, 4000, 30_000,
    ]);
  });

  it('asks soon again about a right that is missing after a long outage: the server has just started', () => {
    expect(afterFailure(failure('kubernetes-forbidden', 403), 100, 1)).to.deep.equal({
      relist: true,
      pause: 1000,
    });
    expect(afterFailure(failure('kubernetes-unreachable'), 100, 1)).to.deep.equal({
      relist: false,
      pause: 30_000,
    });
  });
});
