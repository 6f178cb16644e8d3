import { chmodSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { onPostgresql } from '../support/postgresql.ts';
import { countStarts, makeDirectory, type RunningDaemon, Site, type SiteOptions } from '../support/site.ts';
import { ofGate } from '../support/tiers.ts';
import { until } from '../support/until.ts';

const wanted = 3;

/** Kills the daemon of a site from outside it: what a shim or a pilot can do at a moment that no daemon sees. */
const killDaemon = (site: string) => `
if mkdir "${site}/killed" 2>/dev/null; then
  kill -9 "$(sed -n 's/.*"pid":\\([0-9]*\\).*/\\1/p' "${site}/state/daemon.json")"
fi`;

const limits = { maxWorkers: wanted, nQueueLimitWorker: wanted };

type Settings = NonNullable<SiteOptions['settings']>;

function makeSite(settings: Settings = {}): Site {
  return new Site({ pilot: `${countStarts} exec sleep 1000`, queues: { Q: limits }, settings });
}

interface CrashPoint {
  readonly description: string;
  readonly crash: (settings: Settings) => { site: Site; daemon: RunningDaemon };
}

const atStep = (description: string, step: string): CrashPoint => ({
  description,
  crash(settings) {
    const site = makeSite(settings);
    return { site, daemon: site.startCrashingAt(step) };
  },
});

const crashPoints: readonly CrashPoint[] = [
  atStep('before the row', 'submit:before-intent'),
  atStep('after the row', 'submit:after-intent'),
  {
    description: 'after the claim',
    crash(settings) {
      // The shim makes its claim with `ln`: this one kills the daemon the moment after.
      const site = makeSite(settings);
      const bin = makeDirectory(site.path('bin'));
      writeFileSync(
        `${bin}/ln`,
        `#!/bin/sh\n/bin/ln "$@"; status=$?${killDaemon(site.directory)}\nexit $status\n`,
      );
      chmodSync(`${bin}/ln`, 0o755);
      return { site, daemon: site.start([], { PATH: `${bin}:${process.env.PATH ?? ''}` }) };
    },
  },
  {
    description: 'after the process started',
    crash(settings) {
      // A pilot in a PID namespace of its own has no pid for the daemon, and nothing to kill it with.
      const submitter = {
        name: 'LocalSubmitter',
        module: 'thresher/local',
        templateFile: 'pilot.yaml',
        pidNamespace: 'none',
      };
      const pilot = `${countStarts} ${killDaemon('$SITE_DIR')}\nexec sleep 1000`;
      const site = new Site({ pilot, queues: { Q: { ...limits, submitter } }, settings });
      return { site, daemon: site.start() };
    },
  },
  atStep('before the outcome is written', 'submit:before-outcome'),
  atStep('after the outcome is written', 'submit:after-outcome'),
];

describe('promise 1: one intent gives at most one live worker', () => {
  let site: Site | undefined;

  afterEach(async () => {
    await site?.clean();
  });

  const cases = crashPoints.flatMap((point) => {
    // Between the other points nothing is written, whatever the database.
    const others = /after the (?:row|claim|outcome)/.test(point.description) ? ['one of PostgreSQL'] : [];
    return ['kept', 'removed', ...others].map((database) => ({ ...point, database }));
  });
  const isKept = ({ description, database }: (typeof cases)[number]) =>
    /claim|process started|before the outcome/.test(description)
      ? database !== 'one of PostgreSQL'
      : description === 'after the row' && database === 'one of PostgreSQL';
  for (const { description, database, crash } of ofGate(cases, isKept)) {
    it(`survives SIGKILL ${description}, the database ${database}`, async () => {
      const crashed = crash(database === 'one of PostgreSQL' ? await onPostgresql() : {});
      site = crashed.site;
      expect(await crashed.daemon.ended, crashed.daemon.output()).to.equal('SIGKILL');
      if (database === 'removed') site.removeDatabase();

      const restarted = site.start();
      const settled = await until('all wanted workers run and no intent is open', async () => {
        const workers = (await site?.workers()) ?? [];
        const running = workers.filter(({ status }) => status === 'running');
        return running.length === wanted && workers.every(({ status }) => status !== 'pending') && running;
      });

      // Each living row has exactly one process, and each process its row: none twice, none forgotten.
      const ids = settled.map(({ workerID }) => workerID).sort();
      const oneEach = ids.map((id) => [id, 1]);
      // A shim that came too late for its claim takes a moment to end; whatever it had started stays counted below.
      await until(
        () => `each worker has one process; the daemon wrote:\n${restarted.output()}`,
        () => JSON.stringify([...(site?.liveShims() ?? [])].sort()) === JSON.stringify(oneEach),
      );
      await until('each command has begun', () => site?.starts().size === ids.length);
      // No intent was ever started twice, not even for a moment.
      expect([...site.starts().values()].filter((count) => count !== 1)).to.deep.equal([]);
    });
  }
});

describe('promise 1: a submission that comes too late', () => {
  it('never starts what was fenced', async () => {
    // This `ln` sleeps before it makes the claim, so that the shim claims long after the daemon was killed.
    const site = makeSite();
    try {
      const bin = makeDirectory(site.path('bin'));
      const delay = `while [ ! -e "${site.directory}/go" ]; do sleep 0.05; done`;
      writeFileSync(
        `${bin}/ln`,
        `#!/bin/sh\necho waiting >>"${site.directory}/waiting"\n${delay}\nexec /bin/ln "$@"\n`,
      );
      chmodSync(`${bin}/ln`, 0o755);
      const daemon = site.start([], { PATH: `${bin}:${process.env.PATH ?? ''}` });
      await until('shims wait before their claim', () => site.liveShims().size === wanted);
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      const late = [...site.liveShims().keys()];

      site.start();
      await until(
        'the restarted daemon has its workers',
        async () => (await site.workers({ status: 'running' })).length === wanted,
      );
      // Only now do the old shims go on: they find their claims taken.
      writeFileSync(site.path('go'), '');
      await until('the late shims are gone, and each worker has started', () => {
        const living = [...site.liveShims().values()];
        const started = site.starts().size;
        return living.length === wanted && living.every((count) => count === 1) && started === wanted;
      });
      expect([...site.starts()].filter(([, count]) => count !== 1)).to.deep.equal([]);
      expect([...site.starts().keys()].sort()).to.deep.equal(late.sort());
      expect((await site.workers({ status: 'running' })).length).to.equal(wanted);
    } finally {
      await site.clean();
    }
  });
});
