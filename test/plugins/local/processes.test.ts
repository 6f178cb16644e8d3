import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  groupMembers,
  isAlive,
  parseStat,
  type ProcessId,
  readBootId,
  readProcesses,
  signalProcess,
} from '../../../src/plugins/local/processes.ts';
import { until } from '../../support/until.ts';

const statOf = (pid: number) => parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));

describe('a line of /proc/PID/stat', () => {
  const rest = 'S 1 4242 4242 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 50';

  for (const name of ['sh', 'a b', ')', '(', ') R 1 2', 'x) Z 9 9 9', '((a)', '', 'a\nb', '1 (2) 3']) {
    it(`is read whatever the command's name is: ${JSON.stringify(name)}`, () => {
      expect(parseStat(`77 (${name}) ${rest}`)).to.deep.equal({
        state: 'S',
        group: 4242,
        startTicks: 987_654,
      });
    });
  }

  it('of this very process is what the kernel says', () => {
    const { state, group, startTicks } = statOf(process.pid);
    expect(state).to.match(/^[RSD]$/);
    expect(group).to.be.greaterThan(0);
    expect(startTicks).to.be.greaterThan(0);
  });
});

describe('a process', () => {
  const bootId = readBootId();
  const me = (): ProcessId => ({ pid: process.pid, startTicks: statOf(process.pid).startTicks, bootId });
  let children: ChildProcess[];

  beforeEach(() => {
    children = [];
  });

  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
  });

  function start(command: string, args: string[], options: Parameters<typeof spawn>[2] = {}): number {
    const child = spawn(command, args, { stdio: 'ignore', ...options });
    children.push(child);
    return child.pid!;
  }

  it('is alive when pid, start time and boot are its own', async () => {
    expect(await isAlive(me(), bootId)).to.equal(true);
  });

  it('is not alive when its pid went to another that started at another time', async () => {
    expect(await isAlive({ ...me(), startTicks: me().startTicks - 1 }, bootId)).to.equal(false);
  });

  it('is not alive when the machine was booted since', async () => {
    expect(await isAlive({ ...me(), bootId: 'another' }, bootId)).to.equal(false);
    expect(await isAlive(me(), 'another')).to.equal(false);
  });

  it('is not alive when there is none of its pid', async () => {
    expect(await isAlive({ ...me(), pid: 2 ** 30 }, bootId)).to.equal(false);
  });

  it('is not alive as a zombie that nobody waits for', async () => {
    // The shell gives its place to a program that never asks after the children it got with it.
    const parent = start('/bin/sh', ['-c', '/bin/true & exec sleep 60']);
    const zombie = await until('the child is a zombie', () => {
      const found = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim();
      return found !== '' && statOf(Number(found)).state === 'Z' && Number(found);
    });
    const id = { pid: zombie, startTicks: statOf(zombie).startTicks, bootId };
    expect(await isAlive(id, bootId)).to.equal(false);
  });

  it('belongs to a worker by its verified group, or by the mark wherever it went', async () => {
    const environment = (value: string) => ({ PATH: '/bin:/usr/bin', THRESHER_WORKER_DIR: value });
    const ours = start('sleep', ['60'], { detached: true, env: environment('/pilots/1') });
    const clean = start('sleep', ['60'], { detached: true, env: { PATH: '/bin:/usr/bin' } });
    const stranger = start('sleep', ['60'], { detached: true, env: environment('/pilots/12') });
    const escaped = start('sleep', ['60'], { detached: true, env: environment('/pilots/1') });
    await until('all have their own environment', () =>
      [ours, clean, stranger, escaped].every(
        (pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n',
      ),
    );
    const group = (id: number, ticks: number) => ({
      mark: `THRESHER_WORKER_DIR=/pilots/${id}`,
      leaderStartTicks: ticks,
    });
    const wanted = new Map([
      [ours, group(1, statOf(ours).startTicks)],
      // A worker that cleaned its environment is known by its leader.
      [clean, group(2, statOf(clean).startTicks)],
      // A group whose number went to somebody else is nobody's of ours.
      [stranger, group(3, statOf(stranger).startTicks - 1)],
    ]);
    expect([...(await groupMembers(wanted))]).to.deep.equal([
      [ours, [ours, escaped]],
      [clean, [clean]],
    ]);
  });

  it('hole 8: shows its mark wherever that is in a large environment, of which nothing else is kept', async () => {
    const large = (at: number, value = '/pilots/9') => {
      const filler = Array.from({ length: 14 }, (_, n) => [`V${n}`, 'x'.repeat(120_000)] as const);
      const all = [...filler.slice(0, at), ['THRESHER_WORKER_DIR', value] as const, ...filler.slice(at)];
      return Object.fromEntries([...all, ['PATH', '/bin:/usr/bin'], ['A_THRESHER_WORKER_DIR', 'other']]);
    };
    const mark = 'THRESHER_WORKER_DIR=/pilots/9';
    // Every place of the mark about the end of a piece, too.
    const around = Array.from({ length: 60 }, (_, n) => ({ V: 'x'.repeat(65_480 + n), ...large(0) }));
    const environments = [...[0, 5, 14].map((at) => large(at)), ...around];
    const pids = environments.map((env) => start('sleep', ['60'], { env }));
    const bare = start('sleep', ['60'], {
      env: { PATH: '/bin:/usr/bin', X: 'THRESHER_WORKER_DIR=/pilots/9' },
    });
    await until('all have their own environment', () =>
      [...pids, bare].every((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'),
    );
    const found = new Map((await readProcesses()).map((one) => [one.pid, one.mark]));
    expect(pids.map((pid) => found.get(pid))).to.deep.equal(pids.map(() => mark));
    expect([found.has(bare), found.get(bare)]).to.deep.equal([true, undefined]);
  });

  if (process.geteuid?.() === 0)
    it('is found among those of others that hide, where /proc is mounted with hidepid', () => {
      const file = join(import.meta.dirname, '../../../src/plugins/local/processes.ts');
      const script = [
        `import { isAlive, readBootId, readProcesses } from ${JSON.stringify(file)};`,
        // Not before all was read: a checkout may be for root alone.
        'process.setgroups([]); process.setgid(64531); process.setuid(64531);',
        'const found = (await readProcesses()).map(({ pid }) => pid);',
        'const other = await isAlive({ pid: 1, startTicks: 0, bootId: readBootId() }, readBootId());',
        'console.log(JSON.stringify([found.includes(process.pid), found.includes(1), other]));',
      ].join('\n');
      const inside = 'mount -t proc -o hidepid=1 proc /proc && exec "$@"';
      const args = [
        '--mount',
        'sh',
        '-c',
        inside,
        'sh',
        process.execPath,
        '--input-type=module',
        '-e',
        script,
      ];
      const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8', timeout: 60_000 });
      expect(stdout.trim(), stderr).to.equal('[true,false,false]');
    });

  it('gets a signal, and it is no error when it is gone already', async () => {
    const pid = start('sleep', ['60']);
    const ended = new Promise((resolve) =>
      children[0]!.once('exit', (_, signal) => {
        resolve(signal);
      }),
    );
    signalProcess(pid, 'SIGTERM');
    expect(await ended).to.equal('SIGTERM');
    signalProcess(pid, 'SIGTERM');
  });
});
