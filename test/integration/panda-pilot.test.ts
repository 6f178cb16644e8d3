import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, shellTemplate } from '../support/htcondor-site.ts';
import { pandaAdmin, pandaFiles, pandaRows, sharedPanda } from '../support/panda.ts';
import { PandaSite } from '../support/panda-site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const transformation = 'http://pandaserver-doma.cern.ch:25080/trf/user/run-sh';

interface Job {
  readonly jobstatus: string;
  readonly computingsite: string;
  readonly piloterrorcode: number;
}

describe('the real pilot, as a worker that a real PanDA server ordered', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let panda: PandaSite | undefined;

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
  });

  after(async () => {
    await panda?.clean();
    await clearSpaces(pool, [space]);
  });

  /** Shell that runs the pilot in its PID namespace; it refuses without one. `directory`: of the script and the certificate. */
  function pilotLine(directory: string, site: string, work: string): string {
    const variables = { ...sharedPanda.pilot(), PANDA_PROD_ALL: join(directory, 'proxy.pem'), HOME: work };
    const set = Object.entries(variables).map(([name, value]) => `${name}="${value}"`);
    return `mkdir -p ${work}; exec env ${set.join(' ')} PILOT_DIR=${work} ${directory}/pilot.sh ${site}`;
  }

  it('gets a job on the local backend and in HTCondor, and the jobs end well at the server', async () => {
    const { directory } = space;
    copyFileSync(pandaFiles('pilot.sh'), join(directory, 'pilot.sh'));
    copyFileSync(sharedPanda.pilot()['PANDA_PROD_ALL'] ?? '', join(directory, 'proxy.pem'));
    chmodSync(join(directory, 'proxy.pem'), 0o600);
    chownSync(join(directory, 'proxy.pem'), pool.uid, pool.gid);
    panda = await PandaSite.start({
      queues: { L: {}, C: { ...condorQueue(pool, { template: 'pilot.sub.yaml' }), demand: undefined } },
      pilot: `exec /bin/sh "$SITE_DIR/pilot-of-L.sh"`,
      settings: { master: { factoryId: space.factory } },
    });
    const { site, id } = panda;
    chmodSync(site.directory, 0o755);
    mkdirSync(site.path('logs'));
    chownSync(site.path('logs'), pool.uid, pool.gid);
    writeFileSync(
      site.path('pilot-of-L.sh'),
      pilotLine(directory, panda.siteOf('L'), `"$SITE_DIR/work-$HARVESTER_WORKER_ID"`),
    );
    const script = pilotLine(directory, panda.siteOf('C'), '"$_CONDOR_SCRATCH_DIR/work"');
    const environment = {
      HARVESTER_WORKER_ID: '${workerID}',
      HARVESTER_ID: '${harvesterID}',
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
    };
    writeFileSync(site.path('pilot.sub.yaml'), stringify(shellTemplate(space, script, { environment })));

    const jobs = ['L', 'C'].map((queue) => {
      const name = (panda as PandaSite).siteOf(queue);
      pandaAdmin('site', name, '--harvester', id);
      const params = ['--transformation', transformation, '--params', "-c 'echo hello'"];
      return Number(pandaAdmin('job', name, ...params).trim());
    });
    for (const queue of ['L', 'C']) panda.order({ SCORE: 1 }, queue);
    const daemon = site.start([], condorEnvironment(pool, site.directory));

    const where = `WHERE pandaid IN (${jobs.join(', ')})`;
    const columns = 'jobstatus, computingsite, piloterrorcode';
    const found = () =>
      pandaRows<Job>(
        `SELECT ${columns} FROM jobsactive4 ${where} UNION ALL SELECT ${columns} FROM jobsarchived4 ${where}`,
      );
    let seen: readonly Job[] = [];
    await until(
      () => `both pilots reported: ${JSON.stringify(seen)}\n${daemon.output().slice(-2000)}`,
      async () => {
        seen = await found();
        return seen.every(({ jobstatus }) => jobstatus === 'holding');
      },
      150_000,
    );
    // The server's adder, which judges what pilots report.
    pandaAdmin('settle', ...jobs.map(String));
    const verdicts = (await found()).map(({ jobstatus, piloterrorcode }) => ({ jobstatus, piloterrorcode }));
    const good = { jobstatus: 'finished', piloterrorcode: 0 };
    expect(verdicts).to.deep.equal([good, good]);
    // The pilot tells the server of itself, and thresher of the worker: the server takes both for the same one.
    const workers = await panda.untilServerHas(2, 'finished');
    expect(workers.map(({ pilotstatus }) => pilotstatus)).to.deep.equal(['finished', 'finished']);
    expect(workers.map(({ computingsite }) => computingsite).sort()).to.deep.equal(
      ['L', 'C'].map((queue) => (panda as PandaSite).siteOf(queue)).sort(),
    );
  });

  it('never starts where no PID namespace can be made', async () => {
    const programs = temporaryDirectory();
    const refusing = join(programs, 'unshare');
    writeFileSync(refusing, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const work = join(temporaryDirectory(), 'work');
    let said = '';
    try {
      execFileSync(pandaFiles('pilot.sh'), ['NOWHERE'], {
        env: {
          ...process.env,
          ...sharedPanda.pilot(),
          PATH: `${programs}:${process.env['PATH'] ?? ''}`,
          PILOT_DIR: work,
        },
        stdio: 'pipe',
      });
    } catch (error) {
      said = String((error as { stderr?: Buffer }).stderr);
    }
    expect(said).to.match(/no PID namespace can be made here.*refusing to start the pilot/);
    expect(() => readdirSync(work)).to.throw(/ENOENT/);
  });
});
