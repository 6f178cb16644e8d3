import { appendFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { DefinitionProblem, Submitter } from '../../src/plugins/contracts/index.ts';
import { condorPool, type Pool } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';

const { signal } = new AbortController();

describe('what HTCondor says to a queue before it has a worker', () => {
  let pool: Pool;
  let backend: HTCondorBackend;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    backend = new HTCondorBackend(pool, 'local');
  });
  afterEach(() => backend.clean());

  const said = async (submitter: Submitter): Promise<readonly DefinitionProblem[]> =>
    (await submitter.rehearse?.(backend.worker(), signal)) ?? [];
  /** A submitter whose template says this, too. */
  function withTemplate(more: Record<string, unknown>): Submitter {
    backend.template('pilot.yaml', 'true', more);
    return backend.plugin('submitter', backend.context(), { templateFile: 'pilot.yaml', logDir: 'logs' });
  }

  for (const kind of ['local', 'remote'] as const) {
    it(`is nothing, where all is well, on a ${kind} schedd`, async () => {
      await backend.clean();
      backend = new HTCondorBackend(pool, kind);
      expect(await said(backend.submitter('true'))).to.deep.equal([]);
    });
  }

  for (const [what, initialdir] of [
    ["a worker's access point", '${accessPoint}'],
    ["the hour's directory of the logs", '${logDir}/${logSubdir}'],
  ] as const) {
    it(`is nothing, where the template works in ${what}, which only a submission makes, and leaves nothing`, async () => {
      const directory = join(backend.directory, 'tmp');
      mkdirSync(directory, { mode: 0o755 });
      const before = process.env['TMPDIR'];
      process.env['TMPDIR'] = directory;
      try {
        const accessPoint = join(backend.directory, 'not-made/5');
        const problems = await withTemplate({ initialdir }).rehearse?.(
          backend.worker({ accessPoint }),
          signal,
        );
        expect(problems).to.deep.equal([]);
        expect(existsSync(join(backend.directory, 'not-made'))).to.equal(false);
        expect(existsSync(join(backend.directory, 'logs'))).to.equal(false);
      } finally {
        if (before === undefined) delete process.env['TMPDIR'];
        else process.env['TMPDIR'] = before;
      }
      expect(readdirSync(directory)).to.deep.equal([]);
    });
  }

  it('is what condor_submit would refuse, with the line', async () => {
    const [problem, ...more] = await said(withTemplate({ periodic_remove: '(JobStatus ==' }));
    expect(more).to.deep.equal([]);
    expect(problem).to.include({ code: 'server-refused', file: `${backend.directory}/pilot.yaml` });
    expect(problem?.message).to.contain('that line is: periodic_remove = (JobStatus ==');
  });

  it('is what condor_submit warns of', async () => {
    const [problem, ...more] = await said(withTemplate({ requst_memory: 64 }));
    expect(more).to.deep.equal([]);
    expect(problem).to.include({ code: 'server-warned', severity: 'warning' });
    expect(problem?.message).to.contain('requst_memory');
  });

  it('is that nobody knows the schedd', async () => {
    const where = { condorSchedd: 'nobody@pool.test', condorPool: pool.pool };
    const [problem, ...more] = await said(backend.submitter('true', backend.context(), where));
    expect(more).to.deep.equal([]);
    expect(problem).to.include({ pointer: '/condorSchedd', code: 'server-refused' });
    expect(problem?.message).to.contain('nobody@pool.test').and.to.contain('condor-schedd-unknown');
  });

  it('is that it may not submit', async () => {
    appendFileSync(join(backend.directory, 'condor_config'), `SEC_TOKEN_DIRECTORY = ${backend.directory}\n`);
    const where = { condorSchedd: pool.remote.schedd, condorPool: pool.pool };
    const [problem, ...more] = await said(backend.submitter('true', backend.context(), where));
    expect(more).to.deep.equal([]);
    expect(problem).to.include({ pointer: '/condorSchedd', code: 'server-refused' });
    expect(problem?.message).to.contain('condor-auth');
  });

  it('is unknown where nobody answers', async () => {
    const where = { condorSchedd: 'nobody@pool.test', condorPool: '127.0.0.1:9' };
    const problems = await said(backend.submitter('true', backend.context(), where));
    expect(problems.map(({ code }) => code)).to.deep.equal(['server-unknown']);
  });
});
