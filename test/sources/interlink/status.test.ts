import { expect } from 'chai';
import type { ContainerState } from '../../../src/clients/interlink/wire.ts';
import type { PodFacts } from '../../../src/sources/interlink/pods/facts.ts';
import { PodStatuses } from '../../../src/sources/interlink/status/pod-statuses.ts';
import { TrackedPod } from '../../../src/sources/interlink/pods/tracked-pod.ts';
import { nextTurn } from '../../../src/util/clock.ts';
import { podOf } from '../../support/interlink-client.ts';
import { charactersLookedAt } from '../../support/masked-characters.ts';
import {
  type ContainerReport,
  type PodReport,
  readReport,
} from '../../../src/sources/interlink/pod/report.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { statusOf, vanished } from '../../../src/sources/interlink/status/status.ts';

const begun = Date.UTC(2026, 10, 20, 10, 0, 0);
const ended = Date.UTC(2026, 10, 20, 11, 0, 0);
const pod = {
  uid: 'u',
  name: 'pod',
  namespace: 'default',
  containers: [{ name: 'main', image: 'busybox' }],
  initContainers: [],
};

function facts(status: PodFacts['status'], more: Partial<PodFacts> = {}): PodFacts {
  return {
    workerId: 1,
    status,
    native: null,
    exitCode: null,
    message: null,
    batchId: '7.0',
    startTime: begun,
    endTime: ended,
    ...more,
  };
}

function told(container: Partial<ContainerReport>): PodReport {
  return {
    version: 1,
    containers: { main: { init: false, state: 'running', ready: true, restarts: 0, ...container } },
  };
}

interface Row {
  readonly title: string;
  readonly facts?: PodFacts;
  readonly report?: PodReport;
  readonly why?: string;
  readonly state: ContainerState;
}

const times = { startedAt: '2026-11-20T10:00:00Z', finishedAt: '2026-11-20T11:00:00Z' };
const unsaid = 'the job ended, and did not say how this container ended';

const table: readonly Row[] = [
  {
    title: 'a Pod without a job waits, with the reason of its queue',
    why: 'the queue is full',
    state: { waiting: { reason: 'ContainerCreating', message: 'the queue is full' } },
  },
  {
    title: 'a job that was submitted waits',
    facts: facts('submitted'),
    state: { waiting: { reason: 'ContainerCreating' } },
  },
  {
    title: 'a held job waits, with the reason of its hold (A4)',
    facts: facts('idle', { native: 'held', message: 'no such file' }),
    state: { waiting: { reason: 'JobHeld', message: 'no such file' } },
  },
  {
    title: 'a running job without a report runs',
    facts: facts('running'),
    state: { running: { startedAt: '2026-11-20T10:00:00Z' } },
  },
  {
    title: 'a container runs since the time that it reports',
    facts: facts('running'),
    report: told({ startedAt: '2026-11-20T10:05:00Z' }),
    state: { running: { startedAt: '2026-11-20T10:05:00Z' } },
  },
  {
    title: 'a container whose probes have not succeeded waits (A20)',
    facts: facts('running'),
    report: told({ ready: false }),
    state: { waiting: { reason: 'Waiting for probes to be ready.' } },
  },
  {
    title: 'a container that has not begun in a running job waits',
    facts: facts('running'),
    report: told({ state: 'waiting', ready: false, reason: 'PodInitializing' }),
    state: { waiting: { reason: 'PodInitializing' } },
  },
  {
    title: 'a container that ended with 0 succeeded, while its job still runs',
    facts: facts('running'),
    report: told({ state: 'terminated', exitCode: 0, ready: false, ...times }),
    state: { terminated: { exitCode: 0, reason: 'Completed', ...times } },
  },
  {
    title: 'the code of a container counts, and not that of its job (A6)',
    facts: facts('finished', { exitCode: 0 }),
    report: told({ state: 'terminated', exitCode: 3, ready: false, ...times }),
    state: { terminated: { exitCode: 3, reason: 'Error', ...times } },
  },
  {
    title: 'a signal is never a success (A5)',
    facts: facts('finished', { exitCode: 0 }),
    report: told({ state: 'terminated', exitCode: 0, signal: 9, ready: false, ...times }),
    state: { terminated: { exitCode: 137, signal: 9, reason: 'Error', ...times } },
  },
  {
    title:
      'an end that the job was told is none until the job has ended: it may be evicted, and starts again then',
    facts: facts('running'),
    report: told({
      state: 'terminated',
      exitCode: 143,
      reason: 'Terminated',
      startedAt: '2026-11-20T10:05:00Z',
    }),
    state: { running: { startedAt: '2026-11-20T10:05:00Z' } },
  },
  {
    title: 'an end that the job was told has its code, and the reason that its job has',
    facts: facts('cancelled', { message: 'via condor_rm' }),
    report: told({ state: 'terminated', exitCode: 143, signal: 15, reason: 'Terminated', ...times }),
    state: {
      terminated: { exitCode: 143, signal: 15, reason: 'Terminated', message: 'via condor_rm', ...times },
    },
  },
  {
    title: 'a suspended job runs',
    facts: facts('idle', { native: 'suspended' }),
    state: { running: { startedAt: '2026-11-20T10:00:00Z' } },
  },
  {
    title: 'a job that finished without a word of the container is no success',
    facts: facts('finished', { exitCode: 0 }),
    state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', message: unsaid, ...times } },
  },
  {
    title: 'a removed job is terminated by a kill (A5)',
    facts: facts('cancelled', { message: 'via condor_rm' }),
    report: told({}),
    state: {
      terminated: {
        exitCode: 137,
        reason: 'Cancelled',
        message: 'via condor_rm',
        finishedAt: times.finishedAt,
        startedAt: times.startedAt,
      },
    },
  },
  {
    title: 'a job that failed has its exit code',
    facts: facts('failed', { exitCode: 143, message: 'out of memory' }),
    state: { terminated: { exitCode: 143, reason: 'Error', message: 'out of memory', ...times } },
  },
  {
    title: 'a job that vanished is terminated (A8)',
    facts: facts('missed', { message: 'it is not in the queue' }),
    state: {
      terminated: {
        exitCode: 137,
        reason: 'ContainerStatusUnknown',
        message: 'it is not in the queue',
        ...times,
      },
    },
  },
  {
    title: 'a Pod that was withdrawn before it had a job is terminated',
    facts: facts('withdrawn', { startTime: null, endTime: null, message: 'the queue is gone' }),
    state: { terminated: { exitCode: 137, reason: 'Cancelled', message: 'the queue is gone' } },
  },
];

describe('the status of a Pod of interLink', () => {
  for (const { title, facts: known, report, why, state } of table)
    it(title, () => {
      const { containers } = statusOf(pod, report, known, why);
      expect(containers).to.have.length(1);
      expect(containers[0]?.state).to.deep.equal(state);
    });

  it('has all fields that Kubernetes requires of a container, with times in UTC and whole seconds', () => {
    const whole = { ...pod, initContainers: [{ name: 'prepare', image: 'docker://busybox' }] };
    const report: PodReport = {
      version: 1,
      containers: {
        prepare: { init: true, state: 'terminated', exitCode: 0, ready: true, restarts: 0, ...times },
        main: { init: false, state: 'running', ready: true, restarts: 0 },
      },
    };
    expect(statusOf(whole, report, facts('running', { startTime: begun + 999 }))).to.deep.equal({
      name: 'pod',
      UID: 'u',
      namespace: 'default',
      JID: '7.0',
      containers: [
        {
          name: 'main',
          ready: true,
          restartCount: 0,
          started: true,
          image: 'busybox',
          imageID: 'busybox',
          state: { running: { startedAt: times.startedAt } },
        },
      ],
      initContainers: [
        {
          name: 'prepare',
          ready: true,
          restartCount: 0,
          started: false,
          image: 'docker://busybox',
          imageID: 'docker://busybox',
          state: { terminated: { exitCode: 0, reason: 'Completed', ...times } },
        },
      ],
    });
  });

  it('A7: after an init container that failed, the others never started, and end without success', () => {
    const withInit = { ...pod, initContainers: [{ name: 'prepare', image: 'busybox' }] };
    const report: PodReport = {
      version: 1,
      containers: {
        prepare: { init: true, state: 'terminated', exitCode: 4, ready: false, restarts: 0 },
        main: { init: false, state: 'waiting', ready: false, restarts: 0 },
      },
    };
    const status = statusOf(withInit, report, facts('failed', { exitCode: 4 }));
    expect(status.initContainers[0]?.state.terminated?.exitCode).to.equal(4);
    expect(status.containers[0]?.state.terminated).to.include({
      exitCode: 1,
      message: 'init container prepare ended with 4, so this container never started',
    });
  });

  it('shows no login of ours in a message that the virtual kubelet writes into the Pod', () => {
    const secret = 'opaque-2a8d6e1f9c4b7035';
    rememberSecret(secret);
    const message = `refused: Bearer ${secret}`;
    for (const status of [
      statusOf(pod, undefined, undefined, message),
      statusOf(pod, undefined, facts('running'), undefined, message),
      statusOf(pod, undefined, facts('failed', { message })),
      statusOf(pod, told({ state: 'terminated', exitCode: 1, message }), facts('failed')),
    ])
      expect(JSON.stringify(status)).to.contain('refused: Bearer (hidden)').and.not.contain(secret);
  });

  it('lists every container of a Pod that vanished, with a code that is no success', () => {
    const { containers, JID } = vanished(pod, '7.0', 'nothing is known of it');
    expect(JID).to.equal('7.0');
    expect(containers.map(({ state }) => state.terminated?.exitCode)).to.deep.equal([137]);
  });

  it('never shows 0 unless the container said so, whatever the job and the report say', () => {
    const statuses = ['pending', 'submitted', 'idle', 'ready', 'running', 'finished', 'failed', 'cancelled'];
    for (const status of [...statuses, 'missed', 'withdrawn'] as PodFacts['status'][])
      for (const exitCode of [null, 0, 1, -9, 300])
        for (const report of [
          undefined,
          told({}),
          told({ state: 'waiting' }),
          told({ state: 'terminated' }),
        ]) {
          const { containers } = statusOf(pod, report, facts(status, { exitCode }));
          const [state] = containers.map((one) => one.state);
          expect(Object.keys(state ?? {})).to.have.length(1);
          if (state?.terminated !== undefined) expect(state.terminated.exitCode).to.be.greaterThan(0);
        }
  });
});

describe('hole 8: a question for the statuses of many Pods whose containers ended with long messages', () => {
  /** Pods with these containers, whose messages have so many characters each. */
  function ending(count: number, containers: number, characters: number) {
    const named = Array.from({ length: count }, (_, at) => podOf(`pod-${at}`, `uid-${at}`, 'true'));
    const names = Array.from({ length: containers }, (_, at) => `c${at}`);
    const images = names.map((name) => ({ name, image: 'busybox' }));
    const pods = named.map(({ metadata: { uid } }) => {
      const tracked = new TrackedPod({
        uid,
        name: 'pod',
        namespace: 'default',
        containers: images,
        initContainers: [],
      } as unknown as ConstructorParameters<typeof TrackedPod>[0]);
      tracked.takeReport(reportOf(names, `${uid} `.padEnd(characters, 'word ')));
      return [uid, tracked] as const;
    });
    const all = new Map<string, TrackedPod>(pods);
    let now = 0;
    const statuses = new PodStatuses({
      book: { get: (uid) => all.get(uid), isDamaged: () => false, isLacking: () => false },
      // Each look at the clock comes long after the one before.
      clock: { monotonic: () => (now += 100) },
      whyPending: () => undefined,
    });
    return { named, all, names, statuses };
  }
  function reportOf(names: readonly string[], message: string): PodReport {
    const end = {
      init: false,
      state: 'terminated',
      exitCode: 1,
      ready: false,
      restarts: 0,
      message,
    } as const;
    return { version: 1, containers: Object.fromEntries(names.map((name) => [name, end])) };
  }

  it('has others have their turn between two Pods', async () => {
    const { named, statuses } = ending(50, 1, 10);
    let [turns, isOver] = [0, false];
    const counting = (async () => {
      for (; !isOver; turns++) await nextTurn();
    })();
    const all = await statuses.of(named);
    isOver = true;
    await counting;
    expect(all).to.have.length(50);
    expect(turns).to.be.at.least(50);
  });

  it('looks for secrets in what has changed since the last one, and anew once our secrets change', async () => {
    rememberSecret('opaque-of-statuses-012345');
    const { named, all, names, statuses } = ending(20, 3, 4096);
    const looked = () => charactersLookedAt(() => statuses.of(named));
    expect(await looked()).to.be.within(20 * 4000, 20 * 4200);
    expect(await looked()).to.equal(0);
    all.get('uid-3')?.takeReport(reportOf(names, 'another '.repeat(500)));
    expect(await looked()).to.be.within(3900, 4100);
    const secret = 'another-of-statuses-98765';
    all.get('uid-4')?.takeReport(reportOf(names, `said ${secret}`));
    await statuses.of(named);
    rememberSecret(secret);
    const shown = JSON.stringify(await statuses.of(named));
    expect(shown).to.contain('said (hidden)').and.not.contain(secret);
  });

  it('has no more of them in its answer than a bound, and of each Pod as many as of each other', async () => {
    const few = ending(100, 3, 4096);
    for (const { containers } of await few.statuses.of(few.named))
      expect(containers.map(({ state }) => state.terminated?.message)).to.satisfy((messages: string[]) =>
        messages.every(({ length }) => length === 4096),
      );
    const many = ending(10_000, 2, 4096);
    const lengths = (await many.statuses.of(many.named)).flatMap(({ containers }) =>
      containers.map(({ state }) => state.terminated?.message?.length),
    );
    expect([...new Set(lengths)]).to.deep.equal([419]);
  });

  it('has 12 KiB of the report of a Pod: the end of each container, and the beginning of its message', () => {
    const names = Array.from({ length: 30 }, (_, at) => `c${at}`);
    const read = (message: string) => readReport(JSON.stringify(reportOf(names, message))) as PodReport;
    expect(read('x'.repeat(409)).containers['c29']?.message).to.have.length(409);
    const long = read('x'.repeat(4096));
    expect(Object.values(long.containers).every(({ exitCode }) => exitCode === 1)).to.equal(true);
    const characters = Object.values(long.containers).reduce(
      (sum, one) => sum + (one.message?.length ?? 0),
      0,
    );
    expect(characters).to.be.within(10_000, 12 * 1024);
    expect(readReport(JSON.stringify(long))).to.deep.equal(long);
  });
});
