import { expect } from 'chai';
import type { Fault } from '../support/fault-proxy.ts';
import type { PandaCallName } from '../support/panda-proxy.ts';
import { PandaSite } from '../support/panda-site.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

const ordered = 3;

interface CrashPoint {
  readonly title: string;
  /** A step of the daemon, or of its files. */
  readonly step?: string;
  /** Or a call: SIGKILL comes before the server sees it, or after the server has acted and before its answer. */
  readonly call?: readonly [kind: 'cut-before' | 'cut-after', name: PandaCallName, after?: PandaCallName];
  /** The server gave the order, and nothing knows of it: the server gives another one. */
  readonly lost?: boolean;
  /** The daemon comes to it only once a pilot has ended. */
  readonly atEnd?: boolean;
}

const stored = 'link.json SET_N_WORKERS_JOBTYPE';

/** Where a daemon may die on the way from an order of the server to the last report. */
const points: readonly CrashPoint[] = [
  { title: 'before its poll reaches the server', call: ['cut-before', 'acquire_commands'] },
  { title: 'before the commands reach it', call: ['cut-after', 'acquire_commands'], lost: true },
  { title: 'before it stores the commands', step: `before ${stored}`, lost: true },
  { title: 'after it has stored the commands', step: `after ${stored}` },
  { title: 'before it acknowledges', call: ['cut-before', 'acknowledge_commands'] },
  { title: 'after it has acknowledged', call: ['cut-after', 'acknowledge_commands'] },
  { title: 'before the intents', step: 'submit:before-intent' },
  { title: 'after the intents', step: 'submit:after-intent' },
  { title: 'before the outcomes are written', step: 'submit:before-outcome' },
  { title: 'after the outcomes are written', step: 'submit:after-outcome' },
  { title: 'before the news', step: 'news:before-told' },
  { title: 'before its report reaches the server', call: ['cut-before', 'update_workers'] },
  { title: 'before the answer to its report', call: ['cut-after', 'update_workers'] },
  { title: 'before the news are ticked off', step: 'news:before-taken' },
  {
    title: 'before it reports statistics of the order',
    call: ['cut-before', 'report_worker_statistics', 'acknowledge_commands'],
  },
  {
    title: 'before the answer to the statistics of the order',
    call: ['cut-after', 'report_worker_statistics', 'acknowledge_commands'],
  },
];

/** Those after which the database may be lost, too, and workers or the order are all that is left. */
const withoutDatabase = points.filter(({ title }) =>
  /stored the commands|after the intents|before the outcomes|after the outcomes|answer to its report/.test(
    title,
  ),
);

describe('an order of a real PanDA server for three workers', () => {
  let panda: PandaSite;

  afterEach(() => panda.clean());

  /** Runs a daemon until it dies at the point. */
  async function crash({ step, call }: CrashPoint): Promise<void> {
    const started: { daemon?: RunningDaemon } = {};
    if (call !== undefined) {
      const [kind, name, after] = call;
      const fault: Fault = { kind, first: () => started.daemon?.process.kill('SIGKILL') };
      panda.proxy.inject(name, fault, { times: 1, ...(after !== undefined && { after }) });
    }
    const daemon = step === undefined ? panda.site.start() : panda.site.startCrashingAt(step);
    started.daemon = daemon;
    expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
    panda.proxy.heal();
  }

  for (const database of ['kept', 'removed'] as const) {
    for (const point of database === 'kept' ? points : withoutDatabase) {
      it(`gets them once through SIGKILL ${point.title}, the database ${database}`, async () => {
        panda = await PandaSite.start();
        panda.order({ SCORE: ordered });
        await crash(point);
        if (database === 'removed') panda.site.removeDatabase();

        const restarted = panda.site.start();
        if (point.lost === true) {
          await until('the link lives', () => panda.proxy.count('acquire_commands', true) > 2);
          expect(panda.starts(), 'workers of an order that was never stored').to.equal(0);
          panda.order({ SCORE: ordered });
        }
        const running = await panda.untilServerHas(ordered, 'running');
        expect(new Set(running.map(({ resourcetype }) => resourcetype))).to.deep.equal(new Set(['SCORE']));
        // As many as it ordered, in whatever state: from these numbers it makes its next order.
        const counted = async () =>
          Object.values((await panda.statistics()) ?? {}).reduce((sum, n) => sum + n, 0);
        await until('the server counts them', async () => (await counted()) === ordered);
        panda.letEnd();
        await panda.untilServerHas(ordered, 'finished');
        // Each pilot makes its own mark.
        expect(Object.fromEntries(panda.site.starts())).to.deep.equal(
          Object.fromEntries(running.map(({ workerid }) => [workerid, 1])),
        );
        expect(await panda.site.workers()).to.have.length(ordered);
        const commands = await panda.commands();
        expect(commands.map(({ status }) => status)).to.not.include('new');
        restarted.process.kill('SIGTERM');
        expect(await restarted.ended, restarted.output()).to.equal(0);
      });
    }
  }
});
