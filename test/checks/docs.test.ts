import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { generatePages } from '../../scripts/generate-docs.ts';
import { generateSettings } from '../../scripts/generate-settings.ts';

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
  ...['docs/operation.md', 'docs/http.md', 'docs/htcondor.md'],
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

  for (const page of [...pages, 'docs/errors.md', 'docs/configuration.md']) {
    it(`${page} links only to what exists`, () => {
      const text = readFileSync(join(root, page), 'utf8');
      const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link]) => link ?? '');
      expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).to.deep.equal([]);
    });
  }
});
