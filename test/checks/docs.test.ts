import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { generatePages } from '../../scripts/generate-docs.ts';
import { generateSettings } from '../../scripts/generate-settings.ts';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = [
  ...[
    'README.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'docs/architecture.md',
    'docs/plugins.md',
    'docs/decisions.md',
  ],
  ...['docs/operation.md', 'docs/http.md', 'docs/htcondor.md', 'docs/payload.md'],
  ...[
    'docs/kubernetes.md',
    'docs/credentials.md',
    'docs/from-harvester.md',
    'docs/htcjob.md',
    'docs/interlink.md',
    'docs/pool.md',
    'docs/scale-out.md',
    'docs/shared-queues.md',
    'docs/thresher-on-kubernetes.md',
  ],
];

const kubeconfig = `apiVersion: v1
kind: Config
current-context: pool
clusters: [{ name: pool, cluster: { server: 'https://127.0.0.1:6443' } }]
users: [{ name: pool, user: { token: secret } }]
contexts: [{ name: pool, context: { cluster: pool, user: pool } }]
`;

describe('documents', () => {
  for (const [name, text] of Object.entries(generatePages())) {
    it(`docs/${name} says what the sources say (else: npm run docs)`, () => {
      expect(readFileSync(join(root, 'docs', name), 'utf8')).to.equal(text);
    });
  }

  for (const [name, text] of Object.entries(generateSettings())) {
    it(`src/config/settings/${name} says what settings-schema.ts says (else: npm run docs)`, () => {
      expect(readFileSync(join(root, 'src/config/settings', name), 'utf8')).to.equal(text);
    });
  }

  for (const page of [...pages, 'docs/errors.md', 'docs/configuration.md', 'docs/cric.md']) {
    it(`${page} links only to what exists`, () => {
      const text = readFileSync(join(root, page), 'utf8');
      const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link]) => link ?? '');
      expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).to.deep.equal([]);
    });
  }

  it('README.md fits on one screen', () => {
    expect(readFileSync(join(root, 'README.md'), 'utf8').trimEnd().split('\n').length).to.be.at.most(60);
  });

  it('the queue in README.md is ready beside the template that it names', async () => {
    const [, queues = ''] = /```json\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
    const directory = temporaryDirectory();
    const template = readFileSync(join(root, 'templates/local/pilot.yaml'), 'utf8');
    writeFileSync(join(directory, 'panda_queueconfig.json'), queues);
    writeFileSync(join(directory, 'pilot.yaml'), template);
    const settings = join(directory, 'thresher.yaml');
    writeFileSync(settings, 'master:\n  stateDir: state\nqconf:\n  configFile: panda_queueconfig.json\n');
    const { status, stdout } = await runHere('--config', settings, 'check-config', '--strict');
    expect(status, stdout).to.equal(0);
    expect(stdout).to.match(/MY_SITE +ready/);
  });

  it('the settings and both demands of docs/pool.md are taken as they stand, and lack no more than what is learnt later', async () => {
    const text = readFileSync(join(root, 'docs/pool.md'), 'utf8');
    const [, sources = ''] = /```yaml\n([^]*?)```/.exec(text) ?? [];
    const demands = [...text.matchAll(/```json\n([^]*?)```/g)].map(
      ([, block = '']) => JSON.parse(block) as object,
    );
    expect(demands).to.have.length(2);
    const files = join(root, 'templates/kubernetes/htcondor-pool');
    const { HTCONDOR: queue } = JSON.parse(readFileSync(join(files, 'panda_queueconfig.json'), 'utf8')) as {
      readonly HTCONDOR: { readonly common: object };
    };
    const directory = temporaryDirectory();
    await runHere('pool', 'init', '--directory', join(directory, 'htcondor-pool'));
    writeFileSync(join(directory, 'worker.yaml'), readFileSync(join(files, 'worker.yaml'), 'utf8'));
    writeFileSync(join(directory, 'kubeconfig'), kubeconfig);
    const settings = join(directory, 'thresher.yaml');
    writeFileSync(
      settings,
      `master: { stateDir: state }\nqconf: { configFile: panda_queueconfig.json }\n${sources}`,
    );
    for (const [demand, missing] of [
      [demands[0], ['htcondor.ad']],
      [demands[1], ['small.ad', 'big.ad']],
    ] as const) {
      const common = { ...queue.common, k8s_config_file: 'kubeconfig' };
      writeFileSync(
        join(directory, 'panda_queueconfig.json'),
        JSON.stringify({ HTCONDOR: { ...queue, common, ...demand } }),
      );
      const { status, stdout } = await runHere('--config', settings, 'check-config');
      expect(status, stdout).to.equal(0);
      expect(stdout).to.match(/HTCONDOR +ready/);
      for (const file of missing) expect(stdout).to.include(file);
      const warnings = stdout.split('\n').filter((line) => line.includes(': warning: '));
      expect(warnings, stdout).to.have.length(missing.length);
    }
  });

  it('the settings, the queue and the template of docs/htcjob.md are ready together as they stand', async () => {
    const [, section = ''] = readFileSync(join(root, 'docs/htcjob.md'), 'utf8').split('### Beside a schedd');
    const blocks = [...section.matchAll(/```(?:yaml|json)\n([^]*?)```/g)].map(([, block = '']) => block);
    const directory = temporaryDirectory();
    const names = ['thresher.yaml', 'panda_queueconfig.json', 'job.sub.yaml'];
    for (const [at, name] of names.entries()) writeFileSync(join(directory, name), blocks[at] ?? '');
    writeFileSync(join(directory, 'kubeconfig'), kubeconfig);
    const settings = join(directory, 'thresher.yaml');
    const { status, stdout } = await runHere('--config', settings, 'check-config', '--strict');
    expect(status, stdout).to.equal(0);
    expect(stdout).to.match(/^HTCJOBS +ready$/m);
  });

  it('docs/architecture.md names only files and folders that exist', () => {
    const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
    const rooms = readdirSync(join(root, 'src')).join('|');
    const paths = [...text.matchAll(new RegExp(`\`((?:(src|test|scripts)|${rooms})/[\\w./-]+)\``, 'g'))];
    expect(paths.length).to.be.greaterThan(50);
    const missing = paths
      .map(([, path = '', top]) => (top === undefined ? `src/${path}` : path))
      .filter((path) => !existsSync(join(root, path)));
    expect(missing).to.deep.equal([]);
  });
});
