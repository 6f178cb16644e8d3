import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SubmitOutcome } from '../../src/plugins/contracts/index.ts';
import { neededCases } from '../support/condor-executables.ts';
import { clientOf, condorPool, type Pool } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const { signal } = new AbortController();

describe('condor_submit, where the program of a job is not there', () => {
  let pool: Pool;

  before(async () => {
    pool = await condorPool();
  });

  for (const { what, text, looksFor } of neededCases('/none/pilot.sh'))
    it(`${looksFor ? 'refuses' : 'takes'} the submission ${what}`, async () => {
      const said = await drySubmit(`${text}queue 1\n`);
      if (looksFor) expect(said).to.contain('Executable file /none/pilot.sh does not exist');
      else expect(said).to.equal('');
    });

  it('looks for a relative path where it was started, and not in initialdir', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'pilot.sh'), '#!/bin/sh\n', { mode: 0o755 });
    const text = `initialdir = ${directory}\nexecutable = pilot.sh\nqueue 1\n`;
    expect(await drySubmit(text)).to.contain('Executable file pilot.sh does not exist');
    expect(await drySubmit(text, directory)).to.equal('');
  });

  for (const [what, text, refusal] of [
    ['an empty executable', 'executable =', "No 'executable' parameter"],
    ['None for an executable', 'executable = None', 'Executable file None does not exist'],
    ['None for a proxy', 'x509userproxy = None', 'unable to read proxy file'],
    ['an empty proxy', 'x509userproxy =', ''],
    ['no grid resource', 'universe = grid\ngrid_resource =', 'grid_resource attribute not defined'],
    ['no image of a container', 'universe = container\ncontainer_image =', 'require a container_image'],
    ['no image of docker', 'universe = docker', 'require a docker_image'],
    ...['gt2', 'gt5', 'cream', 'unicore', 'nordugrid', 'globus', 'None', 'boinc'].map(
      (type) => [type, `universe = grid\ngrid_resource = ${type} ce`, 'for grid type'] as const,
    ),
    ...['condor', 'batch', 'arc', 'pbs', 'lsf', 'sge', 'nqs', 'blah'].map(
      (type) => [type, `universe = grid\ngrid_resource = ${type} ce ce`, ''] as const,
    ),
  ] as const)
    it(`${refusal === '' ? 'takes' : 'refuses'} ${what}, as check-config says`, async () => {
      const said = await drySubmit(`executable = /bin/true\n${text}\nqueue 1\n`);
      if (refusal === '') expect(said).to.equal('');
      else expect(said).to.contain(refusal);
    });

  /** What it says against a text; "" for one that it takes. */
  function drySubmit(text: string, cwd = '/'): Promise<string> {
    const env = { ...process.env, CONDOR_CONFIG: pool.local.config };
    return new Promise((resolve) => {
      const done = (error: Error | null, _out: string, err: string) => {
        resolve(error === null ? '' : err);
      };
      const tool = join(pool.programs, 'condor_submit');
      execFile(tool, ['-dry-run', '/dev/null', '-'], { env, cwd }, done).stdin?.end(text);
    });
  }
});

describe('variables of the daemon that a submit description names', () => {
  let pool: Pool;
  let backend: HTCondorBackend;
  const own = { THRESHER_TEST_SITE: 'CERN-PROD', THRESHER_TEST_API_KEY: 'hunter2' };

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    backend = new HTCondorBackend(pool, 'local');
    Object.assign(process.env, own);
  });
  afterEach(async () => {
    for (const name of Object.keys(own)) Reflect.deleteProperty(process.env, name);
    await backend.clean();
  });

  const submitting = (more: Record<string, unknown>) => {
    backend.template('pilot.yaml', 'true', more);
    return backend.plugin('submitter', backend.context(), { templateFile: 'pilot.yaml', logDir: 'logs' });
  };

  it('reach the jobs, as with Harvester', async () => {
    const attributes = { Site: '$ENV(THRESHER_TEST_SITE)', Other: '$ENV(THRESHER_TEST_NONE:nothing)' };
    const worker = backend.worker();
    const outcomes = await submitting({ attributes }).submit([worker], signal);
    expect(outcomes.get(worker.workerId)).to.have.property('kind', 'accepted');
    const id = `harvesterWorkerID =?= "${worker.workerId}" && ${backend.space.mine}`;
    const [ad] = [
      ...(await clientOf(pool, 'local').queue(id, ['Site', 'Other'], signal)),
      ...(await clientOf(pool, 'local').history(id, ['Site', 'Other'], 1, signal)),
    ];
    expect(ad).to.deep.include({ Site: 'CERN-PROD', Other: 'nothing' });
  });

  it('never do where they hold secrets: nothing is submitted, and the message names the variable', async () => {
    const submitter = submitting({ attributes: { Site: '$ENV(THRESHER_TEST_API_KEY)' } });
    const { problems } = await submitter.preflight(signal);
    expect(problems.map(({ message }) => message).join()).to.contain(
      'THRESHER_TEST_API_KEY is called as a key',
    );
    const worker = backend.worker();
    const outcome = (await submitter.submit([worker], signal)).get(worker.workerId) as SubmitOutcome;
    expect(outcome).to.have.property('kind', 'rejected');
    expect(JSON.stringify([problems, outcome])).to.not.contain('hunter2');
  });

  it('are not those that values of a worker look like', async () => {
    const worker = backend.worker({ accessPoint: '/x/$ENV(THRESHER_TEST_SITE)' });
    const submitter = submitting({
      attributes: { Site: '$ENV(THRESHER_TEST_SITE)', Place: '${accessPoint}' },
    });
    await submitter.submit([worker], signal);
    const id = `harvesterWorkerID =?= "${worker.workerId}" && ${backend.space.mine}`;
    const [ad] = [
      ...(await clientOf(pool, 'local').queue(id, ['Site', 'Place'], signal)),
      ...(await clientOf(pool, 'local').history(id, ['Site', 'Place'], 1, signal)),
    ];
    expect(ad).to.deep.include({ Site: 'CERN-PROD', Place: '/x/$ENV(THRESHER_TEST_SITE)' });
  });
});
