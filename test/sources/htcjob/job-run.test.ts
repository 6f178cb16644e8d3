import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { bundleScript, outputName } from '../../../src/plugins/htcondor/payload/bundle.ts';
import type { HtcJobSpec, Runtime } from '../../../src/clients/htcjob/resource.ts';
import { base64, htcJob, payloadOf } from '../../support/htc-jobs.ts';
import { until } from '../../support/until.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Values that a shell, a submit description or a template would take for more than text. */
const hostile = [
  'two  words',
  '',
  '$HOME `id` $(id) ${x}',
  `quotes ' " \\`,
  '; exit 9',
  '*',
  '-n',
  'a=b',
  'line\nline\n',
  'ümläut \u{1F41F}',
  '%s\\n',
];

/** Writes each of its arguments, and each of some variables, on a line as JSON would not be needed: bytes between brackets. */
const showsAll = `for one in "$@"; do printf '[%s]\\n' "$one"; done\n`;

for (const shell of ['dash', 'busybox sh'])
  describe(`a job of an HTCJob, run by ${shell}`, () => {
    let directory: string;
    beforeEach(() => {
      directory = temporaryDirectory();
    });

    /** As HTCondor runs it: the bundle in the job's directory. */
    function start(
      spec: Partial<HtcJobSpec>,
      {
        number = 0,
        env = {},
        context = {},
        detached = false,
      }: {
        number?: number;
        env?: NodeJS.ProcessEnv;
        context?: Parameters<typeof payloadOf>[2];
        detached?: boolean;
      } = {},
    ) {
      const payload = payloadOf(htcJob(spec), number, context);
      const scratch = join(directory, 'scratch');
      mkdirSync(scratch, { recursive: true });
      // The script's own first line names /bin/sh: another shell runs it by name.
      const [program = 'sh', ...words] = shell.split(' ');
      const { argv = [] } = payload;
      writeFileSync(
        join(scratch, 'bundle.sh'),
        bundleScript({ ...payload, argv: [program, ...words, ...argv] }),
      );
      const child = spawn(program, [...words, 'bundle.sh'], {
        cwd: scratch,
        detached,
        env: {
          PATH: process.env['PATH'],
          HOME: '/home-of-the-machine',
          _CONDOR_SCRATCH_DIR: scratch,
          ...env,
        },
      });
      const ended: Promise<Ended> = Promise.all([
        once(child, 'close'),
        text(child.stdout),
        text(child.stderr),
      ]).then(([[code], output, errors]) => ({ code: code as number | null, output, errors }));
      return { child, ended, scratch };
    }
    const run = (...given: Parameters<typeof start>) => start(...given).ended;

    /** Writes what it was called with, and does what a script in the image might do. */
    function fakeApptainer(name = 'apptainer', script: readonly string[] = []): string {
      const bin = join(directory, 'bin');
      mkdirSync(bin, { recursive: true });
      const fake = [
        '#!/bin/sh',
        `for one in "$@"; do printf '[%s]\\n' "$one"; done >"${directory}/called"`,
        `env >"${directory}/environment"`,
        ...(script.length === 0
          ? []
          : [
              // Where the image would see /htc_run.
              'for one in "$@"; do case $one in *:/htc_run) room=${one%:*} ;; esac; done',
              'cd "$room" || exit 9',
              ...script,
            ]),
        'exit 5',
      ];
      writeFileSync(join(bin, name), `${fake.join('\n')}\n`);
      chmodSync(join(bin, name), 0o755);
      return `${bin}:/usr/bin:/bin`;
    }
    const called = () => readFileSync(join(directory, 'called'), 'utf8');

    it('gives the number of the job to the script, and its exit status to the worker', async () => {
      const script = { image: 'x', command: 'sh', source: 'echo "A $1 $JOB_NAME"; exit 7' };
      expect(await run({ script }, { number: 3 })).to.deep.equal({
        code: 7,
        output: 'A 3 zero\n',
        errors: '',
      });
    });

    it('leaves what the script writes in the directory that HTCondor brings back, and no script', async () => {
      const script = { image: 'x', command: 'sh', source: 'pwd; echo result >result.txt; echo "$TEMP_DIR"' };
      const { ended, scratch } = start({ script });
      expect((await ended).output).to.equal(`${scratch}\n${scratch}\n`);
      expect(readdirSync(scratch).toSorted()).to.deep.equal(['result.txt', 'thresher-payload']);
    });

    it('has a directory of its own elsewhere, which goes with it', async () => {
      const script = { image: 'x', command: 'sh', source: 'pwd; echo result >result.txt' };
      const env = { _CONDOR_SCRATCH_DIR: '', TMPDIR: directory };
      const { output } = await run({ script }, { env });
      expect(output).to.match(new RegExp(`^${directory}/htcjob\\.\\w{6}\\n$`));
      expect(existsSync(output.trim())).to.equal(false);
    });

    it('keeps each word of the command, and each variable, as it is written', async () => {
      const command = ['sh', '-c', showsAll, ...hostile];
      const source = '';
      const env = hostile.map((value, index) => ({ name: `V${index}`, value }));
      const { output, code } = await run({ script: { image: 'x', command, source }, env });
      const shown = hostile.slice(1).map((one) => `[${one}]\n`);
      expect(output.startsWith(shown.join(''))).to.equal(true, output);
      expect(code).to.equal(0);
      const variables = hostile.map((_, index) => `"$V${index}"`).join(' ');
      const printing = { image: 'x', command: 'sh', source: `printf '[%s]\\n' ${variables}` };
      expect((await run({ script: printing, env })).output).to.equal(
        hostile.map((one) => `[${one}]\n`).join(''),
      );
    });

    it('takes a program with "=" in its name for a program', async () => {
      const { code, errors } = await run({ script: { image: 'x', command: 'a=b', source: '' } });
      expect(code).to.equal(127);
      expect(errors).to.contain('a=b');
    });

    it('has secrets of the resource as files that its user alone can read', async () => {
      const script = {
        image: 'x',
        command: 'sh',
        source: 'cd "$HTCJOB_SECRETS/login" && stat -c "%a %n" * && cat password',
      };
      const secrets = new Map([['login', { password: base64('$(id)\n"x"'), user: base64('u') }]]);
      const { output } = await run({ script, secrets: [{ name: 'login' }] }, { context: { secrets } });
      expect(output).to.equal('600 password\n600 user\n$(id)\n"x"');
    });

    for (const runtime of ['apptainer', 'singularity'] as const)
      it(`calls ${runtime} as htc-operator does, with the directories that exist`, async () => {
        const PATH = fakeApptainer(runtime);
        const binds = ['/cvmfs-that-is-not-there', directory];
        const script = { image: 'registry.site/a:1', command: 'bash -x', source: '' };
        const { code, errors } = await run(
          { script, runtime },
          { number: 2, env: { PATH }, context: { binds } },
        );
        expect({ code, errors }).to.deep.equal({ code: 5, errors: '' });
        const room = `${directory}/scratch/thresher-job:/htc_run`;
        const bound = [room, directory].flatMap((one) => ['--bind', one]);
        const words = ['exec', '--contain', '--ipc', '--pid', '--pwd', '/htc_run', ...bound];
        expect(called()).to.equal(
          [...words, 'docker://registry.site/a:1', 'bash', '-x', '/htc_run/script.sh', '2']
            .map((one) => `[${one}]\n`)
            .join(''),
        );
      });

    it('hole 2: leaves no link out of its directory by which its files, or those of others, would be read outside of the image', async () => {
      const other = join(directory, 'other-job');
      mkdirSync(other);
      writeFileSync(join(other, 'secret'), 'of another job');
      // As the script would from inside of its image.
      const PATH = fakeApptainer('apptainer', [
        'mkdir deep "not listed"',
        `ln -s ${other}/secret _condor_stdout`,
        'ln -s ../../../other-job deep/away',
        'ln -s /not/there to-nothing',
        'ln -s "to itself" "to itself"',
        'ln -s .. ./-x',
        'ln -s deep inside',
        'ln -s ../thresher-payload/send-event.sh thresher-output',
        'ln -s "$room/../thresher-payload/event" thresher-output.why',
        'mkfifo waits .job.ad',
        'ln -s / "not listed/all" && chmod 0 "not listed"',
      ]);
      const { ended, scratch } = start({ runtime: 'apptainer' }, { env: { PATH } });
      expect((await ended).code).to.equal(5);
      const room = join(scratch, 'thresher-job');
      expect(readdirSync(room).toSorted()).to.deep.equal(['deep', 'inside', 'not listed']);
      expect(readdirSync(join(room, 'deep'))).to.deep.equal([]);
      expect(readdirSync(join(room, 'not listed'))).to.deep.equal([]);
      expect(readFileSync(join(other, 'secret'), 'utf8')).to.equal('of another job');
    });

    it('hole 2: runs, reads and writes outside of the image nothing that the script can reach', async () => {
      const mark = join(directory, 'outside');
      // The archive, its reason and the script that sends the event: each by a link, by a name, and by words in the message of tar.
      const PATH = fakeApptainer('apptainer', [
        `echo 'touch ${mark}' >evil`,
        'for name in thresher-output thresher-output.new thresher-output.why; do',
        '  ln -s thresher-payload/send-event.sh "$name"',
        'done',
        'mkdir -p thresher-payload keep',
        `echo 'touch ${mark}' >thresher-payload/send-event.sh`,
        `echo 'touch ${mark}' >script.sh`,
        `: >'keep/$(sh evil)' && chmod 0 'keep/$(sh evil)'`,
        'mkfifo .job.ad',
      ]);
      const { ended, scratch } = start(
        { runtime: 'apptainer', output: { files: ['keep'] } },
        {
          env: { PATH, HTCJOB_EVENT_TRIES: '1' },
          context: { outputBytes: 1e6, events: { url: 'http://127.0.0.1:9/', key: Buffer.alloc(32) } },
        },
      );
      const { code, errors } = await ended;
      expect(code, errors).to.equal(5);
      expect(existsSync(mark)).to.equal(false);
      expect(errors).to.contain('the end of the job was not told');
      const listed = spawnSync('tar', ['-tf', join(scratch, outputName)], { encoding: 'utf8' }).stdout;
      expect(listed.split('\n')).to.include('./keep/$(sh evil)');
    });

    it('hole 2: gives an image what was beside its script to read, and keeps it for a list of outputs', async () => {
      const PATH = fakeApptainer('apptainer', ['echo result >result.txt']);
      mkdirSync(join(directory, 'scratch/given'), { recursive: true });
      for (const [name, text] of [
        ['given/data', 'of the template'],
        ['a,b', ''],
        ['.job.ad', 'ClusterId = 1'],
        ['_condor_stdout', 'said'],
        ['.token-of-the-queue', 'secret'],
      ] as const)
        writeFileSync(join(directory, 'scratch', name), text);
      const files = ['result.txt', 'given/data', '.token-of-the-queue'];
      const { ended, scratch } = start(
        { runtime: 'apptainer', output: { files } },
        { env: { PATH }, context: { outputBytes: 1e6 } },
      );
      const { errors } = await ended;
      expect(errors).to.contain('a,b is not in the image');
      expect(errors).to.contain('the job left no .token-of-the-queue');
      for (const name of ['given', '.job.ad'])
        expect(called()).to.contain(`[--bind]\n[${scratch}/${name}:/htc_run/${name}:ro]\n`);
      expect(called()).to.not.match(/_condor_stdout|thresher-payload/);
      const listed = spawnSync('tar', ['-tf', join(scratch, outputName)], { encoding: 'utf8' }).stdout;
      expect(listed.split('\n')).to.include.members(['./result.txt', './given/data', './_condor_stdout']);
    });

    it('hole 2: begins with a directory of its own that is empty, whatever a job left there that was killed', async () => {
      const PATH = fakeApptainer('apptainer', ['ls -A >"$room/seen"']);
      const other = join(directory, 'other-job');
      const room = join(directory, 'scratch/thresher-job');
      mkdirSync(room, { recursive: true });
      writeFileSync(other, 'of another job');
      for (const name of ['script.sh', '.job.ad']) symlinkSync(other, join(room, name));
      writeFileSync(join(directory, 'scratch/.job.ad'), 'ClusterId = 1');
      expect((await run({ runtime: 'apptainer' }, { env: { PATH } })).code).to.equal(5);
      expect(readFileSync(other, 'utf8')).to.equal('of another job');
      expect(readFileSync(join(room, 'seen'), 'utf8').trim().split('\n').toSorted()).to.deep.equal(
        ['.job.ad', 'script.sh', 'seen'].toSorted(),
      );
    });

    it('hole 2: knows its directories by their own names, and is refused an image by a link out of its place', async () => {
      const PATH = fakeApptainer();
      mkdirSync(join(directory, 'scratch'));
      symlinkSync('scratch', join(directory, 'link'));
      const linked = { PATH, _CONDOR_SCRATCH_DIR: join(directory, 'link') };
      expect((await run({ runtime: 'apptainer' }, { env: linked })).code).to.equal(5);
      expect(called()).to.include(`[${directory}/scratch/thresher-job:/htc_run]`);
      for (const name of ['images/real', 'beside']) mkdirSync(join(directory, name), { recursive: true });
      symlinkSync('/', join(directory, 'images/all'));
      symlinkSync('../beside', join(directory, 'images/away'));
      symlinkSync('real', join(directory, 'images/named'));
      const places = ['/nowhere', join(directory, 'images')];
      const runs = (name: string) => {
        const context = { imagePaths: places };
        const script = { image: join(directory, 'images', name), command: 'sh', source: '' };
        return run({ runtime: 'apptainer', script }, { env: { PATH }, context });
      };
      for (const name of ['all', 'away', 'none']) {
        const { code, errors } = await runs(name);
        expect([code, errors]).to.deep.equal([
          255,
          `thresher: the job cannot be run: the image ${directory}/images/${name} is not there, or leads out of ${directory}/images\n`,
        ]);
      }
      expect((await runs('named')).code).to.equal(5);
      // A link may be another one by now.
      expect(called()).to.contain(`[${directory}/images/real]\n[sh]`);
    });

    it('hole 2: packs no file that lies behind a link of the script', async () => {
      const source =
        'ln -s ../other away; mkdir own; ln -s own/in named; echo 1 >own/in; chmod 0311 own; exit 0';
      const script = { image: 'x', command: 'sh', source };
      mkdirSync(join(directory, 'other'));
      writeFileSync(join(directory, 'other/secret'), 'of another job');
      const output = join(directory, 'scratch', outputName);
      const files = ['away/secret', 'own/in'];
      const { errors } = await run({ script, output: { files } }, { context: { outputBytes: 1e6 } });
      expect(errors).to.contain('the job left no away/secret');
      const listed = spawnSync('tar', ['-tf', output], { encoding: 'utf8' }).stdout.split('\n');
      expect(listed).to.include('./own/in');
      expect(listed.filter((name) => name.includes('secret'))).to.deep.equal([]);
      expect(existsSync(join(directory, 'other/secret'))).to.equal(true);
    });

    it('keeps the words of its command for the image, whatever is in them', async () => {
      const PATH = fakeApptainer();
      const command = ['sh', ...hostile];
      const image = join(directory, 'images/a_b');
      mkdirSync(image, { recursive: true });
      const script = { image, command, source: '' };
      await run({ script, runtime: 'apptainer' }, { env: { PATH }, context: { imagePaths: [directory] } });
      const words = [image, ...command, '/htc_run/script.sh', '0'];
      expect(called().endsWith(words.map((one) => `[${one}]\n`).join(''))).to.equal(true, called());
    });

    it('hole 2: gives variables of the user to the image alone, and not to the runtime', async () => {
      const PATH = fakeApptainer();
      const names = [
        'PATH',
        'LD_PRELOAD',
        'BASH_ENV',
        'ENV',
        '_WRAPPER_EXEC_CMD',
        'HTTPS_PROXY',
        'TMPDIR',
        'OTHER',
      ];
      const env = names.map((name) => ({ name, value: `$(of ${name})` }));
      await run({ runtime: 'apptainer', env }, { env: { PATH } });
      const seen = readFileSync(join(directory, 'environment'), 'utf8').split('\n');
      for (const name of names) {
        expect(seen).to.include.members([
          `APPTAINERENV_${name}=$(of ${name})`,
          `SINGULARITYENV_${name}=$(of ${name})`,
        ]);
        expect(seen).to.not.include(`${name}=$(of ${name})`);
      }
      expect(seen).to.include.members([
        `PATH=${PATH}`,
        'APPTAINER_NO_EVAL=1',
        'SINGULARITY_NO_EVAL=1',
        // What another job pulled is no image of this one.
        'APPTAINER_DISABLE_CACHE=1',
        `APPTAINER_TMPDIR=${directory}/scratch`,
      ]);
    });

    it('has a cache of images where the machine says so', async () => {
      const PATH = fakeApptainer();
      await run(
        { runtime: 'apptainer' },
        { env: { PATH, APPTAINER_CACHEDIR: '/shared', APPTAINER_TMPDIR: '/big' } },
      );
      const seen = readFileSync(join(directory, 'environment'), 'utf8');
      expect(seen).to.contain('APPTAINER_TMPDIR=/big\n').and.to.not.contain('DISABLE_CACHE');
    });

    it('says so where a machine has no runtime', async () => {
      const bin = join(directory, 'none');
      mkdirSync(bin);
      for (const name of [
        'sh',
        'dash',
        'busybox',
        'env',
        'rm',
        'mkdir',
        'base64',
        'chmod',
        'cp',
        'uname',
        'mktemp',
      ])
        for (const place of ['/bin', '/usr/bin'])
          if (existsSync(`${place}/${name}`) && !existsSync(join(bin, name)))
            writeFileSync(join(bin, name), `#!/bin/sh\nexec ${place}/${name} "$@"\n`, { mode: 0o755 });
      const runtime: Runtime = 'apptainer';
      const { code, errors } = await run({ runtime }, { env: { PATH: bin } });
      expect(code).to.equal(127);
      expect(errors).to.contain('neither apptainer nor singularity is on this machine');
    });

    it('is not ended by its script in an image that kills its own group of processes', async () => {
      const env = { PATH: fakeApptainer('apptainer', ['kill -KILL 0']) };
      const script = { image: 'x.sif', command: 'sh', source: ':' };
      const { ended, scratch } = start({ runtime: 'apptainer', script }, { env, detached: true });
      expect((await ended).code).to.equal(137);
      expect(existsSync(join(scratch, 'thresher-job', 'script.sh'))).to.equal(false);
    });

    it('ends its program when HTCondor ends it, and sends no event then', async () => {
      const source = `trap 'echo told; exit 3' TERM; echo begun; while :; do sleep 0.05; done`;
      const { child, ended, scratch } = start(
        { script: { image: 'x', command: 'sh', source } },
        { context: { events: { url: 'http://127.0.0.1:9/', key: Buffer.alloc(32) } } },
      );
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += String(chunk)));
      await until('it runs', () => output.includes('begun'));
      child.kill('SIGTERM');
      const { code, errors } = await ended;
      expect({ code, errors }).to.deep.equal({ code: 3, errors: '' });
      expect(existsSync(join(scratch, 'script.sh'))).to.equal(false);
    });
  });
