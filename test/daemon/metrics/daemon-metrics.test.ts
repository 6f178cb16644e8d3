import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { codeLabels, loopLabels, processMetrics } from '../../../src/daemon/metrics/daemon-metrics.ts';
import { makeFamilies } from '../../../src/daemon/metrics/metric-families.ts';
import type { SubmitOutcome } from '../../../src/plugins/contracts/index.ts';
import type { FinalStatus } from '../../../src/worker/status.ts';
import { workerOf } from '../../support/samples.ts';
import { loopHealth, ServedSample } from '../../support/served.ts';

describe('metrics', () => {
  let served: ServedSample;

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
  });

  afterEach(() => served.store.close());

  /** The daemon's own lines, without comments. */
  async function lines(): Promise<string[]> {
    const { metrics, store, factoryId, version } = served;
    const [health, credentials] = [served.health(), served.credentials()];
    const [services, waiting, gauges] = [served.services(), served.waiting(), served.gauges()];
    const leads = served.leader() === undefined;
    const sources = { store, factoryId, version, leads, health, credentials, services, waiting, gauges };
    const text = await metrics.text(sources);
    return text.split('\n').filter((line) => line.startsWith('thresher_'));
  }
  const outcome = (kind: SubmitOutcome['kind'], code = ''): SubmitOutcome =>
    kind === 'accepted'
      ? { kind, handle: { batchID: 'b' } }
      : { kind, permanent: false, error: { code, message: 'm' } };
  const ended = (queue: string, to: FinalStatus, code?: string) => {
    const workers = [{ workerId: 1, queue, from: 'running' as const, to, code }];
    served.events.emit('workersChanged', { workers });
  };
  const observation = (observedAt: number) => ({
    ...({ workerId: 1, status: 'running', nativeStatus: 'running' } as const),
    observedAt,
  });

  it('say whether this daemon leads', async () => {
    expect(await lines()).to.include('thresher_leader 1');
    served.holder = { holder: 'ce02 pid 812', since: '2026-11-23T10:00:00Z' };
    expect(await lines()).to.include('thresher_leader 0');
  });

  it('show living workers as the database has them, and 0 where there are none', async () => {
    const shown = await lines();
    expect(shown).to.include.members([
      'thresher_workers{queue="Q",status="pending"} 1',
      'thresher_workers{queue="Q",status="running"} 1',
      'thresher_workers{queue="Q",status="idle"} 0',
      'thresher_workers_at_computing_element{queue="Q",ce="ce.site.test:9619",status="running"} 1',
      'thresher_info{version="1.2.3",factory="factory"} 1',
      'thresher_orphans 0',
      'thresher_queue_limited{queue="Q",reason="max-workers"} 1',
      'thresher_queue_limited{queue="Q",reason="paused"} 1',
      'thresher_queue_limit{queue="Q",limit="maxWorkers"} 2',
    ]);
    expect(shown.join('\n')).not.to.contain('limit="nQueueLimitWorker"');
    expect(shown).to.include('thresher_workers{queue="OTHER/<b>\\"x\\"",status="running"} 0');
  });

  it('show a computing element only while workers live there', async () => {
    const end = { workerId: 1, from: 'running', to: 'finished', at: 5, source: 'monitor' } as const;
    await served.store.workers.apply([end]);
    expect((await lines()).join('\n')).not.to.contain('ce.site.test');
  });

  it('count ends and submissions, each from 0 on, and why they went wrong', async () => {
    expect(await lines()).to.include.members([
      'thresher_workers_ended_total{queue="Q",status="failed"} 0',
      'thresher_submissions_total{queue="Q",outcome="accepted"} 0',
    ]);
    const workers = [1, 2, 3, 4].map((id) => workerOf(id));
    const outcomes = new Map([
      [1, outcome('accepted')],
      [2, outcome('rejected', 'submit-failed')],
      [3, outcome('unknown', 'plugin-timeout')],
    ]);
    served.events.emit('submissionAnswered', { queue: 'Q', workers, outcomes });
    ended('Q', 'finished');
    ended('Q', 'failed', 'exit-status');
    ended('Q', 'failed', 'exit-status');
    ended('Q', 'missed');
    // Ended by an operator: no failure.
    ended('Q', 'cancelled', 'killed');
    const shown = await lines();
    expect(shown).to.include.members([
      'thresher_submissions_total{queue="Q",outcome="accepted"} 1',
      'thresher_submissions_total{queue="Q",outcome="rejected"} 1',
      'thresher_submissions_total{queue="Q",outcome="unknown"} 2',
      'thresher_workers_ended_total{queue="Q",status="finished"} 1',
      'thresher_workers_ended_total{queue="Q",status="failed"} 2',
      'thresher_workers_ended_total{queue="Q",status="cancelled"} 1',
      'thresher_failures_total{queue="Q",code="submit-failed"} 1',
      'thresher_failures_total{queue="Q",code="plugin-timeout"} 1',
      'thresher_failures_total{queue="Q",code="exit-status"} 2',
      'thresher_failures_total{queue="Q",code="none"} 2',
    ]);
    expect(shown.join('\n')).not.to.contain('code="killed"');
  });

  it('forget a queue that vanished, and a loop that did', async () => {
    ended('GONE', 'failed', 'exit-status');
    ended('Q', 'failed', 'exit-status');
    for (const loop of ['submit GONE', 'submit Q', 'submit Q (configuration 3)']) {
      served.events.emit('passEnded', { loop, duration: 1, failed: true });
    }
    const shown = (await lines()).join('\n');
    expect(shown).not.to.contain('GONE');
    expect(shown).to.contain('thresher_loop_failures_total{kind="submit",target="Q"} 2');
    await served.store.queues.forget('OTHER/<b>"x"');
    served.loops = [];
    const later = (await lines()).join('\n');
    expect(later).not.to.contain('OTHER');
    expect(later).not.to.contain('target="Q"');
    expect(later).to.contain('code="exit-status"');
  });

  it('show how long passes took, and since when none has ended; of several configurations the worst', async () => {
    const now = served.clock.now();
    served.loops = [
      loopHealth('submit Q', { endedAt: now - 2000 }),
      loopHealth('submit Q (configuration 3)', { endedAt: now - 7000, stuckFor: 60_000 }),
      loopHealth('sweep Q', { startedAt: now - 1000, endedAt: undefined }),
      loopHealth('monitor local:/work', { endedAt: undefined }),
      loopHealth('commands', { endedAt: now + 5 }),
    ];
    served.events.emit('passEnded', { loop: 'sweep Q', duration: 30, failed: false });
    const shown = await lines();
    expect(shown).to.include.members([
      'thresher_loop_age_seconds{kind="submit",target="Q"} 7',
      'thresher_loop_age_seconds{kind="sweep",target="Q"} 1',
      'thresher_loop_age_seconds{kind="commands",target=""} 0',
      'thresher_loop_stuck{kind="submit",target="Q"} 1',
      'thresher_loop_stuck{kind="monitor",target="local:/work"} 0',
      'thresher_loop_duration_seconds_bucket{le="0.025",kind="sweep",target="Q"} 0',
      'thresher_loop_duration_seconds_bucket{le="0.1",kind="sweep",target="Q"} 1',
      'thresher_loop_duration_seconds_sum{kind="sweep",target="Q"} 0.03',
    ]);
    expect(shown.filter((line) => /age_seconds.*monitor/.test(line))).to.deep.equal([]);
  });

  it('measure how long an observation took into the database, whatever a plugin calls a time', async () => {
    const now = served.clock.now();
    const odd = [NaN, undefined as unknown as number, now + 60_000];
    const observations = [now - 40, ...odd].map(observation);
    served.events.emit('observationsWritten', { observations, at: now });
    const shown = await lines();
    expect(shown).to.include.members([
      'thresher_observation_to_database_seconds_bucket{le="0.025"} 1',
      'thresher_observation_to_database_seconds_bucket{le="0.05"} 2',
      'thresher_observation_to_database_seconds_count 2',
    ]);
  });

  it('tell only so many codes of third parties apart', () => {
    const label = codeLabels();
    for (let number = 0; number < 1000; number++) label(`quota-${number}`);
    expect([label('quota-0'), label('quota-49'), label('quota-50'), label('plugin-timeout')]).to.deep.equal([
      ...['quota-0', 'quota-49', 'other', 'plugin-timeout'],
    ]);
    expect([label(undefined), label(''), label('constructor')]).to.deep.equal(['none', 'none', 'other']);
  });

  it('say how long each credential lasts, nothing where it has no end, and which are not good', async () => {
    const facts = { kind: 'x509', subject: 'CN=Jane', digest: 'd' } as const;
    const now = served.clock.now();
    const state = (name: string, expiresAt?: number) => ({
      name,
      manager: 'M',
      state: {
        ...({ kind: 'there', warnings: [] } as const),
        facts: { name, ...facts, ...(expiresAt !== undefined && { expiresAt }) },
      },
    });
    const error = { code: 'credential-missing', message: 'm' };
    served.known = [
      ...[state('/p', now + 90_000), state('/old', now - 5000), state('/endless')],
      { name: '/gone', manager: 'M', state: { kind: 'broken', name: '/gone', error }, trouble: error },
    ];
    expect((await lines()).filter((line) => line.includes('credential'))).to.deep.equal([
      'thresher_credential_remaining_seconds{credential="/p",manager="M"} 90',
      'thresher_credential_remaining_seconds{credential="/old",manager="M"} -5',
      'thresher_credential_good{credential="/p",manager="M"} 1',
      'thresher_credential_good{credential="/old",manager="M"} 0',
      'thresher_credential_good{credential="/endless",manager="M"} 1',
      'thresher_credential_good{credential="/gone",manager="M"} 0',
      'thresher_credential_renewal_failing{credential="/p",manager="M"} 0',
      'thresher_credential_renewal_failing{credential="/old",manager="M"} 0',
      'thresher_credential_renewal_failing{credential="/endless",manager="M"} 0',
      'thresher_credential_renewal_failing{credential="/gone",manager="M"} 1',
    ]);
    served.known = [];
    expect((await lines()).filter((line) => line.includes('credential'))).to.be.empty;
  });

  it('name loops by kind and target', () => {
    expect(loopLabels('submit CERN PROD (configuration 12)')).to.deep.equal({
      kind: 'submit',
      target: 'CERN PROD',
    });
    expect(loopLabels('commands')).to.deep.equal({ kind: 'commands', target: '' });
  });

  it('of the process are made once, however many daemons there are', () => {
    expect(processMetrics()).to.equal(processMetrics());
  });

  it('are all in docs/http.md, and no others', () => {
    const page = readFileSync(resolve(import.meta.dirname, '../../../docs/http.md'), 'utf8');
    const named = new Set([...page.matchAll(/^\| `(thresher_\w+)`/gm)].map(([, name]) => name));
    const made = makeFamilies()
      .registry.getMetricsAsArray()
      .map(({ name }) => name);
    expect([...named]).to.have.members(made);
  });
});
