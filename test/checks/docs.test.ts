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
  ...['docs/kubernetes.md', 'docs/credentials.md', 'docs/from-harvester.md'],
];

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
