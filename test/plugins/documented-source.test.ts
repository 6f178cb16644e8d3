import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const root = resolve(import.meta.dirname, '../..');

/** The example of the page as a file beside a queue file, where its imports lead to this checkout. */
function example(): string {
  const page = readFileSync(join(root, 'docs/plugins.md'), 'utf8');
  const found = [...page.matchAll(/```ts\n([^]*?)```/g)].map(([, text = '']) => text);
  const source = found.find((text) => text.includes('defineSource')) ?? '';
  const contracts = pathToFileURL(join(root, 'src/plugins/contracts/index.ts')).href;
  return source
    .replace("'thresher/plugin'", JSON.stringify(contracts))
    .replace("'typebox'", JSON.stringify(import.meta.resolve('typebox')));
}

describe('the source that docs/plugins.md shows', () => {
  it('makes one worker of each script, and renames the script when its worker ended, also for a second script of one name', async () => {
    const site = new Site({ queues: { Q: { demand: 'spool', maxWorkers: 5, nQueueLimitWorker: 5 } } });
    const scripts = site.path('scripts');
    mkdirSync(scripts);
    const module = site.path('spool.ts');
    writeFileSync(module, example());
    const settings = readFileSync(site.config, 'utf8');
    writeFileSync(
      site.config,
      `${settings}\nsources:\n  spool: { module: ${module}, directory: ${scripts} }\n`,
    );
    writeFileSync(join(scripts, 'good one.sh'), '#!/bin/sh\necho ran >>"$0.mark"\n');
    writeFileSync(join(scripts, 'bad.sh'), '#!/bin/sh\nexit 3\n');
    try {
      site.start();
      await until('both scripts have ended', () =>
        readdirSync(scripts).every((name) => !name.endsWith('.sh')),
      );
      expect(readdirSync(scripts).sort()).to.deep.equal(['bad.sh.failed', 'good one.sh.finished']);
      const workers = await site.workers();
      expect(workers.map(({ status }) => status).sort()).to.deep.equal(['failed', 'finished']);
      // Another script of the same name is other work.
      writeFileSync(join(scripts, 'good one.sh'), '#!/bin/sh\nexit 4\n');
      await until('the second script has ended', () => !readdirSync(scripts).includes('good one.sh'));
      expect(readdirSync(scripts)).to.include('good one.sh.failed');
      expect(await site.workers()).to.have.length(3);
    } finally {
      await site.clean();
    }
  });
});
