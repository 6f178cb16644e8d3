import type { KnownCredential } from '../../src/agents/credentials/credential-board.ts';
import { factoryEvents } from '../../src/agents/events.ts';
import type { LoopHealth } from '../../src/agents/loop.ts';
import { WaitingBoard, type WaitingCount } from '../../src/agents/sources/waiting-board.ts';
import type { ServiceHealth } from '../../src/daemon/services/service.ts';
import { DaemonMetrics } from '../../src/daemon/metrics/daemon-metrics.ts';
import type { PandaView } from '../../src/daemon/panda-view.ts';
import { OperatorDesk } from '../../src/daemon/requests/operator-desk.ts';
import type { Served } from '../../src/http/served.ts';
import type { LogReader, SourceGauge } from '../../src/plugins/contracts/index.ts';
import type { LeaseHolder } from '../../src/store/lease-holder.ts';
import type { WorkerRecord } from '../../src/store/rows.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { ManualClock } from './manual-clock.ts';
import { recordingLog, workerOf } from './samples.ts';

/** A loop whose passes go well. */
export function loopHealth(name: string, changes: Partial<LoopHealth> = {}): LoopHealth {
  const well = { startedAt: 1, endedAt: 2, failures: 0, lastError: undefined, stuckFor: undefined };
  return { name, ...well, ...changes };
}

/** What an HTTP server shows, without a daemon: a store that tests fill, loops and logs as they say. */
export class ServedSample implements Served {
  readonly ownNames = ['127.0.0.1', 'this-host'];
  readonly clock = new ManualClock();
  readonly log = recordingLog();
  readonly metrics = new DaemonMetrics(this.clock);
  readonly events = factoryEvents(this.log);
  readonly factoryId = 'factory';
  readonly version = '1.2.3';
  readonly store: Store;
  readonly requests: OperatorDesk;
  /** The queues whose submitters were woken. */
  readonly woken: string[] = [];
  /** Why requests wait, as passes leave it. */
  readonly board = new WaitingBoard();
  loops: LoopHealth[] = [loopHealth('list here'), loopHealth('submit Q')];
  known: KnownCredential[] = [];
  at: ServiceHealth[] = [{ name: 'queues', state: 'up', since: 1 }];
  asked: WaitingCount[] = [];
  shown: SourceGauge[] = [];
  ended = false;
  holder: LeaseHolder | undefined;
  htcJobs: Served['htcJobs'];
  askSource: Served['askSource'] = async () => undefined;
  link: PandaView = { server: null, login: null, daemonRuns: true, link: null, outbox: null };
  logs: LogReader = {
    async *read() {
      throw new ThresherError('no-log', 'there is none');
    },
  };

  rendered: (workerId: number) => Promise<string> = async () => {
    throw new ThresherError('no-render', 'its backend shows nothing');
  };

  static async make(): Promise<ServedSample> {
    return new ServedSample(await openStore(':memory:', 'factory'));
  }

  private constructor(store: Store) {
    this.store = store;
    this.requests = new OperatorDesk({
      store: store.requests,
      clock: this.clock,
      random: Math.random,
      reports: () => store.queues.all(),
      why: (queue, id) => this.board.reasonsOf(queue, 'request', id),
      wakeSubmitter: (queue) => this.woken.push(queue),
      failed: (error) => {
        throw error;
      },
    });
    this.metrics.subscribeTo(this.events);
  }

  async logsOf(): Promise<LogReader> {
    return this.logs;
  }

  async renderedOf({ workerId }: WorkerRecord): Promise<string> {
    return this.rendered(workerId);
  }

  health(): LoopHealth[] {
    return this.loops;
  }

  credentials(): KnownCredential[] {
    return this.known;
  }

  services(): ServiceHealth[] {
    return this.at;
  }

  waiting(): WaitingCount[] {
    return this.asked;
  }

  gauges(): SourceGauge[] {
    return this.shown;
  }

  async panda(): Promise<PandaView> {
    return this.link;
  }

  leader(): LeaseHolder | undefined {
    return this.holder;
  }

  stopping(): boolean {
    return this.ended;
  }

  /** Two queues; Q has a worker that runs and one that failed, and says why it stands still. */
  async fill(): Promise<void> {
    const { store, clock } = this;
    const at = clock.now();
    const report = {
      queueStatus: 'online',
      limits: { maxWorkers: 2, nQueueLimitWorker: null },
      reportTime: at,
    };
    const reasons = [
      { code: 'max-workers', message: '2 of <maxWorkers> are alive' },
      { code: 'paused', message: 'paused & so on' },
    ];
    await store.queues.report({ ...report, queue: 'Q', reasons });
    await store.queues.report({ ...report, queue: 'OTHER/<b>"x"', reasons: [] });
    await store.workers.insert([workerOf(1), workerOf(2), workerOf(3)], 'pending', at, 'submitter');
    const common = { at, source: 'monitor', from: 'pending' } as const;
    await store.workers.apply([
      {
        ...common,
        workerId: 1,
        to: 'running',
        startTime: at,
        handle: '{"batchID":"b1","pid":7}',
        computingElement: 'ce.site.test:9619',
      },
      {
        ...common,
        workerId: 2,
        to: 'failed',
        endTime: at,
        exitCode: 3,
        detail: '{"a":[1]}',
        error: { code: 'exit-status', message: 'ended with <script>alert(1)</script>' },
      },
    ]);
  }
}

/** A link to a PanDA server at that time, ms UTC, which gives no commands. */
export function linkedView(now: number): PandaView {
  const at = (minutes: number) => new Date(now - minutes * 60_000).toISOString();
  return {
    server: 'https://panda.example.org:25443/api/v1',
    login: {
      kind: 'x509',
      file: '/run/proxy',
      subject: '/CN=pilots',
      expires: at(-60),
      remaining: 3600,
      problem: null,
    },
    daemonRuns: true,
    link: {
      at: at(0),
      url: 'https://panda.example.org:25443/api/v1',
      harvesterId: 'cern-1',
      started: at(60),
      starting: null,
      answered: { heartbeat: at(4), commands: at(2) },
      failures: [
        {
          call: 'commands',
          since: at(2),
          code: 'panda-role',
          message: 'production <role> required',
          remedy: 'Use a proxy with it.',
        },
      ],
      commands: [{ at: at(3), id: 7, command: 'KILL_WORKERS', outcome: '2 workers are asked to end' }],
      sites: [
        {
          site: 'SITE',
          queues: ['SITE'],
          statistics: at(5),
          order: { created: at(3), taken: at(3), said: { SCORE: 3 }, wanted: { SCORE: 2 }, rest: 1 },
          jobs: null,
        },
        {
          site: 'SELF',
          queues: ['SELF'],
          statistics: null,
          order: null,
          jobs: { activated: 7, at: at(1), instances: null },
        },
      ],
      reports: { lastTaken: at(1), taken: 12, refused: [3] },
    },
    outbox: { waiting: 5, oldest: at(10) },
  };
}
