import { expect } from 'chai';
import type { QueueRuntime } from '../../../src/agents/queue-runtime.ts';
import { judge, ReconcilerAgent } from '../../../src/agents/reconciling/reconciler-agent.ts';
import { SweeperAgent } from '../../../src/agents/sweeping/sweeper-agent.ts';
import type { Found, Sweeper, Worker, WorkerStatus } from '../../../src/plugins/contracts/index.ts';
import type { Fate } from '../../../src/store/workers.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { messageOf } from '../../../src/worker/errors.ts';
import { finalStatuses, isFinal, workerStatuses } from '../../../src/worker/status.ts';
import { AgentParts } from '../../support/agent-context.ts';
import { configOf, workerOf } from '../../support/samples.ts';
import { mostMaskedInATurn } from '../../support/masked-characters.ts';
import { sharedFiles } from '../../support/shared-files.ts';

const { workerId, name, queue, computingSite, origin, requirements, attempt } = workerOf(1);
const identity = { workerId, name, queue, computingSite, origin, requirements, attempt };
const handle = { batchID: '17' };

function found(status?: WorkerStatus): Found {
  const observation = { workerId: 1, status: status!, nativeStatus: 'x', observedAt: 5 };
  return { place: '/pilots/1', handle, identity, ...(status !== undefined && { observation }) };
}

const row = (status: WorkerStatus, sweptTime: number | null = null): Fate => ({
  status,
  swept: sweptTime !== null,
});
const configId = (queue: string) => (queue === 'Q' ? 3 : undefined);
const verdict = (one: Found, record?: Fate) => judge(one, record, 'local:/pilots', configId, 'thresher');

describe('an object with our mark', () => {
  it('is an orphan when its mark names no worker', () => {
    expect(verdict({ place: '/pilots/x', handle }, row('running'))).to.deep.equal({
      kind: 'orphan',
      why: 'its mark does not say which worker it is',
    });
  });

  for (const status of workerStatuses.filter((one) => !isFinal(one))) {
    it(`is known while its row is ${status}, in whatever status it is seen`, () => {
      for (const seen of [undefined, ...workerStatuses]) {
        expect(verdict(found(seen), row(status))).to.deep.equal({ kind: 'known' });
      }
    });
  }

  for (const status of finalStatuses) {
    it(`is known after its worker was ${status}, until the sweep, and an orphan if it lives`, () => {
      expect(verdict(found('finished'), row(status))).to.deep.equal({ kind: 'known' });
      expect(verdict(found(), row(status))).to.deep.equal({ kind: 'known' });
      expect(verdict(found('running'), row(status))).to.deep.equal({
        kind: 'orphan',
        why: `its worker is ${status}, but it lives`,
      });
    });

    it(`is an orphan after its worker was ${status} and swept, in whatever status it is seen`, () => {
      for (const seen of [undefined, 'finished', 'running'] as const) {
        expect(verdict(found(seen), row(status, 9))).to.deep.equal({
          kind: 'orphan',
          why: `its worker was ${status} and swept`,
        });
      }
    });
  }

  it('is adopted where it is when it has no row, with the current configuration of its queue', () => {
    expect(verdict(found('running'))).to.deep.equal({
      kind: 'adopt',
      worker: { ...identity, placement: 'local:/pilots', configId: 3, handle },
    });
  });

  it('is adopted also where its name, queue or connection has a word that is a password of ours, too', () => {
    rememberSecret('Atlas-Pilots-7');
    const name = 'Atlas-Pilots-7-1';
    const named = { batchID: name, submissionHost: 'Atlas-Pilots-7,pool' };
    const mine = {
      ...identity,
      name,
      queue: 'Atlas-Pilots-7-score',
      origin: { ...origin, uid: 'Atlas-Pilots-7-score' },
    };
    const judged = (one: Partial<Found>) =>
      judge(
        { ...found('running'), handle: named, identity: mine, ...one },
        undefined,
        'htcondor:Atlas-Pilots-7,pool',
        () => 3,
        'Atlas-Pilots-7',
      ).kind;
    expect(judged({})).to.equal('adopt');
    for (const other of ['Atlas-Pilots-7-2', 'x-Atlas-Pilots-7'])
      expect(judged({ identity: { ...mine, name: other } })).to.equal('orphan');
    expect(judged({ handle: { ...named, uid: 'u-Atlas-Pilots-7' } })).to.equal('orphan');
  });

  it('is an orphan when it has no row and its queue is not configured', () => {
    const stranger = { ...found('running'), identity: { ...identity, queue: 'GONE' } };
    expect(verdict(stranger)).to.deep.equal({ kind: 'orphan', why: 'its queue GONE is not configured' });
  });
});

describe('the listing of a connection', () => {
  let parts: AgentParts;
  let listed: readonly Found[];
  /** What happens while a listing is under way. */
  let meanwhile: () => Promise<unknown>;
  let notListed: number[][];
  let asked: string[];
  let release: () => void;
  let configured: (queue: string) => boolean;
  let removed: string[];
  /** What happens while an orphan is removed. */
  let onRemove: () => Promise<unknown>;
  const sweeper = {
    list: async () => {
      await meanwhile();
      return listed;
    },
    removeOrphan: async ({ place }: Found) => {
      removed.push(place);
      await onRemove();
      return { kind: 'gone' };
    },
  } as unknown as Sweeper;

  beforeEach(async () => {
    parts = await AgentParts.open();
    listed = [];
    meanwhile = async () => undefined;
    notListed = [];
    asked = [];
    release = () => undefined;
    configured = () => true;
    removed = [];
    onRemove = async () => undefined;
  });

  afterEach(() => parts[Symbol.asyncDispose]());

  const agent = (changes: Partial<AgentParts['context']> = {}) =>
    new ReconcilerAgent(
      sweeper,
      parts.connection,
      { ...parts.context, ...changes },
      {
        homes: () => ({
          configFor: async (queue) => {
            asked.push(queue);
            return configured(queue) ? 7 : undefined;
          },
          release: () => {
            release();
          },
        }),
        notListed: (ids) => notListed.push([...ids]),
      },
    );
  const reconcile = () => agent().pass();

  const shown = (id: number): Found => {
    const { name, queue, computingSite, origin, requirements, attempt } = workerOf(id);
    const who = { workerId: id, name, queue, computingSite, origin, requirements, attempt };
    const observation = { workerId: id, status: 'running', nativeStatus: 'x', observedAt: 5 } as const;
    return { place: `/pilots/${id}`, handle, identity: who, observation };
  };

  it('hole 8: gives others their turn while it looks for secrets in what is said of hundreds of objects', async () => {
    const text = ':token'.repeat(160);
    listed = Array.from({ length: 100 }, (_, at): Found => {
      const one = shown(at + 1);
      const { observation, identity } = one;
      return {
        ...one,
        ...(identity && { identity: { ...identity, accessPoint: `/${text}` } }),
        ...(observation && { observation: { ...observation, detail: { HoldReason: text } } }),
      };
    });
    const most = await mostMaskedInATurn((clock) => agent({ clock }).pass());
    expect(most).to.be.within(1000, 10_000);
    expect(parts.ledger.live.get(100)?.status).to.equal('running');
  });

  describe('hole 8: of a mark with an access point', () => {
    const messenger = (accessPoint: string) => sharedFiles({ accessPoint });
    let template: string | undefined;
    const adopted = async (mark: object, seen = true) => {
      const { observation, ...one } = shown(1);
      listed = [{ ...one, ...(seen && { observation }), identity: { ...one.identity!, ...mark } }] as Found[];
      const home = { config: configOf('Q', {}), messenger: template && messenger(template) };
      const homes = {
        configFor: async () => 7,
        release: () => undefined,
        runtimeOf: (id: number) => (id === 7 && template !== undefined ? (home as QueueRuntime) : undefined),
      };
      await new ReconcilerAgent(sweeper, parts.connection, parts.context, {
        homes: () => homes,
        notListed: () => undefined,
      }).pass();
      return (await parts.store.workers.byIds([1]))[0];
    };
    const told = () => parts.log.lines.filter(({ facts }) => facts['code'] === 'access-point-foreign');

    it('takes the one that the configuration of its queue gives', async () => {
      template = '/var/harvester/${queueName}/${resourceType}/${workerID}';
      const row = await adopted({ accessPoint: '/var/harvester/Q/SCORE/1' });
      expect(row?.accessPoint).to.equal('/var/harvester/Q/SCORE/1');
      expect(told()).to.deep.equal([]);
    });

    const foreign: Readonly<Record<string, readonly [template: string | undefined, mark: object]>> = {
      'another directory': ['/var/harvester/${workerID}', { accessPoint: '/nowhere/user1' }],
      'a directory of an earlier template': ['/new/${workerID}', { accessPoint: '/old/1' }],
      'a directory where the queue has no configuration any more': [undefined, { accessPoint: '/old/1' }],
      'requirements that would lead elsewhere': [
        '/var/harvester/${resourceType}/${workerID}',
        {
          accessPoint: '/var/harvester/../../home/1',
          requirements: { ...requirements, resourceType: '../../home' },
        },
      ],
    };
    for (const [what, [given, mark]] of Object.entries(foreign))
      for (const seen of [true, false])
        it(`leaves ${what} alone and says so once, of an object with${seen ? '' : 'out'} a status`, async () => {
          template = given;
          for (let pass = 1; pass <= 2; pass++) {
            const row = await adopted(mark, seen);
            expect(row?.status).to.equal(seen ? 'running' : 'pending');
            expect(row).to.not.have.property('accessPoint');
          }
          expect(told()).to.have.length(1);
          expect(told()[0]?.facts).to.include({ workerId: 1, place: '/pilots/1' });
        });

    it('masks secrets in the access point that it tells of', async () => {
      template = '/var/${workerID}';
      await adopted({ accessPoint: 'https://user:pa55word-of-it@host/1' });
      expect(JSON.stringify(told())).to.include('host/1').and.not.include('pa55word');
    });

    it('takes neither its site nor the name of a payload, which may be that of another worker', async () => {
      template = undefined;
      const row = await adopted({ computingSite: '../../etc', payloadId: '12' }, false);
      expect(row).to.include({ computingSite: 'Q', payloadId: 'lost-1' });
    });
  });

  it('leaves a second worker of an origin as an orphan, in one listing and in the next', async () => {
    const of = (id: number, uid: string): Found => ({
      ...shown(id),
      identity: { ...identity, workerId: id, name: `factory-${id}`, origin: { kind: 'toy', uid, index: 0 } },
    });
    listed = [of(1, 'a'), of(2, 'a'), of(3, 'b')];
    for (let pass = 1; pass <= 2; pass++) {
      await reconcile();
      expect([1, 2, 3].map((id) => parts.ledger.live.get(id)?.status)).to.deep.equal([
        'running',
        undefined,
        'running',
      ]);
      const orphans = await parts.store.orphans.all();
      expect(orphans.map(({ workerId }) => workerId)).to.deep.equal([2]);
      expect(orphans[0]?.why).to.contain('its origin has another worker');
    }
    expect((await parts.store.orphans.all())[0]?.why).to.equal('its origin has another worker, 1');
    // The database was lost and the source asked again, before this place was listed.
    await parts.ledger.intend([workerOf(9, { origin: { kind: 'toy', uid: 'c', index: 0 } })]);
    listed = [of(4, 'c')];
    await reconcile();
    expect(parts.ledger.live.get(4)).to.equal(undefined);
    expect((await parts.store.orphans.all()).map(({ why }) => why)).to.deep.equal([
      'its origin has another worker, 9',
    ]);
  });

  describe('hole 7: of two with the id of one worker', () => {
    const copyOf = (id: number, other: Partial<Found> = {}, mark: object = {}): Found => {
      const one = shown(id);
      return { ...one, place: '/pilots/copy', ...other, identity: { ...one.identity!, ...mark } };
    };
    const orphans = async () => (await parts.store.orphans.all()).map(({ place, why }) => [place, why]);

    const unseen = (one: Found): Found => {
      const { observation, ...rest } = one;
      expect(observation).to.not.equal(undefined);
      return rest;
    };
    const named = { place: `/pilots/${workerOf(2).name}` };
    const cases: Readonly<Record<string, readonly [original: Found, copy: Found]>> = {
      'whose object has another name': [copyOf(2, named), copyOf(2)],
      'that says another name': [copyOf(2, { place: '/p' }), copyOf(2, { place: '/q' }, { name: 'mine' })],
      'of which nothing is seen': [shown(2), unseen(copyOf(2))],
      'of an earlier attempt': [copyOf(2, { place: '/p' }, { attempt: 2 }), copyOf(2, { place: '/q' })],
    };
    for (const [what, pair] of Object.entries(cases))
      it(`the copy ${what} is not adopted, and nobody but a person removes it`, async () => {
        for (const both of [pair, pair.toReversed()]) {
          listed = [shown(1), ...both, shown(3)];
          await reconcile();
          const [original, copy] = pair;
          const why = `its mark is that of ${original.place}; thresher removes neither of the two as an orphan`;
          expect(await orphans()).to.deep.equal([[copy.place, why]]);
          expect([1, 2, 3].map((id) => parts.ledger.live.get(id)?.status)).to.deep.equal(
            Array(3).fill('running'),
          );
          expect(await agent().removeOrphans()).to.equal(0);
          await parts[Symbol.asyncDispose]();
          parts = await AgentParts.open();
        }
      });

    it('the copy is told of also when the row is there, where the row says which one it has', async () => {
      listed = [shown(2), copyOf(2, { handle: { batchID: 'copy' } })];
      for (let pass = 1; pass <= 2; pass++) {
        await reconcile();
        expect((await orphans()).map(([place]) => place)).to.deep.equal(['/pilots/copy']);
      }
      // The row has none of them.
      listed = [
        copyOf(2, { handle: { batchID: 'a' } }),
        copyOf(2, { place: '/b', handle: { batchID: 'b' } }),
      ];
      await reconcile();
      expect(await orphans()).to.deep.equal([]);
    });

    it('what another attempt left may stand beside the one that the row has', async () => {
      listed = [copyOf(2, { place: '/p' }, { attempt: 2 })];
      await reconcile();
      listed = [...listed, copyOf(2, { place: '/q', handle: { batchID: 'first' } }, { attempt: 1 })];
      await reconcile();
      expect(await orphans()).to.deep.equal([]);
    });

    it('a copy that was given the origin of a third takes no row of either', async () => {
      const origin = (uid: string) => ({ origin: { kind: 'toy', uid, index: 0 } });
      const [a, b] = [copyOf(1, { place: '/a' }, origin('A')), copyOf(2, { place: '/b' }, origin('B'))];
      const copy = copyOf(1, {}, { attempt: 5, ...origin('B') });
      for (const all of [
        [copy, a, b],
        [a, copy, b],
        [b, a, copy],
      ]) {
        listed = all;
        await reconcile();
        expect((await orphans()).map(([place]) => place)).to.deep.equal(['/pilots/copy']);
        expect([1, 2].map((id) => parts.ledger.live.get(id)?.status)).to.deep.equal(['running', 'running']);
        await parts[Symbol.asyncDispose]();
        parts = await AgentParts.open();
      }
    });

    it('the one is adopted whose queue is configured, and whose origin no other worker has', async () => {
      const origin = (uid: string) => ({ origin: { kind: 'toy', uid, index: 0 } });
      await parts.ledger.intend([workerOf(9, origin('c'))]);
      listed = [
        ...[copyOf(2, { place: '/pilots/x' }, { queue: 'GONE' }), copyOf(2, { place: '/pilots/y' })],
        ...[
          copyOf(3, {}, origin('c')),
          copyOf(3, { place: '/pilots/z' }, { name: 'old', attempt: 1, ...origin('d') }),
        ],
      ];
      configured = (queue) => queue !== 'GONE';
      await reconcile();
      expect([2, 3].map((id) => parts.ledger.live.get(id)?.status)).to.deep.equal(Array(2).fill('running'));
      expect(await orphans()).to.have.deep.members([
        ['/pilots/x', 'its queue GONE is not configured'],
        ['/pilots/copy', 'its origin has another worker, 9'],
      ]);
    });
  });

  it('hole 1: shows what may be the job of a worker all the same, and never removes it as an orphan', async () => {
    const { place, handle } = shown(1);
    listed = [{ place, handle, damage: 'it is of user games', isDoubtful: true }];
    const removing = agent();
    await removing.pass();
    expect((await parts.store.orphans.all()).map(({ why }) => why)).to.deep.equal(['it is of user games']);
    expect([await removing.removeOrphans(), removed]).to.deep.equal([0, []]);
    listed = [{ place, handle, damage: 'it is damaged' }];
    await removing.removeOrphans();
    expect(removed).to.have.length(1);
  });

  it('hole 3: removes no orphan that got a row while those before it were removed', async () => {
    configured = () => false;
    listed = [shown(1), shown(2), shown(3)].map((one, at) => ({ ...one, handle: { batchID: `${at}` } }));
    const removing = agent();
    await removing.pass();
    onRemove = async () => {
      onRemove = async () => undefined;
      await parts.ledger.adopt([workerOf(2, { placement: 'elsewhere' })], 'submitted');
    };
    expect(await removing.removeOrphans()).to.equal(2);
    expect(removed).to.deep.equal(['/pilots/1', '/pilots/3']);
  });

  it('hole 3: removes no orphan whose handle is that of a living worker, by now or from the first', async () => {
    const bare = (id: number) => ({ place: `/pilots/${id}`, handle: { batchID: `${id}` } });
    const adopt = (id: number) => {
      const placement = parts.connection.name;
      return parts.ledger.adopt(
        [workerOf(id, { placement, handle: { batchID: `${id}`, uid: 'u' } })],
        'submitted',
      );
    };
    await adopt(1);
    listed = [bare(1), bare(2), bare(3), bare(4)];
    const removing = agent();
    await removing.pass();
    onRemove = async () => {
      onRemove = async () => undefined;
      await adopt(3);
    };
    expect(await removing.removeOrphans()).to.equal(2);
    expect(removed).to.deep.equal(['/pilots/2', '/pilots/4']);
  });

  it('hole 5: removes no orphan without a mark that has the number of a living worker of another connection, which may lead there, too', async () => {
    const bare = (id: number) => ({ place: `/pilots/${id}`, handle: { batchID: `${id}` } });
    const handle = { batchID: '1', submissionHost: 'old' };
    await parts.ledger.adopt([workerOf(1, { placement: 'elsewhere', handle })], 'submitted');
    configured = () => false;
    const marked = { ...shown(3), handle: { batchID: '1' } };
    listed = [bare(1), bare(2), marked];
    const removing = agent();
    await removing.pass();
    expect(await removing.removeOrphans()).to.equal(2);
    expect(removed).to.deep.equal(['/pilots/2', '/pilots/3']);
  });

  const login = 'Zq7T0kenOfOurLoginXy81LmN4pQ9rSt2';
  const tainted: Readonly<Record<string, (one: Found) => Partial<Found>>> = {
    ...Object.fromEntries(
      (['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'] as const).map((key) => [
        `the ${key} of a mark`,
        ({ identity: mark }: Found) => ({
          identity: { ...mark!, requirements: { ...requirements, [key]: `x-${login}` } },
        }),
      ]),
    ),
    'the origin of a mark': ({ identity: mark }) => ({
      identity: { ...mark!, origin: { kind: 'order', uid: login, index: 0 } },
    }),
    'the queue of a mark': ({ identity: mark }) => ({ identity: { ...mark!, queue: `Q-${login}` } }),
    'what the backend calls an object': () => ({ handle: { batchID: '17', uid: `u-${login.slice(4)}` } }),
  };
  for (const [what, taint] of Object.entries(tainted))
    it(`shows ${what} with a login of ours in it as an orphan without the login, makes no row of it and ends nothing`, async () => {
      rememberSecret(login);
      // The name of a configured queue is the configuration's own.
      configured = (queue) => !queue.includes(login);
      const [one, other] = [shown(1), shown(2)];
      listed = [{ ...one, ...taint(one) }, other];
      const removing = agent();
      await removing.pass();
      expect((await parts.store.workers.byIds([1, 2])).map(({ workerId: id }) => id)).to.deep.equal([2]);
      const orphans = await parts.store.orphans.all();
      expect(orphans.map(({ place, why }) => [place, why])).to.deep.equal([
        ['/pilots/1', 'a login of this daemon is in its mark'],
      ]);
      expect(JSON.stringify([orphans, parts.log.lines])).not.to.include(login.slice(4));
      expect([await removing.removeOrphans(), removed]).to.deep.equal([0, []]);
    });

  it('adopts a worker whose queue, site and access point have a word that is a password of ours, too', async () => {
    rememberSecret('Cern-Pilots-7');
    const one = shown(1);
    const queue = 'Cern-Pilots-7-score';
    listed = [
      {
        ...one,
        identity: {
          ...one.identity!,
          queue,
          computingSite: queue,
          origin: { ...one.identity!.origin, uid: queue },
          accessPoint: `/access/${queue}`,
        },
      },
    ];
    await reconcile();
    expect(await parts.store.orphans.all()).to.deep.equal([]);
    expect((await parts.store.workers.byIds([1]))[0]?.queue).to.equal(queue);
  });

  it('goes on with a worker that has a row, whatever a server makes of its mark, and makes no second one', async () => {
    rememberSecret(login);
    listed = [shown(1)];
    await reconcile();
    const [one] = listed;
    listed = [{ ...one!, ...tainted['the jobType of a mark']!(one!) }];
    await reconcile();
    expect(await parts.store.orphans.all()).to.deep.equal([]);
    expect(notListed.at(-1)).to.deep.equal([]);
    expect((await parts.store.workers.byIds([1]))[0]?.requirements.jobType).to.equal(requirements.jobType);
  });

  it('gives the row of an origin to the object without a login of ours in its mark', async () => {
    rememberSecret(login);
    const [one, other] = [shown(1), shown(2)];
    const both = { ...one.identity!.origin };
    listed = [
      { ...one, identity: { ...one.identity!, groupId: login } },
      { ...other, identity: { ...other.identity!, origin: both } },
    ];
    await reconcile();
    expect((await parts.store.workers.byIds([1, 2])).map(({ workerId: id }) => id)).to.deep.equal([2]);
  });

  /** The database with a refusal of one worker's row, or of all. */
  const refusing = (refuses: (id: number) => boolean, code?: string) => {
    const adopt = parts.store.workers.adopt.bind(parts.store.workers);
    parts.store.workers.adopt = async (workers, ...rest) => {
      const one = workers.find(({ workerId }) => refuses(workerId));
      if (one === undefined) return adopt(workers, ...rest);
      throw Object.assign(new Error('integer out of range'), { code });
    };
  };

  it('hole 7: adopts all but those whose rows the database refuses, and says why these have none', async () => {
    refusing((id) => id % 5 === 2, 'SQLITE_CONSTRAINT_CHECK');
    listed = Array.from({ length: 20 }, (_, index) => shown(index + 1));
    await reconcile();
    expect(listed.filter((_, index) => parts.ledger.live.get(index + 1) !== undefined)).to.have.length(16);
    const orphans = await parts.store.orphans.all();
    expect(orphans.map(({ workerId }) => workerId)).to.have.members([2, 7, 12, 17]);
    expect(orphans[0]?.why).to.match(/^it cannot have a row, and .*integer out of range/);
    const removing = agent();
    await removing.pass();
    // They may be our workers, and the fault be in a schema.
    expect([await removing.removeOrphans(), removed]).to.deep.equal([0, []]);
  });

  for (const [native, code] of [
    ['SQLITE_FULL', 'store-full'],
    ['SQLITE_BUSY', 'store-failed'],
    ['SQLITE_IOERR_WRITE', 'store-failed'],
    ['SQLITE_CONSTRAINT_FOREIGNKEY', 'store-failed'],
  ] as const)
    it(`fails as a whole where the database itself fails, with ${native}: no worker is an orphan by that`, async () => {
      listed = [shown(1), shown(2)];
      refusing((id) => id === 2, native);
      expect(await reconcile().catch((error: unknown) => error)).to.have.property('code', code);
      expect(await parts.store.orphans.all()).to.deep.equal([]);
      expect(parts.connection.closed?.code).to.equal('not-listed');
    });

  it('fails with a code of the store where it asks the database', async () => {
    listed = [shown(1)];
    parts.store.origins.known = async () => {
      throw Object.assign(new Error('locked'), { code: 'SQLITE_READONLY' });
    };
    listed = listed.map((one) => ({
      ...one,
      identity: { ...one.identity!, origin: { kind: 'x', uid: 'y', index: 0 } },
    }));
    expect(await reconcile().catch((error: unknown) => error)).to.have.property('code', 'store-readonly');
  });

  it('is compared with the rows, and workers that it lacks are looked up', async () => {
    const ids = await parts.submitted(3);
    listed = [shown(ids[1] ?? 0)];
    await reconcile();
    expect(notListed).to.deep.equal([[ids[0], ids[2]]]);
  });

  it('lacks no worker that came during it, is not confirmed yet, or lives elsewhere', async () => {
    await parts.ledger.intend([workerOf(100), workerOf(101, { placement: 'elsewhere' })]);
    await parts.ledger.change([{ workerId: 101, to: 'submitted', source: 'test' }]);
    meanwhile = () => parts.submitted(1);
    await reconcile();
    expect(notListed).to.deep.equal([[]]);
  });

  it('releases the configurations that it was given after the adoption, and after a failure', async () => {
    const released: (number | undefined)[] = [];
    release = () => released.push(parts.context.ledger.live.get(10)?.configId);
    listed = [shown(10)];
    await reconcile();
    expect(released).to.deep.equal([7]);
    meanwhile = async () => {
      throw new Error('the backend fails');
    };
    expect(await reconcile().catch(messageOf)).to.contain('the backend fails');
    expect(released).to.have.length(2);
  });

  it('adopts with a configuration that leads there, so that the worker can be ended and swept', async () => {
    listed = [shown(5)];
    await reconcile();
    expect(asked).to.deep.equal(['Q']);
    expect(parts.ledger.live.get(5)).to.deep.include({ placement: parts.placement, configId: 7 });
    const done: string[] = [];
    const gone = (verb: string) => async (workers: readonly Worker[]) => {
      done.push(verb);
      return new Map(workers.map((worker) => [worker.workerId, { kind: 'gone' }]));
    };
    const monitor = { check: async () => new Map([[5, { kind: 'absent' }]]) };
    const connected = {
      connection: parts.connection,
      monitor,
      sweeper: { kill: gone('kill'), remove: gone('remove') },
    };
    const runtime = {
      config: { name: 'Q' },
      configId: 7,
      current: false,
      messenger: undefined,
      connected: new Map([[parts.placement, connected]]),
    } as unknown as QueueRuntime;
    const keep = { finished: 0, failed: 0, cancelled: 0, missed: 0 };
    const agent = new SweeperAgent(runtime, parts.context, { keep });
    await parts.ledger.requestKill({ ids: [5] }, 'test');
    await agent.pass(new AbortController().signal);
    await parts.clock.advance(1000);
    expect(await agent.sweep()).to.equal(1);
    expect(done).to.deep.equal(['kill', 'remove']);
  });
});
