import { expect } from 'chai';
import type { AgentStore } from '../../../src/agents/agent-store.ts';
import { PrunerAgent, retentionAt } from '../../../src/agents/sweeping/pruner-agent.ts';
import { Progress } from '../../../src/agents/loop.ts';
import { Settings } from '../../../src/config/settings/settings-schema.ts';
import type { Between, Pruned, Retention } from '../../../src/store/retention.ts';
import { BelievedClock } from '../../../src/util/clock.ts';
import { check } from '../../../src/util/schema.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

const hour = 3_600_000;
const settingsOf = (sweeper: object, master: object = {}): Settings => {
  const checked = check(Settings, { sweeper, master });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return checked.value;
};

describe('the retention of rows', () => {
  const now = 1000 * hour;

  it('lets rows go whose traces are not kept any more, by status', () => {
    const keep = { keepFinished: 30, keepFailed: 40, keepCancelled: 50, keepMissed: 60 };
    expect(retentionAt(now, settingsOf(keep), new Set([7]))).to.deep.include({
      endedBefore: { finished: 970 * hour, failed: 960 * hour, cancelled: 950 * hour, missed: 940 * hour },
      unusedBefore: 976 * hour,
      currentConfigs: new Set([7]),
    });
  });

  it('keeps rows as long as throttlers look back, however short traces are kept', () => {
    const settings = settingsOf({ keepFinished: 0, keepMissed: 0, keepFailed: 6, keepRows: 5 });
    expect(retentionAt(now, settings, undefined).endedBefore).to.deep.equal({
      finished: 995 * hour,
      failed: 994 * hour,
      cancelled: 928 * hour,
      missed: 995 * hour,
    });
  });

  it('keeps rows that were swept less than two listings ago', () => {
    const settings = settingsOf({ listInterval: 600 }, { pluginTimeout: 60 });
    expect(retentionAt(now, settings, undefined).sweptBefore).to.equal(now - 1_320_000);
  });
});

describe('the pruner', () => {
  const pruned: Pruned = {
    workers: { finished: 3, failed: 0, cancelled: 0, missed: 1 },
    configs: 0,
    commands: 2,
  };

  /** `left`: payloads that were still there, although no worker needed them. */
  function pruner(prune: (retention: Retention, between: Between) => Promise<Pruned>, left = 0) {
    const log = recordingLog();
    const clock = new ManualClock(5000);
    const progress = new Progress(clock);
    let made = 0;
    progress.made = () => {
      made++;
    };
    const payloads = { wipeUnneeded: async () => left };
    const store = { retention: { prune }, payloads } as unknown as Pick<AgentStore, 'retention' | 'payloads'>;
    const believed = new BelievedClock(clock, log);
    const agent = new PrunerAgent({ log, believed, progress, store }, (now) =>
      retentionAt(now, settingsOf({ keepRows: 0 }), new Set()),
    );
    return { agent, log, clock, made: () => made };
  }

  it('leaves a daemon that starts alone, and deletes from its second pass on', async () => {
    const asked: Retention[] = [];
    const { agent, log } = pruner(async (retention) => {
      asked.push(retention);
      return pruned;
    });
    const { signal } = new AbortController();
    await agent.pass(signal);
    expect(asked).to.deep.equal([]);
    await agent.pass(signal);
    await agent.pass(signal);
    expect(asked.map(({ unusedBefore }) => unusedBefore)).to.deep.equal([5000 - 24 * hour, 5000 - 24 * hour]);
    expect(log.lines[0]).to.deep.equal({
      level: 'info',
      message: 'pruned the database',
      facts: { finished: 3, failed: 0, cancelled: 0, missed: 1, configs: 0, commands: 2 },
    });
  });

  it('deletes nothing because the clock jumped ahead for a pass', async () => {
    const asked: Retention[] = [];
    const { agent, clock } = pruner(async (retention) => {
      asked.push(retention);
      return pruned;
    });
    const { signal } = new AbortController();
    await agent.pass(signal);
    clock.ahead = 8 * 24 * hour;
    await agent.pass(signal);
    expect(asked.map(({ endedBefore }) => endedBefore.failed)).to.deep.equal([5000 - 72 * hour]);
  });

  it('wipes payloads that were left over, and says so: no change of a worker should leave any', async () => {
    const { agent, log } = pruner(async () => pruned, 2);
    const { signal } = new AbortController();
    await agent.pass(signal);
    expect(log.lines).to.deep.equal([]);
    await agent.pass(signal);
    expect(log.lines).to.deep.include({
      level: 'warn',
      message: 'wiped payloads that no worker needed',
      facts: { payloads: 2 },
    });
  });

  it('says nothing when there was nothing, makes progress with each step, and ends with its daemon', async () => {
    const stop = new AbortController();
    const goesOn: boolean[] = [];
    const { agent, log, made } = pruner(async (_, between) => {
      goesOn.push(await between());
      stop.abort();
      goesOn.push(await between());
      return { workers: { finished: 0, failed: 0, cancelled: 0, missed: 0 }, configs: 0, commands: 0 };
    });
    await agent.pass(stop.signal);
    await agent.pass(stop.signal);
    expect(goesOn).to.deep.equal([true, false]);
    expect(made()).to.equal(2);
    expect(log.lines).to.deep.equal([]);
  });
});
