import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { WorkerView } from '../../src/daemon/view.ts';
import { Site, type SiteOptions, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const one = { maxWorkers: 1, nQueueLimitWorker: 1 };
/** A user of no other process. */
const stranger = 64_531;

/**
 * What the PanDA pilot 3.7 does after a payload: it ends the process groups of its user's orphans. Here without its regard
 * for PILOT_NOKILL, and only inside of the test's fence.
 */
const endOrphans = `
[ "$(readlink /proc/self/ns/pid)" != "$OUTSIDE" ] || exit 99
while [ ! -e "$SITE_DIR/go" ]; do sleep 0.1; done
ps -u "$(id -u)" -o pid= -o ppid= -o pgid= -o args= >"$SITE_DIR/seen"
for signal in TERM KILL; do
  while read -r pid ppid pgid command; do
    [ "$ppid" = 1 ] && [ "$pgid" -gt 1 ] && kill -$signal "-$pgid"
  done <"$SITE_DIR/seen"
  sleep 0.2
done
touch "$SITE_DIR/done"
exec sleep 1000
`;

describe('local workers in PID namespaces', () => {
  let site: Site;

  afterEach(async () => {
    await site.clean();
  });

  const killer = { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'killer.yaml' };
  function makeSite(options: Partial<SiteOptions> = {}): Site {
    site = new Site({ queues: { VICTIM: one, KILLER: { ...one, submitter: killer } }, ...options });
    const env = { SITE_DIR: site.directory, OUTSIDE: readlinkSync('/proc/self/ns/pid') };
    const template = { command: '/bin/sh', args: ['-c', endOrphans], cpu: 0, env };
    writeFileSync(site.path('killer.yaml'), stringify(template));
    return site;
  }

  const running = (count: number) =>
    until(`${count} workers run`, async () => {
      const found = await site.workers({ status: 'running' }).catch((): WorkerView[] => []);
      return found.length === count && found;
    });

  const users: readonly (readonly [string, readonly string[]])[] =
    process.getuid?.() === 0
      ? [
          ['root', []],
          [
            'an ordinary user',
            ['setpriv', `--reuid=${stranger}`, `--regid=${stranger}`, '--clear-groups', '--'],
          ],
        ]
      : [['an ordinary user', []]];
  for (const [who, as] of users) {
    it(`survive a pilot that ends the orphans of its user, as does the daemon, below ${who}`, async () => {
      makeSite();
      if (as.length > 0) give(site.directory, stranger);
      const fenced = site.startFenced(as);
      // Another user's reader could make the database's files.
      await until('the daemon runs', () => fenced.output().includes('started'));
      await running(2);
      // The next daemon finds both workers as orphans, whose parent is PID 1; so is its own.
      process.kill(daemonIn(fenced.pid), 'SIGTERM');
      await until('the next daemon runs', () => fenced.output().split('started').length > 2);
      const shims = [...site.liveShims().keys()];
      expect(shims.length).to.equal(2);
      const daemon = daemonIn(fenced.pid);
      writeFileSync(site.path('go'), '');
      await until('the orphans are ended', () => readdirSync(site.directory).includes('done'));
      const seen = readFileSync(site.path('seen'), 'utf8');
      expect(seen).not.to.match(/thresher|shim/);
      expect([...site.liveShims().keys()]).to.deep.equal(shims);
      expect(daemonIn(fenced.pid)).to.equal(daemon);
      expect(fenced.output().split('a daemon ended').length - 1, fenced.output()).to.equal(1);
      await running(2);
    });
  }

  describe('where none can be made', () => {
    function withoutNamespaces(): Record<string, string> {
      const programs = site.path('programs');
      mkdirSync(programs);
      const refusing = '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n';
      writeFileSync(join(programs, 'unshare'), refusing, { mode: 0o755 });
      return { PATH: `${programs}:${process.env.PATH ?? ''}` };
    }
    const submitter = (pidNamespace: string) => ({
      name: 'LocalSubmitter',
      module: 'thresher/local',
      templateFile: 'pilot.yaml',
      pidNamespace,
    });

    it('run without one, and log and queues say what that means', async () => {
      makeSite({ queues: { Q: one }, pilot: 'echo "nokill=$PILOT_NOKILL"; exec sleep 1000' });
      const daemon = site.start([], withoutNamespaces());
      const [worker] = await running(1);
      const reason = await until('the queue says so', async () =>
        (await site.queue('Q')).reasons.find(({ code }) => code === 'pid-namespace-missing'),
      );
      expect(reason.message).to.match(/^no PID namespace can be made for workers: .*Operation not permitted/);
      await untilSaid(daemon, /the submitter goes on, with a warning.*pid-namespace-missing/);
      expect(daemon.output().split('the submitter goes on').length - 1).to.equal(1);
      await until('the table says both', async () =>
        (await site.run('queues')).stdout.includes(
          '1 of maxWorkers 1 are alive; no PID namespace can be made for workers',
        ),
      );
      // The worker counts as running before its pilot writes anything.
      await until(
        'the pilot says what it was given',
        async () => (await site.run('logs', String(worker?.workerID))).stdout === 'nokill=1\n',
      );
    });

    it('are not started by a queue that requires one', async () => {
      makeSite({ queues: { Q: { ...one, submitter: submitter('required') } } });
      site.start([], withoutNamespaces());
      const [reason] = await until('the queue says why', async () => {
        const { reasons } = await site.queue('Q');
        return reasons.some(({ code }) => code === 'pid-namespace-required') && reasons;
      });
      expect(reason?.message).to.match(/^pidNamespace is "required", but no PID namespace can be made/);
      expect(await site.workers()).to.deep.equal([]);
    });

    it('have check-config --server say so, as an error where one is required', async () => {
      makeSite({ queues: { AUTO: one, MUST: { ...one, submitter: submitter('required') } } });
      const env = withoutNamespaces();
      const check = site.startWith(['--config', site.config, 'check-config', '--server'], env);
      expect(await check.ended).to.equal(1);
      expect(check.output()).to.match(
        /\/AUTO\/submitter\/pidNamespace: warning: no PID namespace can be made.*\[pid-namespace-missing\]/,
      );
      expect(check.output()).to.match(
        /\/MUST\/submitter\/pidNamespace: error: pidNamespace is "required", but.*\[pid-namespace-required\]/,
      );
    });
  });
});

/** Gives a directory with all that is in it to a user. */
function give(path: string, user: number): void {
  chownSync(path, user, user);
  for (const entry of readdirSync(path, { recursive: true, encoding: 'utf8' }))
    chownSync(join(path, entry), user, user);
}

/** The daemon's pid outside of its fence: it is the child of the fence's PID 1. */
function daemonIn(fence: number): number {
  const childrenOf = (pid: number) =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  const [init = 0] = childrenOf(fence);
  const daemon = childrenOf(init).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('thresher.yaml\0run'),
  );
  if (daemon === undefined) throw new Error('no daemon runs in the fence');
  return daemon;
}
