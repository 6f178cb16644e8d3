import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import type { RenderedFile } from '../../src/plugins/contracts/index.ts';
import { runHere } from '../support/command-line.ts';
import { jobTemplate } from '../support/kubernetes-site.ts';
import { kubeconfig, writeKubeconfig } from '../support/kubernetes-client.ts';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

interface Shown {
  readonly queue: string;
  readonly workerId: number;
  readonly name: string;
  readonly connection: string;
  readonly format: string;
  readonly document: unknown;
  readonly environment: Readonly<Record<string, string>>;
  readonly files: readonly RenderedFile[];
  readonly notes: readonly string[];
}

interface RenderedJob {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly env: readonly { readonly name: string; readonly value: string }[];
          readonly resources: { readonly limits: { readonly cpu: string } };
        }[];
      };
    };
  };
}

const plugin = (backend: string, prefix: string, more: object = {}) => ({
  submitter: { name: `${prefix}Submitter`, module: `thresher/${backend}`, ...more },
  monitor: { name: `${prefix}Monitor`, module: `thresher/${backend}` },
  sweeper: { name: `${prefix}Sweeper`, module: `thresher/${backend}` },
});
const kubernetes = (where: object) => {
  const { submitter, monitor, sweeper } = plugin('kubernetes', 'K8s');
  return {
    submitter: { ...submitter, ...where, k8s_yaml_file: 'job.yaml' },
    monitor: { ...monitor, ...where },
    sweeper: { ...sweeper, ...where },
  };
};

describe('thresher render', () => {
  let site: Site;
  const render = (...args: string[]) => runHere('--config', site.config, 'render', ...args);
  const shown = async (...args: string[]): Promise<Shown> => {
    const { stdout, stderr } = await render(...args, '--output', 'json');
    expect(stderr).to.equal('');
    return (JSON.parse(stdout) as [Shown])[0];
  };

  before(() => {
    // No server is at these addresses: whatever is asked there fails.
    const where = { k8s_config_file: 'kubeconfig', k8s_namespace: 'grid' };
    site = new Site({
      settings: {
        pandacon: {
          pandaCacheURL: 'https://cache.example:25443',
          pandaCacheURL_W_path: '/server/panda',
          pandaCacheURL_R_path: '/cache',
        },
      },
      queues: {
        LOCAL: {},
        JOBS: kubernetes(where),
        CONDOR: plugin('htcondor', 'HTCondor', {
          templateFile: 'pilot.sub.yaml',
          condorSchedd: 'schedd.invalid',
          condorPool: 'pool.invalid',
        }),
        THIRD: {
          submitter: { name: 'ScriptedSubmitter', module: './third.mjs' },
          monitor: { name: 'ScriptedMonitor', module: './third.mjs' },
          sweeper: { name: 'ScriptedSweeper', module: './third.mjs' },
        },
        SECRETS: plugin('htcondor', 'HTCondor', {
          templateFile: 'secrets.sdf',
          condorSchedd: 'schedd.invalid',
          condorPool: 'pool.invalid',
          customSubmitAttributes: { X_PASSWORD: 'hunter2' },
        }),
        TEMPLATE: { isTemplateQueue: true, ...plugin('local', 'Local') },
        LEAN: {
          mapType: 'NoJob',
          ...plugin('htcondor', 'HTCondor', {
            templateFile: 'sizes.sdf',
            condorSchedd: 'schedd.invalid',
            condorPool: 'pool.invalid',
          }),
        },
        BARE: plugin('htcondor', 'HTCondor', {
          templateFile: 'bare.sdf',
          condorSchedd: 'schedd.invalid',
          condorPool: 'pool.invalid',
        }),
        USER: { templateQueueName: 'TEMPLATE' },
        WRONG: { ...kubernetes(where), maxWorkers: 'many' },
      },
    });
    writeKubeconfig(kubeconfig({ server: 'https://127.0.0.1:9' }), site.directory);
    writeFileSync(
      site.path('job.yaml'),
      stringify(
        jobTemplate(
          {},
          {
            containers: [
              {
                name: 'pilot',
                image: 'busybox',
                command: ['pilot', '--password', 'hunter5'],
                env: [
                  { name: 'DB_PASSWORD', value: 'geheim' },
                  { name: 'PILOT_OPTIONS', value: '--password hunter4' },
                ],
              },
            ],
          },
        ),
      ),
    );
    for (const [file, executable, more] of [
      ['sizes.sdf', '/bin/true', 'request_memory = {requestRam}'],
      ['bare.sdf', '/no/such/pilot', '+site = "A"'],
    ] as const)
      writeFileSync(site.path(file), `executable = ${executable}\n${more}\n+workerID = {workerID}\nqueue\n`);
    writeFileSync(
      site.path('secrets.sdf'),
      [
        'executable = /bin/true',
        'arguments = --password hunter7 --header "Authorization: Bearer hunter8"',
        '+MyToken = "hunter12"',
        'my.api_key = hunter13',
        '{customSubmitAttributes}',
        '+workerID = {workerID}',
        'queue',
        '',
      ].join('\n'),
    );
    writeFileSync(
      site.path('pilot.sub.yaml'),
      stringify({
        executable: '/bin/true',
        arguments: ['${workerID}'],
        environment: { DB_PASSWORD: 'geheim' },
      }),
    );
    writeFileSync(
      site.path('third.mjs'),
      `const kinds = ['submitter', 'monitor', 'sweeper'];
       const backend = { name: 'Scripted', connect: () => ({ submitter: () => ({}), monitor: {}, sweeper: {} }) };
       export const plugins = kinds.map((kind) => ({
         kind, name: 'Scripted' + kind[0].toUpperCase() + kind.slice(1), module: './third.mjs', aliases: [],
         config: { type: 'object' }, connections: () => ['third:'], check: () => [], withFiles: (config) => config,
         backend,
       }));\n`,
    );
  });

  it('shows the Job of a Kubernetes queue as YAML, with whose it is and its files as comments', async () => {
    const { stdout, status } = await render('JOBS');
    expect(status).to.equal(0);
    const [first = ''] = stdout.split('\n');
    expect(first).to.match(/^# worker 1 of JOBS, thresher-rendered-1, for kubernetes:.*\/grid$/);
    expect(stdout).to.include(`\n# template: ${site.path('job.yaml')}\n`);
    const job = parse(stdout) as RenderedJob;
    expect(job.kind).to.equal('Job');
    expect(job.metadata).to.include({ namespace: 'grid', name: 'thresher-rendered-1' });
    expect(job.metadata.annotations).to.include({
      'thresher/stdOut': 'https://cache.example:25443/cache/test-harvester_1_gz.out',
    });
  });

  it('masks what is secret, on each backend', async () => {
    for (const queue of ['JOBS', 'CONDOR']) {
      const { stdout } = await render(queue);
      expect(stdout, queue).to.include('DB_PASSWORD').and.include('(hidden)').and.not.include('geheim');
    }
  });

  for (const [queue, forms] of [
    ['SECRETS', ['yaml', 'sdf', 'json']],
    ['JOBS', ['yaml', 'json']],
  ] as const)
    for (const form of forms)
      it(`masks options, headers and attributes of ${queue} as ${form}`, async () => {
        const { stdout, stderr } = await render(queue, '--output', form);
        expect(stderr).to.equal('');
        expect(stdout)
          .to.include('--password')
          .and.include('(hidden)')
          .and.not.match(/hunter\d/);
        if (queue === 'SECRETS') expect(stdout).to.include('X_PASSWORD').and.include('api_key');
      });

  it('shows the submit text of an HTCondor queue, and as JSON with its files', async () => {
    const { stdout } = await render('CONDOR');
    expect(stdout)
      .to.match(/^# worker 1 of CONDOR/)
      .and.include('\nexecutable = /bin/true\n');
    const { format, document, files } = await shown('CONDOR');
    expect(format).to.equal('sdf');
    expect(stdout).to.include(String(document));
    expect(files).to.deep.include({ role: 'template', path: site.path('pilot.sub.yaml') });
  });

  it('shows command, arguments, environment and directory of a local queue', async () => {
    const { document, notes, connection } = await shown('LOCAL');
    expect(document).to.deep.include({ command: '/bin/sh', args: ['-c', 'exec sleep 1000'] });
    expect(document).to.have.nested.property('env.HARVESTER_WORKER_ID', '1');
    expect(document).to.have.property('cwd', join(site.stateDir, 'local/1'));
    expect(connection).to.equal(`local:${join(site.stateDir, 'local')}`);
    expect(notes.join()).to.include('it inherits PATH');
  });

  it('shows a worker with the attributes that are asked for', async () => {
    const attributes = ['--ncore', '8', '--resource-type', 'MCORE_HIMEM', '--job-type', 'user'];
    const { document } = await shown('JOBS', ...attributes, '--prod-source-label', 'rc_test2');
    const [pilot] = (document as RenderedJob).spec.template.spec.containers;
    expect(pilot?.resources.limits.cpu).to.equal('8');
    const valueOf = (wanted: string) => pilot?.env.find(({ name }) => name === wanted)?.value;
    expect({ type: valueOf('resourceType'), label: valueOf('prodSourceLabel') }).to.deep.equal({
      type: 'MCORE_HIMEM',
      label: 'rc_test2',
    });
  });

  it('shows a worker of a queue that lacks only a size, once the command line gives it', async () => {
    const { stdout } = await render('LEAN', '--ram', '2000', '--walltime', '86400');
    expect(stdout).to.include('request_memory = 2000');
    const refused = await render('LEAN');
    expect(refused.status).to.equal(1);
    expect(refused.stderr).to.include('[size-not-said]');
    expect((await render('LEAN', '--ram', '0')).stderr).to.include('[size-not-said]');
  });

  it('shows a worker whose executable is not on this machine, and names it in a note', async () => {
    const { stdout, stderr } = await render('BARE');
    expect(stderr).to.equal('');
    expect(stdout)
      .to.include('\n# missing: the executable /no/such/pilot does not exist')
      .and.include('executable = /no/such/pilot');
  });

  it('needs no daemon, and makes no state directory', () => {
    expect(existsSync(site.stateDir)).to.equal(false);
  });

  for (const [what, args, status, message] of [
    [
      'a plugin that cannot show it',
      ['THIRD'],
      1,
      /ScriptedSubmitter of .*third\.mjs .* has no method render \[no-render\]/,
    ],
    ['a queue with mistakes', ['WRONG'], 1, /maxWorkers/],
    ['a queue that is none', ['JOBX'], 1, /did you mean JOBS\?.*\[no-such-queue\]/],
    [
      'the submit text of a Job',
      ['JOBS', '--output', 'sdf'],
      2,
      /has no submit text: use --output yaml or json/,
    ],
    [
      'a template',
      ['TEMPLATE'],
      1,
      /TEMPLATE is a template in .*: name one of its queues: USER \[no-such-queue\]/,
    ],
    ['no cores', ['JOBS', '--ncore', '0'], 2, /--ncore.*whole number from 1/],
    ['an unknown pilot type', ['JOBS', '--pilot-type', 'XX'], 2, /'XX' is invalid. Allowed choices are .*PR/],
    ['cores that are no number', ['JOBS', '--ncore', 'many'], 2, /whole number/],
  ] as const) {
    it(`refuses ${what} with the reason`, async () => {
      const result = await render(...args);
      expect(result.status).to.equal(status);
      expect(result.stderr).to.match(message);
      expect(result.stdout).to.equal('');
    });
  }

  describe('beside a running daemon', () => {
    let lived: Site;

    before(async () => {
      lived = new Site({ queues: { Q: { maxWorkers: 1, nQueueLimitWorker: 1 } } });
      lived.start();
      await until('a worker runs', async () => (await lived.workers({ status: 'running' })).length > 0);
    });
    after(() => lived.clean());

    it('shows a worker by the configuration it was made with, and writes nothing', async () => {
      const [worker] = await lived.workers({ status: 'running' });
      const id = String(worker?.workerID);
      const before = readdirSync(lived.path('state/local'));
      lived.writeQueues({});
      const { stdout, stderr } = await runHere(
        ...['--config', lived.config, 'render', 'Q', '--worker', id, '--output', 'json'],
      );
      expect(stderr).to.equal('');
      const [seen] = JSON.parse(stdout) as [Shown];
      expect(seen).to.include({ queue: 'Q', workerId: Number(id) });
      expect(seen.environment).to.include({ workerID: id, SITE_DIR: lived.directory });
      const pid = worker?.batchID ?? '';
      const wordsIn = (name: string) =>
        readFileSync(join('/proc', pid, name), 'utf8')
          .split('\0')
          .slice(0, -1);
      const { command, args, cwd } = seen.document as { command: string; args: string[]; cwd: string };
      // In a PID namespace of its own, the words that make it stand between directory and command.
      const words = wordsIn('cmdline');
      expect(words.slice(-3)).to.deep.equal([command, ...args]);
      expect(words).to.include(cwd);
      expect(wordsIn('environ')).to.include.members(
        Object.entries(seen.environment).map(([name, value]) => `${name}=${value}`),
      );
      expect(readdirSync(lived.path('state/local'))).to.deep.equal(before);
    });

    it('refuses a worker of another queue, and other attributes for a worker that there is', async () => {
      const [worker] = await lived.workers({});
      const id = String(worker?.workerID);
      const run = (...args: string[]) => runHere('--config', lived.config, 'render', ...args);
      expect((await run('P', '--worker', id)).stderr).to.match(/is one of Q, and not of P \[usage\]/);
      expect((await run('Q', '--worker', id, '--ncore', '2', '--job-type', 'user')).stderr).to.match(
        /leave out --worker, or --ncore, --job-type \[usage\]/,
      );
      expect((await run('Q', '--worker', '5')).stderr).to.match(/\[no-such-worker\]/);
    });
  });
});
