import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { privateDirectory } from '../../src/sources/interlink/pod/report.ts';
import { PodFiles } from '../../src/sources/interlink/pods/pod-files.ts';
import { podOf } from '../support/interlink-client.ts';
import { dataRoot, untilListening } from '../support/interlink-site.ts';
import { clearSpaces, type CondorSpace, condorPool, condorSpace, type Pool } from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from '../support/htcondor-site.ts';
import type { Site } from '../support/site.ts';
import { rejection } from '../support/kubernetes-client.ts';
import { files as operatorFiles } from '../support/operator-files.ts';
import { recordingLog } from '../support/samples.ts';
import { removeDirectory, temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

describe('on a real schedd a Pod of interLink', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;

  before(async () => {
    pool = await condorPool();
  });

  afterEach(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  it('A1, A4, A11, A12, A22: is a job with its needs, and its state and logs come back with the job', async () => {
    space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const queue = { demand: 'interlink', maxWorkers: 10, nQueueLimitWorker: 10 };
    const options = {
      socket: 'sidecar.sock',
      dataRoot,
      lookInterval: 0.2,
      allowHost: true,
      capacity: 'htcondor',
    };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind: 'remote', template: 'job.yaml', queue }) },
        settings: {
          master: { factoryId: space.factory },
          sources: { interlink: { ...options, condorPool: pool.pool } },
        },
      },
      { 'job.yaml': template },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    const client = await untilListening(site, site.start([], condorEnvironment(pool, site.directory)));

    const pod = podOf('real', randomUUID(), 'echo hello; echo world; exit 5');
    const [container] = pod.spec.containers;
    Object.assign(container ?? {}, { image: 'host', resources: { requests: { memory: '64Mi' } } });
    const { uid } = pod.metadata;
    const { PodJID } = await client.created(pod);
    expect(PodJID).to.match(/^\d+\.\d+$/);
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended, JSON.stringify(ended)).to.include({ exitCode: 5 });
    await until(
      () =>
        `its log is there: ${readdirSync(site.path(dataRoot, 'output', uid)).join()} ${JSON.stringify(ended)}`,
      async () => (await client.logs(uid)).text === 'hello\nworld\n',
      6000,
    );
    expect((await client.logs(uid, { Tail: 1, Timestamps: true })).text).to.match(/^\d{4}-\S+Z world\n$/);
    const ping = JSON.parse((await client.ask('GET', '/status', [])).text) as {
      resources?: { cpu?: string };
    };
    expect(Number(ping.resources?.cpu)).to.be.greaterThan(0);
    expect((await client.remove(pod)).status).to.equal(200);
    await until('nothing is left of it', () => !existsSync(site.path(dataRoot, 'output', uid)));
  });
});

describe('outputs of Pods of interLink that another user writes, below a daemon of root', () => {
  const jobs = 54_321;
  const uid = '0b0b0b0b-1111-2222-3333-444444444444';
  const asJob = (work: () => void) => {
    process.seteuid?.(jobs);
    try {
      work();
    } finally {
      process.seteuid?.(0);
    }
  };
  const ownerOf = (path: string) => statSync(path).uid;

  it('hole 2: are his, and he can put nothing else in their place', async () => {
    const top = temporaryDirectory();
    const [root, victim] = [join(top, 'data'), join(top, 'victim')];
    const [output, moved] = [join(root, 'output'), join(root, 'output', 'moved')];
    const log = recordingLog();
    for (const directory of [root, output, victim]) mkdirSync(directory, { mode: 0o700 });
    chmodSync(top, 0o711);
    chownSync(output, jobs, jobs);
    const files = new PodFiles(root, log, operatorFiles.laneOf(root));
    const directory = files.outputOf(uid);
    // A link from before thresher knew that it is to keep the directory.
    symlinkSync(victim, directory);
    await files.prepare([uid]);
    expect([ownerOf(victim), ownerOf(directory), ownerOf(output)]).to.deep.equal([0, jobs, 0]);
    asJob(() => {
      writeFileSync(join(directory, 'main.log'), 'hello');
      expect(() => {
        renameSync(directory, moved);
      }).to.throw('EACCES');
    });
    // At the next start it is still known who writes, and a chown tells another one.
    removeDirectory(directory);
    await new PodFiles(root, log, operatorFiles.laneOf(root)).prepare([uid]);
    expect([ownerOf(directory), readFileSync(join(root, 'output-user'), 'utf8')]).to.deep.equal([
      jobs,
      `${jobs}:${jobs}\n`,
    ]);
    chownSync(output, jobs + 1, jobs);
    await new PodFiles(root, log, operatorFiles.laneOf(root)).prepare([uid]);
    expect([ownerOf(directory), ownerOf(output)]).to.deep.equal([jobs + 1, 0]);
    // Below a directory of another user it stays his.
    chownSync(root, jobs, jobs);
    chownSync(output, jobs, jobs);
    await new PodFiles(root, log, operatorFiles.laneOf(root)).prepare([uid]);
    expect([ownerOf(directory), ownerOf(output)]).to.deep.equal([jobs, jobs]);
    for (const one of [root, output]) chownSync(one, 0, 0);
    writeFileSync(join(root, 'output-user'), 'somebody');
    const error = await rejection(new PodFiles(root, log, operatorFiles.laneOf(root)).prepare([uid]));
    expect(error).to.have.property('code', 'interlink-files');
    expect(String(error)).to.contain('output-user is not UID:GID');
  });

  it('hole 2: are removed with his rights alone, also what he cannot enter, and what is not his stays and is named', async () => {
    const top = temporaryDirectory();
    const [root, victim] = [join(top, 'data'), join(top, 'victim')];
    for (const directory of [root, join(root, 'output'), victim]) mkdirSync(directory, { mode: 0o700 });
    chmodSync(top, 0o711);
    chownSync(join(root, 'output'), jobs, jobs);
    const files = new PodFiles(root, recordingLog(), operatorFiles.laneOf(root));
    await files.prepare([uid]);
    const directory = files.outputOf(uid);
    const closed = join(directory, privateDirectory, 'closed');
    const fill = () => {
      asJob(() => {
        mkdirSync(closed, { recursive: true });
        writeFileSync(join(closed, '-file'), '');
        symlinkSync(victim, join(closed, 'link'));
        chmodSync(closed, 0);
      });
    };
    fill();
    await files.wipe(uid);
    expect([readdirSync(directory), ownerOf(victim)]).to.deep.equal([[], 0]);
    await files.wipe(uid);
    fill();
    await files.remove(uid);
    await files.remove(uid);
    expect(readdirSync(join(root, 'output'))).to.deep.equal([]);
    await files.prepare([uid]);
    const roots = join(directory, 'of root');
    mkdirSync(roots, { mode: 0o700 });
    writeFileSync(join(roots, 'file'), '');
    expect(String(await rejection(files.remove(uid)))).to.match(/ENOTEMPTY/);
    expect(readdirSync(roots), "root's rights were not used").to.deep.equal(['file']);
  });
});
