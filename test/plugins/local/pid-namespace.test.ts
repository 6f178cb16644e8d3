import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { insideScript } from '../../../src/plugins/local/namespace-script.ts';
import {
  decide,
  entering,
  PidNamespaces,
  toProblems,
  ways,
} from '../../../src/plugins/local/pid-namespace.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const isRoot = process.getuid?.() === 0;
const usable = ways.filter(({ options }) => isRoot || options.includes('--user'));

for (const way of usable) {
  describe(`a command in a PID namespace made ${way.title}`, () => {
    let directory: string;

    beforeEach(() => {
      directory = temporaryDirectory();
      writeFileSync(join(directory, 'inside'), insideScript);
    });

    function start(script: string) {
      const [command = '', ...args] = entering(way, join(directory, 'inside'), directory);
      const env = { PATH: process.env.PATH ?? '', DIR: directory, THRESHER_WORKER_DIR: directory };
      const options = { env, cwd: directory, detached: true };
      const child = spawn(command, [...args, '/bin/sh', '-c', script], {
        ...options,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      let stdout = '';
      child.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()));
      const ended = once(child, 'close').then(([code, signal]) => ({
        status: (code as number | null) ?? (signal as string),
        stdout,
      }));
      return { pid: child.pid ?? 0, ended };
    }

    const written = (name: string) =>
      until(`${name} is written`, () => readdirSync(directory).includes(name) && name);

    it('sees its own processes only, as the child of no process', async () => {
      // PID 1 of the namespace may not have become its shell yet.
      const settled = 'until grep -qx sh /proc/1/comm; do :; done';
      const { stdout } = await start(`${settled}; ps -e -o ppid=,comm=`).ended;
      const seen = stdout
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
      expect(seen.filter(([ppid]) => ppid === '0').map(([, command]) => command)).to.deep.equal(['sh', 'sh']);
      expect(seen.length).to.be.below(5);
      expect(readdirSync(directory), 'the pipe is gone').to.deep.equal(['inside']);
    });

    it('ends with the status that a shell gives it', async () => {
      expect((await start('exit 7').ended).status).to.equal(7);
      expect((await start('kill -9 $$').ended).status).to.equal(137);
      expect((await start('exec /no/such/program').ended).status).to.equal(127);
    });

    it('hears a TERM to its group, and ends by itself', async () => {
      const run = start('trap "exit 5" TERM; touch ready; while :; do sleep 0.05; done');
      await written('ready');
      process.kill(-run.pid, 'SIGTERM');
      expect((await run.ended).status).to.equal(5);
    });

    it('leaves nothing running, whatever left its group and cleaned its environment', async () => {
      const run = start('env -i setsid sleep 97531 & env -i setsid sleep 97531 & exit 3');
      expect((await run.ended).status).to.equal(3);
      await until('both are gone', () => running('97531') === 0);
    });

    it('ends with all that it started when the script beside it is killed', async () => {
      const run = start('env -i setsid sleep 97532 & touch ready; sleep 97532');
      await written('ready');
      process.kill(run.pid, 'SIGKILL');
      await until('all are gone', () => running('97532') === 0);
    });

    it('cannot end the namespace that it is in', async () => {
      // `cat` is all that looks like an orphan; it starts anew.
      const orphans = `ps -e -o pid=,ppid=,pgid= | while read -r pid ppid pgid; do [ "$ppid" = 1 ] && echo "$pid $pgid"; done`;
      const script = `
        until before=$(${orphans}; true) && [ -n "$before" ]; do sleep 0.05; done
        kill -KILL 1 -\${before#* }
        until after=$(${orphans}; true) && [ -n "$after" ] && [ "$after" != "$before" ]; do sleep 0.05; done
        echo lives`;
      const { status, stdout } = await start(script).ended;
      expect({ status, stdout }).to.deep.equal({ status: 0, stdout: 'lives\n' });
    });

    it('leaves no zombie of what lost its parent', async () => {
      const { stdout } = await start(
        'sh -c "sleep 0.1 & sleep 0.1 &"; while ps -e -o ppid=,comm= | grep -q "1 sleep"; do sleep 0.05; done; ps -e -o state= | grep -c Z',
      ).ended;
      expect(stdout).to.equal('0\n');
    });
  });
}

describe('PID namespaces for local workers', () => {
  const missing = { kind: 'missing', why: 'unshare: not permitted' } as const;
  const available = { kind: 'available', way: ways[0] ?? expect.fail() } as const;

  it('are found by trying, and leave nothing in the work directory', async () => {
    const place = trialPlace();
    const found = await new PidNamespaces(place, new ManualClock()).availability();
    expect(found).to.deep.equal({ kind: 'available', way: usable[0] });
    expect(readdirSync(place.root)).to.deep.equal([]);
  });

  it('are missing with the reason of each way, and are tried again after a minute', async () => {
    const clock = new ManualClock();
    const programs = join(temporaryDirectory(), 'bin');
    mkdirSync(programs);
    const script = `#!/bin/sh\necho "unshare failed: $PPID" >&2\necho >>${programs}/tries\nexit 1\n`;
    writeFileSync(join(programs, 'unshare'), script, { mode: 0o755 });
    const namespaces = new PidNamespaces(trialPlace(clock), clock, `${programs}:${process.env.PATH ?? ''}`);
    const found = await namespaces.availability();
    expect(found.kind === 'missing' && found.why.split('; ').length).to.equal(3);
    expect(found.kind === 'missing' && found.why).to.contain(
      'with the right to make it (root): unshare failed:',
    );
    expect(await namespaces.availability()).to.equal(found);
    expect(readFileSync(join(programs, 'tries'), 'utf8')).to.equal('\n\n\n');
    await clock.advance(61_000);
    await namespaces.availability();
    expect(readFileSync(join(programs, 'tries'), 'utf8').length).to.equal(6);
  });

  it('are asked for again after a trial for which the work directory gave no answer', async () => {
    const clock = new ManualClock();
    const place = trialPlace(clock);
    const hang = Promise.withResolvers<undefined>();
    const hanging = place.lane.run('hangs', () => hang.promise).catch((error: unknown) => error);
    const namespaces = new PidNamespaces(place, clock);
    const asked = namespaces.availability().catch((error: unknown) => error);
    await clock.advance(10_001);
    expect(await asked).to.include({ code: 'file-timeout' });
    hang.resolve(undefined);
    await hanging;
    expect((await namespaces.availability()).kind).to.equal('available');
  });

  it('are used where they can be made, and where the queue wants them', () => {
    expect(decide('auto', available)).to.deep.equal({ way: ways[0] });
    expect(decide('required', available)).to.deep.equal({ way: ways[0] });
    expect(decide('none', available)).to.deep.equal({});
  });

  it('stop a queue that requires them where they cannot be made; another goes on and says so', () => {
    expect(decide('none', missing)).to.deep.equal({});
    expect(decide('auto', missing).note).to.include({ code: 'pid-namespace-missing' });
    expect(decide('auto', missing).note?.message).to.contain('unshare: not permitted');
    expect(decide('required', missing).problem).to.include({ code: 'pid-namespace-required' });
    expect(toProblems(decide('auto', missing))[0]).to.include({ severity: 'warning' });
    expect(toProblems(decide('required', missing))[0]).not.to.have.property('severity');
    expect(toProblems(decide('auto', available))).to.deep.equal([]);
  });
});

/** A work directory, and its lane with one place. */
function trialPlace(clock: Clock = new ManualClock()) {
  const lane = new FileLane({ clock, name: 'work', atOnce: 1, timeoutMs: 10_000 });
  return { root: temporaryDirectory(), lane, tell: ({ why }: { why: string }) => expect.fail(why) };
}

/** How many processes of the whole machine are a sleep of so many seconds. */
function running(seconds: string): number {
  return readdirSync('/proc').filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, 'utf8') === `sleep\0${seconds}\0`;
    } catch {
      return false;
    }
  }).length;
}
