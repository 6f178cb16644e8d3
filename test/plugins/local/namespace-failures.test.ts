import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { LocalBackend } from '../../support/local-plugins.ts';
import { requirements, workerOf } from '../../support/samples.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const signal = new AbortController().signal;
const worker = workerOf(7, { requirements: { ...requirements, minRamCount: 0, maxWalltime: 0 } });

describe('the trial for PID namespaces', () => {
  const { TMPDIR } = process.env;

  afterEach(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });

  it('needs no directory but the work directory, and leaves nothing there', async () => {
    const backend = new LocalBackend();
    writeFileSync(join(backend.directory, 'pilot.yaml'), stringify({ command: '/bin/true' }));
    process.env.TMPDIR = '/nonexistent';
    const { notes, problems } = await backend.submitter.preflight(signal);
    expect({ notes, problems }).to.deep.equal({ notes: [], problems: [] });
    expect(readdirSync(backend.root).filter((name) => name.startsWith('.namespace'))).to.deep.equal([]);
  });
});

for (const [what, refused] of [
  ['cannot be made any more', '*'],
  ['cannot be entered any more', '*--mount-proc*'],
] as const)
  describe(`a local worker for which a PID namespace ${what}`, () => {
    const { PATH } = process.env;
    let backend: LocalBackend;
    let programs: string;

    beforeEach(async () => {
      programs = temporaryDirectory();
      const real = spawnSync('/bin/sh', ['-c', 'command -v unshare']).stdout.toString().trim();
      const refusal = `case "$*" in ${refused}) echo "unshare: no more namespaces" >&2; exit 1;; esac`;
      const script = `#!/bin/sh\nif [ -e ${programs}/refuse ]; then ${refusal}; fi\nexec ${real} "$@"\n`;
      writeFileSync(join(programs, 'unshare'), script, { mode: 0o755 });
      process.env.PATH = `${programs}:${PATH ?? ''}`;
      backend = new LocalBackend();
      const template = { command: '/bin/sh', args: ['-c', 'touch began; exec sleep 1000'], cpu: 0 };
      writeFileSync(join(backend.directory, 'pilot.yaml'), stringify(template));
      expect((await backend.submitter.preflight(signal)).notes).to.deep.equal([]);
      mkdirSync(join(programs, 'refuse'));
    });

    afterEach(async () => {
      process.env.PATH = PATH;
      await backend.clean();
    });

    const failed = async () => {
      await backend.submitter.submit([worker], signal);
      return until('it ended', async () => {
        const result = await backend.check(worker);
        return result?.kind === 'observed' && result.observation.error;
      });
    };

    it('ends with a reason of its own, and its command never began', async () => {
      const error = await failed();
      expect(error).to.include({ code: 'pid-namespace-failed' });
      expect(readdirSync(backend.path(worker)))
        .to.include('exit')
        .and.not.to.include('began');
    });

    it('is followed by workers without one, and by those with one once they can be made again', async () => {
      await failed();
      const { notes } = await backend.submitter.preflight(signal);
      expect(notes?.map(({ code }) => code)).to.deep.equal(['pid-namespace-missing']);
      removeDirectory(join(programs, 'refuse'));
      const next = await backend.restarted().submitter.preflight(signal);
      expect(next.notes).to.deep.equal([]);
    });
  });
