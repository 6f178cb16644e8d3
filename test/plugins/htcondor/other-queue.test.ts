import { expect } from 'chai';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import type { Found } from '../../../src/plugins/contracts/index.ts';
import { HTCondorMonitor } from '../../../src/plugins/htcondor/monitor.ts';
import { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { HTCondorSweeper } from '../../../src/plugins/htcondor/sweeper.ts';
import { identityText, marks } from '../../../src/plugins/htcondor/marks.ts';
import { CeTally } from '../../../src/plugins/htcondor/place/ce-tally.ts';
import { HTCondorMonitorConfig } from '../../../src/plugins/htcondor/schema.ts';
import { find } from '../../../src/plugins/htcondor/submitting/fence.ts';
import { defaultsOf } from '../../../src/util/schema-defaults.ts';
import { toReason } from '../../../src/worker/errors.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { recordingLog, workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const { signal } = new AbortController();
const handle = { batchID: '7.0', submissionHost: 'S,None' };
/** Worker 1 is 7.0 in the right queue. */
const worker = workerOf(1, { handle });
/** When its job was submitted, and another one of that number, s. */
const [before, later] = [1_700_000_100, 1_700_000_200];

const jobOf = (ad: object) => ({
  ClusterId: 7,
  ProcId: 0,
  JobStatus: 2,
  Owner: 'pilot',
  QDate: before,
  ...ad,
});
const markOf = (workerId: number) => ({
  [marks.worker]: `${workerId}`,
  [marks.identity]: identityText(workerOf(workerId)),
});

/** A schedd whose queue may be another one, and those who ask it. */
class Site {
  readonly clock = new ManualClock();
  readonly schedd: HTCondorSchedd;
  readonly sweeper: HTCondorSweeper;
  queue: object[] = [];
  history: object[] = [];
  birth = 1;
  started = 1;
  /** Constraints of removals. */
  readonly acted: string[] = [];
  onAct: () => void = () => undefined;
  /** What the looks said. */
  readonly seen: string[] = [];
  readonly troubles: string[] = [];
  readonly #monitor: HTCondorMonitor;

  constructor() {
    const { clock } = this;
    const context = pluginContext({ clock, log: recordingLog(), stateDir: temporaryDirectory() });
    const host = {
      ...context,
      share: <T>(_: string, make: () => T) => make(),
      memoryOf: inFiles(context.stateDir),
    };
    this.schedd = new HTCondorSchedd({ name: 'S', pool: undefined } as never, host);
    Object.assign(this.schedd.client, {
      queueAs: async (read: (ad: object) => unknown) => this.queue.map(read),
      history: async () => this.history,
      historyAs: async (read: (ad: object) => unknown) => this.history.map(read),
      evaluated: async () => [],
      whoAmI: async () => 'pilot@pool.test',
      jobQueue: async () => ({ birth: this.birth, started: this.started, name: 'S' }),
      act: async (_: string, constraint: string) => {
        this.acted.push(constraint);
        this.onAct();
      },
    });
    const pause = (howLong: () => number, over: AbortSignal) => clock.sleep(howLong(), over);
    const daemon = { ...host, connection: 'C', queues: [], queue: () => undefined, pause } as never;
    const options = defaultsOf(HTCondorMonitorConfig);
    const parts = { schedd: this.schedd, daemon, options };
    this.#monitor = new HTCondorMonitor({ ...parts, tally: new CeTally() });
    this.sweeper = new HTCondorSweeper(parts);
  }

  async look(): Promise<void> {
    const over = new AbortController();
    const sink = {
      begin: () => undefined,
      observe: ({ workerId, status }: { workerId: number; status: string }) =>
        this.seen.push(`${workerId} ${status}`),
      gone: (workerId: number) => this.seen.push(`${workerId} gone`),
      complete: () => {
        over.abort();
      },
      trouble: ({ code }: { code: string }) => {
        this.troubles.push(code);
        over.abort();
      },
    };
    await this.#monitor.observe(sink, over.signal);
  }

  /** What each of those who ask says of worker 1; a code where nothing is said. */
  async said(): Promise<Record<string, string>> {
    const wordOf = (one?: { readonly kind: string; readonly error?: { readonly code: string } }) =>
      one?.error?.code ?? one?.kind ?? 'nothing';
    const list = await this.sweeper.list(signal).then(
      () => 'listed',
      (error: unknown) => toReason(error).code,
    );
    const { clock, schedd } = this;
    return {
      list,
      check: wordOf((await this.#monitor.check([worker], signal)).get(1)),
      find: wordOf((await find(schedd, [workerOf(1)], clock, signal)).get(1)),
    };
  }

  swap(birth: number): void {
    this.birth = birth;
    this.started++;
  }
}

describe('a schedd that has another queue for a while', () => {
  const given = { own: markOf(1), missing: {}, foreign: markOf(2) };
  const end = { ExitBySignal: false, ExitCode: 0, CompletionDate: later, EnteredCurrentStatus: later };
  const places = ['queue', 'history', 'log'] as const;

  /** Worker 1 was seen running, and then a job with its number is in a place. */
  async function siteOf(isOther: boolean, place: (typeof places)[number], ad: object, status: number) {
    const site = new Site();
    site.queue = [jobOf(markOf(1))];
    await site.look();
    if (isOther) site.swap(2);
    const job = jobOf({ ...ad, ...end, JobStatus: status, QDate: isOther ? later : before });
    site.queue = place === 'queue' ? [job] : [];
    site.history = place === 'history' ? [job] : [];
    const event = { cluster: 7, proc: 0, time: 1000 * later } as const;
    const exit = { kind: 'terminated', end: { exitCode: 0 } } as const;
    if (place === 'log')
      site.schedd.jobs.apply([{ ...event, ...(status === 4 ? exit : { kind: 'aborted' }) }], new Map());
    return site;
  }

  for (const place of places)
    for (const [mark, ad] of Object.entries(given))
      it(`ends, finds, lists and removes nothing by a job in its ${place} whose mark is ${mark}`, async () => {
        for (const status of [1, 2, 3, 4, 5, 6, 7]) {
          const site = await siteOf(true, place, ad, status);
          const code = 'htcondor-other-queue';
          expect(await site.said(), `${status}`).to.deep.equal({ list: code, check: code, find: code });
          await site.look();
          const gone = [
            (await site.sweeper.kill([worker], signal)).get(1),
            (await site.sweeper.remove([worker], signal)).get(1),
            await site.sweeper.removeOrphan({ place: 'S 7.0', handle, stamp: `${later} no worker` }, signal),
          ];
          expect(gone.map((one) => one?.kind === 'failed' && one.error.code)).to.deep.equal([
            code,
            code,
            code,
          ]);
          expect([site.seen, site.troubles, site.acted]).to.deep.equal([['1 running'], [code], []]);
          // The right one is back.
          site.swap(1);
          site.queue = [jobOf(markOf(1))];
          await site.look();
          expect(await site.said()).to.deep.equal({ list: 'listed', check: 'observed', find: 'found' });
        }
      });

  it('says all of it while it has the queue that it had', async () => {
    for (const place of places)
      for (const ad of Object.values(given))
        for (const status of [1, 2, 3, 4, 5, 6, 7]) {
          const site = await siteOf(false, place, ad, status);
          expect(Object.values(await site.said())).not.to.include('htcondor-other-queue');
          expect(site.troubles).to.deep.equal([]);
        }
  });

  describe('has orphans with the numbers of living workers, and of those', () => {
    let site: Site;
    const listed = async (): Promise<Found> => {
      const [found] = await site.sweeper.list(signal);
      if (found === undefined) throw new Error('nothing is listed');
      return found;
    };

    beforeEach(() => {
      site = new Site();
      site.queue = [jobOf({})];
      site.onAct = () => {
        site.queue = [];
      };
    });

    it('one is removed, by its number and by when it was submitted', async () => {
      expect(await site.sweeper.removeOrphan(await listed(), signal)).to.deep.equal({ kind: 'gone' });
      expect(site.acted).to.have.length(1);
      expect(site.acted[0]).to.contain('ClusterId == 7 && ').and.to.contain(`QDate == ${before}`);
    });

    const others: Readonly<Record<string, object>> = {
      'another job has the number, whose mark is gone, too': { QDate: later },
      'the job of a worker has the number': { QDate: later, ...markOf(1) },
      'it was given the mark of a worker since': markOf(1),
    };
    for (const [what, ad] of Object.entries(others))
      it(`none is removed where ${what}`, async () => {
        const found = await listed();
        site.queue = [jobOf(ad)];
        expect(await site.sweeper.removeOrphan(found, signal)).to.deep.equal({ kind: 'gone' });
        expect([site.acted, site.queue.length]).to.deep.equal([[], 1]);
      });

    it('none is removed of which it is not known when it was submitted', async () => {
      for (const QDate of ['/Expr(time())/', undefined]) {
        site.queue = [jobOf({ QDate })];
        const outcome = await site.sweeper.removeOrphan(await listed(), signal);
        expect(outcome).to.have.nested.property('error.message').that.contains('condor_rm');
        expect(site.acted).to.deep.equal([]);
      }
    });
  });

  it('removes the jobs of workers by when they were submitted, too', async () => {
    const site = new Site();
    site.queue = [jobOf(markOf(1))];
    site.onAct = () => {
      site.queue = [];
    };
    expect((await site.sweeper.kill([worker], signal)).get(1)).to.deep.equal({ kind: 'gone' });
    expect(site.acted[0]).to.contain(`QDate == ${before}`);
  });

  it('gives a number again, and a job with it that has no mark is not that of the worker', async () => {
    const site = new Site();
    site.queue = [jobOf(markOf(1))];
    await site.look();
    site.queue = [jobOf({})];
    expect((await site.said())['check']).to.equal('observed');
    site.queue = [jobOf({ QDate: later })];
    expect((await site.said())['check']).to.equal('absent');
    expect((await site.sweeper.kill([worker], signal)).get(1)).to.deep.equal({ kind: 'gone' });
    expect(site.acted).to.deep.equal([]);
  });

  it('lists nothing where it was started again meanwhile: the answer may be that of another queue', async () => {
    const site = new Site();
    await site.look();
    const queueAs = site.schedd.client.queueAs.bind(site.schedd.client);
    Object.assign(site.schedd.client, {
      queueAs: async (...args: Parameters<typeof queueAs>) => {
        site.started++;
        return queueAs(...args);
      },
    });
    expect(await rejection(site.sweeper.list(signal))).to.have.property('code', 'condor-answer');
  });
});
