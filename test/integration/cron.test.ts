import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { validate } from 'node-cron';
import { checkDatabase } from '../../src/store/sqlite/check.ts';
import { program } from '../support/program.ts';
import { makeDirectory, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const checkout = resolve(import.meta.dirname, '../..');
const lines = readFileSync(join(checkout, 'scripts/thresher-sweep.cron'), 'utf8').split('\n');
const jobLine = /^((?:\S+ ){5})(\S+) (.+)$/;

/** The file as cron reads it. Source: crontab(5) of Debian's cron, with a user as in /etc/cron.d. */
const settings = Object.fromEntries(
  lines.flatMap((line) => {
    const [, name, value] = /^([A-Z]+)=(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value]];
  }),
);
const jobs = lines
  .filter((line) => line !== '' && !line.startsWith('#') && !/^[A-Z]+=/.test(line))
  .map((line) => {
    const [, when = '', user = '', command = ''] = jobLine.exec(line) ?? [];
    return { line, when: when.trim(), user, command };
  });

describe('scripts/thresher-sweep.cron', () => {
  let site: Site;
  let env: Record<string, string>;

  before(async () => {
    site = new Site({ pilot: 'exit 0', queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } } });
    const bin = makeDirectory(site.path('bin'));
    symlinkSync(program(), join(bin, 'thresher'));
    env = {
      ...settings,
      PATH: `${bin}:/usr/bin:/bin`,
      CONFIG: site.config,
      STATE: site.stateDir,
      BACKUPS: makeDirectory(site.path('backups')),
    };
    site.start();
    await until('a worker has ended', async () => (await site.workers({ status: 'finished' })).length > 0);
  });

  after(async () => {
    await site.clean();
  });

  /** As cron does: an unescaped % would end the command. */
  const run = (command: string) => {
    expect(command.replaceAll('\\%', '')).to.not.contain('%');
    const { status, stdout, stderr } = spawnSync(env.SHELL ?? '', ['-c', command.replaceAll('\\%', '%')], {
      env,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const jobWith = (word: string) => jobs.find(({ command }) => command.includes(word))?.command ?? '';
  const silence = { status: 0, stdout: '', stderr: '' };

  it('has a line for each of sweep, backup and prune', () => {
    expect(
      jobs.map(({ command }) => / thresher --config "\$CONFIG" (db \w+|\w+)/.exec(command)?.[1]),
    ).to.deep.equal(['sweep', 'db backup', 'db prune']);
  });

  for (const { line, when, user, command } of jobs) {
    it(`runs this as thresher, at a time that cron understands, and in silence: ${line.slice(0, 60)}...`, () => {
      expect(validate(when), when).to.equal(true);
      expect(user).to.equal('thresher');
      expect(run(command)).to.deep.equal(silence);
    });

    it(`passes this over while its last run is under way: ${line.slice(0, 60)}...`, () => {
      const lock = /flock -n -E 0 "([^"]+)"/.exec(command)?.[1]?.replace('$STATE', site.stateDir) ?? '';
      expect(existsSync(lock)).to.equal(true);
      const held = spawnSync('flock', [lock, 'sh', '-c', command.replaceAll('\\%', '%')], {
        env: { ...env, CONFIG: '/nowhere' },
        encoding: 'utf8',
      });
      expect({ status: held.status, stdout: held.stdout, stderr: held.stderr }).to.deep.equal(silence);
    });
  }

  it('keeps one backup for each day of the week, each of them sound', () => {
    const backup = jobWith('db backup');
    for (let day = 1; day <= 9; day++) {
      expect(run(backup.replace('date', `date -d '2026-01-${String(day).padStart(2, '0')}'`))).to.deep.equal(
        silence,
      );
    }
    const kept = readdirSync(env.BACKUPS ?? '').sort();
    expect(kept).to.deep.equal([1, 2, 3, 4, 5, 6, 7].map((day) => `thresher-${day}.db`));
    for (const name of kept) expect(checkDatabase(join(env.BACKUPS ?? '', name)).findings).to.deep.equal([]);
  });

  it('says what failed', () => {
    const before = env.BACKUPS ?? '';
    env.BACKUPS = '/nowhere';
    try {
      const { status, stdout, stderr } = run(jobWith('db backup'));
      expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' });
      expect(stderr).to.match(
        /^thresher: \/nowhere\/thresher-\d\.db cannot be a backup: the directory \/nowhere .*\n$/,
      );
    } finally {
      env.BACKUPS = before;
    }
  });
});
