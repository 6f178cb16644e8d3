import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment } from '../support/htcondor-site.ts';
import { newPandaId, sharedPanda } from '../support/panda.ts';
import { runHere } from '../support/command-line.ts';
import { PandaSite } from '../support/panda-site.ts';
import { hostnameFor } from '../../src/util/hostname.ts';
import { until } from '../support/until.ts';

const fixtures = resolve(import.meta.dirname, '../fixtures');
type Json = Record<string, unknown>;

/** Queues of production files, by the file, the name there and the templates of their kind. */
const queues = [
  ['lsst', 'SLAC_TEST', 'production.ups'],
  ['doma', 'TEST_PQ', 'production.pull'],
] as const;

describe("Rubin's and DOMA's own queues under Harvester's settings, at a real PanDA server and HTCondor", function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let panda: PandaSite;
  let root: string;
  const names = new Map<string, string>();

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
    panda = await PandaSite.start();
    root = panda.site.directory;
    chmodSync(root, 0o755);
    for (const [, name] of queues) names.set(name, newPandaId(name));
  });

  after(async () => {
    await panda.clean();
    await clearSpaces(pool, [space]);
  });

  /** A directory of the site that jobs may write in. */
  function open(path: string): void {
    mkdirSync(path, { recursive: true });
    chownSync(path, pool.uid, pool.gid);
    chmodSync(path, 0o777);
  }

  /** A file with this content at a path of the site, moved below the test's directory. */
  function put(path: string, content: string | Buffer, mode = 0o644): void {
    const there = join(root, path);
    mkdirSync(dirname(there), { recursive: true });
    writeFileSync(there, content);
    chmodSync(there, mode);
  }

  /** The entries of both files that the queues need. Paths are moved, and the schedd is the test's. */
  function queueFile(): Json {
    const merged: Json = {};
    for (const [site, name, template] of queues) {
      const text = readFileSync(join(fixtures, 'sites', `${site}.panda_queueconfig.json`), 'utf8');
      const file = JSON.parse(text.replaceAll(/"(\/[^"]*)"/g, `"${root}$1"`)) as Record<string, Json>;
      const { [template]: base = {}, [name]: queue = {} } = file;
      const elsewhere = new Set(['condorPool', 'condorSchedd', 'condorPoolNew', 'condorScheddNew']);
      const submitter = Object.fromEntries(
        Object.entries(base['submitter'] as Json).filter(([key]) => !elsewhere.has(key)),
      );
      const monitor = { ...(base['monitor'] as Json), pollInterval: 1 };
      merged[`${site}.${template}`] = { ...base, submitter, monitor };
      merged[names.get(name) ?? ''] = {
        ...queue,
        queueStatus: 'online',
        // CRIC says how many cores.
        submitter: { ...(queue['submitter'] as Json | undefined), nCore: undefined },
        templateQueueName: `${site}.${template}`,
      };
    }
    return merged;
  }

  /** CRIC's entries of the queues, with their sizes. */
  function cricEntries(): Json {
    const entry = { pilot_manager: 'Harvester', harvester: panda.id, type: 'production', status: 'online' };
    const sizes = { corecount: 1, maxrss: 100, maxtime: 3600 };
    return Object.fromEntries([...names.values()].map((name) => [name, { ...entry, ...sizes }]));
  }

  /** The site's own template, for the pool instead of a CE. */
  function vanilla(name: string, program: string): string {
    const text = readFileSync(join(fixtures, 'sites', name), 'utf8');
    return (
      text
        .replaceAll(/^(grid_resource|nordugrid_rsl|arc_rte) = .*\n/gm, '')
        // Starters of the test's pool could not receive the test's proxy.
        .replaceAll(/^(x509userproxy|use_x509userproxy) = .*\n/gim, '')
        .replace(/^arc_resources = (?:.*\\\n)*.*\n/m, '')
        .replace(/^universe = .*$/m, 'universe = vanilla')
        .replace(/^executable = .*$/m, `executable = ${program}`)
        // The pool's user is not the daemon's, whose directory of the hour is its own.
        .replaceAll('{logDir}/{logSubdir}/', `${space.directory}/`)
        .replace(/^initialdir = .*$/m, `initialdir = ${space.directory}`)
    );
  }

  function harvesterFile(): string {
    const { ca, production } = sharedPanda.server();
    return (
      readFileSync(join(fixtures, 'harvester/panda_harvester.cfg'), 'utf8')
        .replace(
          'harvester_id = FIXME',
          `harvester_id = ${panda.id}\nstateDir = state\nfactoryId = ${space.factory}`,
        )
        .replace(/queueList =\n FIXME_1\n FIXME_2/, `queueList =\n ${[...names.values()].join('\n ')}`)
        .replace(/^server_api_url_ssl = .*$/m, `server_api_url_ssl = ${panda.proxy.url}`)
        .replace(/^ca_cert = .*$/m, `ca_cert = ${ca}`)
        .replace('cert_file = FIXME', `cert_file = ${production.cert}`)
        .replace('key_file = FIXME', `key_file = ${production.key}`)
        .replace(/^auth_(token|origin) = FIXME\n/gm, '')
        .replace(/^( panda_queues\.json)\|\|https:.*$/m, `$1||file://${join(root, 'cric.json')}`)
        // Its renewals need a VOMS server.
        .replace(/^\[credmanager\]$[^]*?(?=^\[stager\]$)/m, '')
        .concat('\n[http]\nenabled = False\n')
    );
  }

  it('get their workers by its demand, report each end, and KILL_WORKERS ends those that are left', async () => {
    const { site } = panda;
    const program = join(space.directory, 'wrapper.sh');
    writeFileSync(program, `#!/bin/sh\nwhile [ ! -e ${space.directory}/go ]; do sleep 0.1; done\n`);
    chmodSync(program, 0o755);
    for (const name of ['lsst.submit_pilot_pull_srun_ups.sdf', 'lsst.submit_pilot_pull_ups.sdf'])
      put(`/opt/harvester/sandbox/${name}`, vanilla('lsst.submit_pilot_pull_ups.sdf', program));
    put('/opt/harvester/sandbox/lsst.runpilot2-wrapper.sh', '#!/bin/sh\n', 0o755);
    put('/opt/harvester/etc/auth_tokens/48975ff1c8b067b9dcea54d5cdd28cc8', sharedPanda.token());
    const common = '/cephfs/atlpan/harvester/harvester_common/CERN_central_1';
    for (const path of [`${common}/cloudscheduler-pilot2.sdf`, '/opt/condor_test/grid_submit_pilot.sdf'])
      // Its queues name no token for the pilots.
      put(
        path,
        vanilla('lsst.submit_pilot_pull_ups.sdf', program).replace(/^transfer_input_files = .*\n/m, ''),
      );
    put(`${common}/runpilot2-wrapper.sh`, '#!/bin/sh\n', 0o755);
    const proxy = sharedPanda.variable('PROD_PROXY');
    for (const place of ['data/harvester/run/x509up_u25606', 'data/idds/x509up_u25606']) {
      mkdirSync(dirname(join(root, place)), { recursive: true });
      copyFileSync(proxy, join(root, place));
      chownSync(join(root, place), pool.uid, pool.gid);
      chmodSync(join(root, place), 0o600);
    }
    for (const path of [
      'var/log/condor_logs/condor_logs',
      `var/log/condor_logs/${hostnameFor()}`,
      'var/log/harvester_wdirs',
    ])
      open(join(root, path));
    writeFileSync(site.queueFile, JSON.stringify(queueFile(), null, 2));
    const config = site.path('panda_harvester.cfg');
    writeFileSync(config, harvesterFile());
    writeFileSync(join(root, 'cric.json'), JSON.stringify(cricEntries()));

    const checked = await runHere('--config', config, 'check-config');
    expect(checked.stdout).to.not.match(
      /\/(pandacon|commandmanager|propagator|cacher)\/.*\[unread-setting\]/,
    );

    const [rubin = '', doma = ''] = queues.map(([, name]) => names.get(name) ?? '');
    panda.command(`SET_N_WORKERS_JOBTYPE:${rubin}`, { managed: { SCORE: 2 } });
    sharedPanda.admin('site', doma, '--harvester', panda.id);
    sharedPanda.admin('job', doma, '--n', '2');
    const start = () => site.startWith(['--config', config, 'run'], condorEnvironment(pool, root));
    let daemon = start();
    const of = async (queue: string) =>
      (await panda.serverWorkers()).filter(({ computingsite }) => computingsite === queue);
    const untilAll = (queue: string, count: number, status: string) => {
      let seen: Awaited<ReturnType<typeof of>> = [];
      return until(
        () =>
          `${queue} has ${count} workers that are ${status}: ${JSON.stringify(seen)}\n${daemon.output().slice(-3000)}`,
        async () => {
          seen = await of(queue);
          return seen.length >= count && seen.every((worker) => worker.status === status);
        },
        150_000,
      );
    };
    await until('it has stored and acknowledged the order', async () =>
      (await panda.commands()).every(({ status }) => status === 'acknowledged'),
    );
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    daemon = start();
    await untilAll(rubin, 2, 'running');
    await untilAll(doma, 1, 'running');
    const [killed] = await of(doma);
    panda.command('KILL_WORKERS', {
      status: ['submitted', 'running'],
      computingSite: [doma],
      computingElement: 'ALL',
      submissionHost: 'ALL',
    });
    // Its jobs still wait, so another worker may take its place.
    let seen: Awaited<ReturnType<typeof of>> = [];
    await until(
      () => `the killed worker is cancelled: ${JSON.stringify(seen)}\n${daemon.output().slice(-1500)}`,
      async () => {
        seen = await of(doma);
        return seen.some(({ workerid, status }) => workerid === killed?.workerid && status === 'cancelled');
      },
    );
    writeFileSync(join(space.directory, 'go'), '');
    await untilAll(rubin, 2, 'finished');
    expect(await of(rubin)).to.have.length(2);
  });
});
