import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JobOutput } from '../../../src/clients/htcjob/resource.ts';
import { bundleScript, outputName } from '../../../src/plugins/htcondor/payload/bundle.ts';
import { unpack } from '../../../src/sources/htcjob/output/unpack.ts';
import { inPieces } from '../../support/archives.ts';
import { htcJob, payloadOf } from '../../support/htc-jobs.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const bounds = { bytes: 1e8, files: 100_000 };

for (const shell of ['dash', 'busybox sh'])
  describe(`the output of a job of an HTCJob, run by ${shell}`, () => {
    let scratch: string;

    beforeEach(() => {
      scratch = join(temporaryDirectory(), 'a job');
      mkdirSync(scratch);
      // Files that HTCondor brings with a job, such as a proxy.
      writeFileSync(join(scratch, 'proxy'), 'a secret');
      writeFileSync(join(scratch, '.job.ad'), '');
    });

    function run(
      source: string,
      output: JobOutput | 'none' = {},
      { outputBytes = 1e6, path = process.env['PATH'] ?? '' } = {},
    ) {
      const spec = { script: { image: 'x', command: 'sh', source }, ...(output !== 'none' && { output }) };
      const payload = payloadOf(htcJob(spec), 7, { outputBytes });
      const [program = 'sh', ...words] = shell.split(' ');
      const argv = [program, ...words, ...(payload.argv ?? [])];
      writeFileSync(join(scratch, 'bundle.sh'), bundleScript({ ...payload, argv }));
      const env = { PATH: path, _CONDOR_SCRATCH_DIR: scratch };
      const { status, stderr } = spawnSync(program, [...words, 'bundle.sh'], { cwd: scratch, env });
      return { status, stderr: stderr.toString() };
    }

    async function unpacked(): Promise<string> {
      const directory = temporaryDirectory();
      await unpack(inPieces(readFileSync(join(scratch, outputName))), directory, bounds);
      return directory;
    }

    it('has all that the script left, and nothing that was there before', async () => {
      const { status } = run('echo 1 > one; mkdir .two; echo 3 > ".two/a b"; : > -n; : > "*"; exit 5');
      expect(status).to.equal(5);
      const directory = await unpacked();
      expect(readdirSync(directory).sort()).to.deep.equal(['*', '-n', '.two', 'one']);
      expect(readFileSync(join(directory, '.two/a b'), 'utf8')).to.equal('3\n');
      expect(readdirSync(scratch).sort()).to.deep.equal(
        ['.job.ad', 'proxy', 'thresher-output', 'thresher-payload'].sort(),
      );
    });

    it('has what HTCondor caught of its words', async () => {
      writeFileSync(join(scratch, '_condor_stdout'), 'said\n');
      run(': > file');
      const directory = await unpacked();
      expect(readdirSync(directory).sort()).to.deep.equal(['_condor_stdout', 'file']);
    });

    it('has the files alone that the resource names, by their paths', async () => {
      const source = 'mkdir -p a/b; echo 1 > a/b/c; echo 2 > a/d; echo 3 > "e f"; echo 4 > g';
      const { stderr } = run(source, { files: ['a/b', 'e f', '-none'] });
      const directory = await unpacked();
      expect(readdirSync(directory).sort()).to.deep.equal(['a', 'e f']);
      expect(readdirSync(join(directory, 'a'))).to.deep.equal(['b']);
      expect(stderr).to.contain('the job left no -none');
    });

    it('has a thousand files of one directory', async () => {
      run('i=0; while [ $i -lt 1200 ]; do : > file$i; i=$((i + 1)); done');
      expect(readdirSync(await unpacked())).to.have.length(1200);
    });

    it('is empty where the script left nothing', async () => {
      expect(run('true').status).to.equal(0);
      expect(readdirSync(await unpacked())).to.deep.equal([]);
    });

    it('is not made where the resource wants none', () => {
      run('echo 1 > one', 'none');
      expect(readdirSync(scratch)).to.not.include(outputName);
    });

    const said = () => readFileSync(join(scratch, outputName), 'utf8');

    it('says in its place that it is too large', () => {
      const { status, stderr } = run('head -c 200000 /dev/zero > large', {}, { outputBytes: 102_400 });
      expect(status).to.equal(0);
      expect(said()).to.match(/^thresher: the output of the job cannot be packed, or is larger than 100 kB/);
      expect(stderr).to.contain('larger than 100 kB');
    });

    // A shell of busybox finds busybox's own programs everywhere.
    if (shell === 'dash')
      it('says in its place that there is no tar', () => {
        const bin = temporaryDirectory();
        for (const name of ['sh', 'dash', 'rm', 'mkdir', 'base64', 'chmod', 'env', 'cp'])
          symlinkSync(`/usr/bin/${name}`, join(bin, name));
        run(': > file', {}, { path: bin });
        expect(said()).to.contain('thresher: there is no tar');
      });

    it('stays empty where the job is killed', () => {
      const { status } = run('echo 1 > one; kill -9 $PPID');
      expect(status).to.not.equal(0);
      expect(said()).to.equal('');
    });
  });
