/** The scripts of the image of an HTCondor pool, without HTCondor: stand-ins of its programs say what they were told. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { temporaryDirectory } from '../../support/temporary.ts';

const image = join(import.meta.dirname, '../../../templates/kubernetes/htcondor-pool/image');
/** Where install.sh puts the probes beside the entrypoint. */
const library = 'usr/local/libexec/thresher-pool';

/** A master that ends when it is told to. A shell would not: one that starts in the background cannot catch SIGQUIT. */
const obedient = `exec '${process.execPath}' -e 'process.on("SIGQUIT", () => process.exit()); setInterval(() => {}, 1000)'`;

/** A container that is a directory. */
class Container {
  readonly root = temporaryDirectory();
  readonly #shell: string;

  constructor(shell: string) {
    this.#shell = shell;
    for (const one of ['etc', 'run', 'log', 'execute', 'bin']) mkdirSync(this.path(one));
    this.write('proc/sys/kernel/random/uuid', '4b2e\n');
    this.program('condor_master', 'exit 0');
    this.program('condor_status', 'echo slot1@here');
    this.program('condor_ping', 'exit 1');
    this.program('getent', 'exit 2');
  }

  path(...names: readonly string[]): string {
    return join(this.root, ...names);
  }

  write(name: string, content: string): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
  }

  program(name: string, script: string): void {
    this.write(`bin/${name}`, `#!/bin/sh\n${script}\n`);
    chmodSync(this.path('bin', name), 0o755);
  }

  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : '';
  }

  async run(script: string, words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    const [program = 'sh', ...options] = this.#shell.split(' ');
    const child = spawn(program, [...options, join(this.root, library, script), ...words], {
      env: {
        PATH: `${this.path('bin')}:${process.env['PATH'] ?? ''}`,
        HTCONDOR_POOL_ETC: this.path('etc'),
        HTCONDOR_POOL_RUN: this.path('run'),
        HTCONDOR_POOL_LOG: this.path('log'),
        HTCONDOR_POOL_EXECUTE: this.path('execute'),
        HTCONDOR_POOL_PROC: this.path('proc'),
        HTCONDOR_POOL_TERMINATION_LOG: this.path('termination'),
        ...environment,
      },
      // In a container the end of the first process ends all others. Here they are a group.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const errors = text(child.stderr);
    const [code] = (await once(child, 'exit')) as [number | null];
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // None was left.
    }
    return { code, errors: await errors };
  }

  worker(environment: Readonly<Record<string, string>> = {}) {
    return this.run('entrypoint.sh', ['worker'], { CONDOR_HOST: 'cm.example.org', ...environment });
  }

  /** What role.conf says last of a setting. */
  setting(name: string): string | undefined {
    const lines = this.read('run/role.conf').split('\n');
    return lines.findLast((line) => line.startsWith(`${name} = `))?.slice(name.length + 3);
  }
}

for (const shell of ['dash', 'busybox sh'])
  describe(`the image of an HTCondor pool, run by ${shell}`, () => {
    let container: Container;

    beforeEach(async () => {
      container = new Container(shell);
      const installed = spawn('sh', [join(image, 'install.sh'), container.root]);
      // It gives directories to the user of HTCondor last, which only root may.
      await once(installed, 'exit');
    });

    const wrong: readonly [string, Readonly<Record<string, string>>, RegExp][] = [
      ['CPUs in words', { NUM_CPUS: 'abc' }, /NUM_CPUS is "abc": write a whole number/],
      ['a part of a MiB', { MEMORY: '1.5' }, /MEMORY is "1.5": write a whole number/],
      ['a negative time', { JOIN_TIMEOUT: '-1' }, /JOIN_TIMEOUT is "-1": write a whole number/],
      ['a grace period with a unit', { GRACE_PERIOD: '60s' }, /GRACE_PERIOD is "60s"/],
      ['no central manager', { CONDOR_HOST: '' }, /CONDOR_HOST is missing: write the name/],
      [
        'a central manager with spaces',
        { CONDOR_HOST: 'a b' },
        /CONDOR_HOST is "a b": write HOST or HOST:PORT/,
      ],
      ['a port in words', { CONDOR_HOST: 'cm:collector' }, /CONDOR_HOST is "cm:collector": write HOST/],
      ['a trust domain with a macro', { TRUST_DOMAIN: '$(X)' }, /TRUST_DOMAIN is "\$\(X\)": write letters/],
      ['neither yes nor no', { USE_POOL_PASSWORD: 'maybe' }, /USE_POOL_PASSWORD is "maybe": write yes or no/],
      ['a password that is nowhere', { USE_POOL_PASSWORD: 'yes' }, /pool_password\/password cannot be read/],
      ['a shape of two lines', { POOL_SHAPE: 'a\nSTART = False' }, /ThresherShape has more than one line/],
    ];
    for (const [what, environment, sentence] of wrong)
      it(`refuses ${what} with one sentence and starts nothing`, async () => {
        container.program('condor_master', `: >"${container.path('started')}"`);
        const { code, errors } = await container.worker(environment);
        expect(errors).to.match(sentence);
        expect(code).to.equal(64);
        expect(container.read('termination'), 'Kubernetes shows the same').to.equal(errors);
        expect(existsSync(container.path('started'))).to.equal(false);
      });

    it('refuses a role that it does not have', async () => {
      const { code, errors } = await container.run('entrypoint.sh', ['startd']);
      expect({ code, errors }).to.deep.equal({
        code: 64,
        errors:
          'htcondor-pool: the role is "startd": write central-manager, schedd or worker as the argument\n',
      });
    });

    const hosts: readonly [string, string][] = [
      ['cm.example.org', 'cm.example.org:9618'],
      ['cm.example.org:9700', 'cm.example.org:9700'],
      ['10.1.2.3', '10.1.2.3:9618'],
      ['fd00::7', '[fd00::7]:9618'],
      ['[fd00::7]:9700', '[fd00::7]:9700'],
    ];
    for (const [given, collector] of hosts)
      it(`takes ${given} for the collector ${collector}`, async () => {
        await container.worker({ CONDOR_HOST: given });
        expect(container.setting('COLLECTOR_HOST')).to.equal(collector);
      });

    it('takes the address of a Service where its name does not resolve', async () => {
      const environment = { CONDOR_HOST: 'my-cm', MY_CM_SERVICE_HOST: '10.96.0.9' };
      await container.worker(environment);
      expect(container.setting('COLLECTOR_HOST')).to.equal('10.96.0.9:9618');
      container.program('getent', 'exit 0');
      await container.worker(environment);
      expect(container.setting('COLLECTOR_HOST')).to.equal('my-cm:9618');
    });

    it('writes names as strings that HTCondor reads as they are', async () => {
      await container.worker({ pandaQueueName: 'a "b" \\ $(START)' });
      expect(container.setting('ThresherQueue')).to.equal('"a \\"b\\" \\\\ $(DOLLAR)(START)"');
    });

    it('a fixed worker carries no mark of a factory, and a worker of thresher carries those that it was given', async () => {
      const marks = ['ThresherFactory', 'ThresherWorker', 'ThresherQueue', 'ThresherShape'];
      const carried = () => marks.map((name) => container.setting(name));
      await container.worker();
      expect(carried()).to.deep.equal([undefined, undefined, undefined, undefined]);
      await container.worker({ THRESHER_FACTORY: 'f1', HARVESTER_WORKER_ID: '7', THRESHER_QUEUE: 'Q' });
      expect(carried()).to.deep.equal(['"f1"', '"7"', '"Q"', undefined]);
    });

    it('copies secrets for its own eyes, and a token of the worker last', async () => {
      container.write('etc/tokens-orig.d/token', 'of the pool');
      container.write('etc/passwords-orig.d/POOL', 'key');
      container.write('payload/token', 'of the worker');
      await container.worker({ THRESHER_PAYLOAD_DIR: container.path('payload') });
      expect(container.read('run/tokens.d/token')).to.equal('of the worker');
      for (const file of ['tokens.d/token', 'passwords.d/POOL'])
        expect(statSync(container.path('run', file)).mode & 0o7777).to.equal(0o600);
      expect(statSync(container.path('run/tokens.d')).mode & 0o7777).to.equal(0o700);
    });

    const ends: readonly [string, string, number, number][] = [
      ['without a claim', 'exited with status 0', 99, 0],
      ['drained for good', 'exited with status 99', 0, 0],
      [
        'drained for good, by another master',
        'exited with status 99 (daemon will not restart automatically)',
        0,
        0,
      ],
      ['broken', 'exited with status 4', 0, 70],
      ['killed', 'died due to signal 9 (Killed)', 0, 70],
    ];
    for (const [how, said, master, code] of ends)
      it(`ends with ${code} when the startd ended ${how}`, async () => {
        const log = container.path('log/MasterLog');
        container.program('condor_ping', 'exit 0');
        container.program('condor_master', `echo 'The STARTD (pid 7) ${said}' >>"${log}"; exit ${master}`);
        const end = await container.worker();
        expect(end.code, end.errors).to.equal(code);
        // A shell may say first that it ended what it had in the background.
        const words = end.errors.replace(/^(Terminated\n)+/, '');
        expect(container.read('termination')).to.equal(code === 0 ? '' : words);
      });

    it('takes no worker for an idle one that the pool refused until its startd ended without a claim', async () => {
      const ended = "echo 'The STARTD (pid 7) exited with status 0'";
      const end = `${ended} >>"${container.path('log/MasterLog')}"; exit 99`;
      container.program('condor_status', 'exit 1');
      container.program('condor_ping', 'echo "Failed to authenticate"; exit 1');
      container.program('condor_master', end);
      const refused = await container.worker();
      expect(refused.errors).to.include('had not joined the pool at cm.example.org:9618: ');
      expect(refused.code).to.equal(69);
      // The central manager may be gone when a worker ends that had a job.
      const claimed = `echo 'slot1_1: Changing state: Owner -> Claimed' >>"${container.path('log/StartLog')}"`;
      container.program('condor_master', `${claimed}; ${end}`);
      expect((await container.worker()).code).to.equal(0);
    });

    const causes: readonly [string, string, string][] = [
      [
        'a token of another pool',
        'AUTHENTICATE:1004:Failed to authenticate using IDTOKENS',
        'none of this pool',
      ],
      ['no route', 'ERROR: failed to make connection to <10.0.0.1:9618>', 'compare CONDOR_HOST with'],
    ];
    for (const [what, said, remedy] of causes)
      it(`ends with 69 and a remedy when it does not join for ${what}`, async () => {
        container.write('etc/tokens-orig.d/token', 'of another pool');
        container.program('condor_status', 'exit 1');
        container.program('condor_ping', `echo '${said}'; exit 1`);
        container.program('condor_master', obedient);
        const { code, errors } = await container.worker({ JOIN_TIMEOUT: '0' });
        expect(errors).to.include('did not join the pool at cm.example.org:9618 within 0 s: ');
        expect(errors).to.include(remedy).and.to.include(said);
        expect(container.read('termination')).to.include(remedy);
        expect(code).to.equal(69);
      });

    it('says that a worker without any secret has none', async () => {
      container.program('condor_status', 'exit 1');
      container.program('condor_ping', 'echo "Failed to authenticate"; exit 1');
      container.program('condor_master', obedient);
      const { errors } = await container.worker({ JOIN_TIMEOUT: '0' });
      expect(errors).to.include('it has neither a token nor a password: mount a token at ');
    });

    it('offers the disk that it is told, and no more of the disk that is free', async () => {
      await container.worker({ DISK: '1' });
      expect(Number(container.setting('RESERVED_DISK'))).to.be.above(0);
      await container.worker({ DISK: '999999999' });
      expect(container.setting('RESERVED_DISK')).to.equal('0');
      // The value of a queue without a limit of its disk.
      await container.worker({ DISK: '' });
      expect(container.setting('RESERVED_DISK')).to.equal('0');
    });

    it('lets a schedd run jobs of the scheduler universe only when it is told so', async () => {
      const schedd = (environment: Readonly<Record<string, string>>) =>
        container.run('entrypoint.sh', ['schedd'], { CONDOR_HOST: 'cm.example.org', ...environment });
      await schedd({});
      expect(container.setting('RUNS_SCHEDULER_UNIVERSE')).to.equal(undefined);
      await schedd({ SCHEDULER_UNIVERSE: 'yes' });
      expect(container.setting('RUNS_SCHEDULER_UNIVERSE')).to.equal('True');
      const { code, errors } = await schedd({ SCHEDULER_UNIVERSE: 'perhaps' });
      expect(code).to.equal(64);
      expect(errors).to.include('SCHEDULER_UNIVERSE is "perhaps": write yes or no');
    });

    it('waits before the end of a Pod for a running job, for as long as the grace period lets', async () => {
      container.program('condor_off', 'exit 0');
      container.write('proc/12/comm', 'condor_starter\n');
      container.write('proc/12/cmdline', 'condor_starter -f -a slot1_1 schedd '.replaceAll(' ', '\0'));
      const begin = performance.now();
      const { code, errors } = await container.run('pre-stop', [], { GRACE_PERIOD: '13' });
      expect({ code, errors }).to.deep.equal({ code: 0, errors: '' });
      expect(performance.now() - begin).to.be.at.least(2000);
    });

    it('is ready for a job, not for a starter that only tells what it can do', async () => {
      const starts = (words: string) => {
        container.write('proc/12/comm', 'condor_starter\n');
        container.write('proc/12/cmdline', words.replaceAll(' ', '\0'));
        return container.run('ready-worker', []);
      };
      expect((await container.run('ready-worker', [])).code).to.equal(1);
      expect((await starts('condor_starter -classad ')).code).to.equal(1);
      expect((await starts('condor_starter -f -a slot1_1 schedd ')).code).to.equal(0);
    });

    it('finds a central manager by the 15 bytes that the kernel keeps of a name', async () => {
      container.write('proc/12/comm', 'condor_collecto\n');
      container.program('condor_status', 'exit 0');
      expect((await container.run('ready', [])).code).to.equal(0);
      container.program('condor_status', 'exit 1');
      expect((await container.run('ready', [])).code).to.equal(1);
    });
  });
