import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CacheReader, digestsOf } from '../../../src/config/cric/cache-reader.ts';
import { writeEntryLines } from '../../../src/config/cric/entry-lines.ts';
import { CacheWatch } from '../../../src/daemon/cacher/cache-watch.ts';
import { mostJsonInATurn } from '../../support/masked-characters.ts';
import { files } from '../../support/operator-files.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';

const names = new Set(['Q']);
const item = (key: string, use: 'queue-data' | 'queue-file') => {
  const from = { kind: 'web', url: 'http://h/' } as const;
  return { key, subKey: '', use, from, shown: 'http://h/' };
};
const items = [item('panda_queues.json', 'queue-data'), item('queues_config_file', 'queue-file')];
const paths = { cric: 'panda_queues.json', remote: 'queues_config_file' } as const;

describe('the watch over the files of the cacher', () => {
  const directory = join(temporaryDirectory(), 'cache');
  const write = (which: keyof typeof paths, text: string) => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, paths[which]), text);
  };
  const cric = (status: string) => writeEntryLines(new Map([['Q', { status }]]));
  const remote = (siteFamily: string) => JSON.stringify({ Q: { siteFamily } });

  beforeEach(() => {
    removeDirectory(directory);
  });

  /** A watch after a configuration was made of the files as they are. */
  async function watch(): Promise<CacheWatch> {
    const reader = new CacheReader({ directory, items, harvesterId: 'us', files });
    const digests = await digestsOf(await reader.queueFile(), await reader.queueData(names));
    const made = new CacheWatch(reader, files);
    made.use({ names, digests });
    return made;
  }

  for (const [what, lacking, other, first, next] of [
    ['the queue file never came', 'remote', 'cric', cric('online'), cric('offline')],
    ['CRIC never came', 'cric', 'remote', remote('here'), remote('elsewhere')],
  ] as const) {
    it(`sees the changes of the other file while ${what}, also the first of it, and then its own`, async () => {
      const before = await watch();
      write(other, first);
      expect(await before.look()).to.equal('changed');
      const after = await watch();
      expect(await after.look()).to.equal('same');
      write(other, next);
      expect(await after.look()).to.equal('changed');
      const last = await watch();
      write(lacking, lacking === 'cric' ? cric('online') : remote('here'));
      expect(await last.look()).to.equal('changed');
    });
  }

  it('sees the changes of a file beside one that was damaged already', async () => {
    write('remote', '{"Q": ');
    write('cric', cric('online'));
    const one = await watch();
    expect(await one.look()).to.equal('same');
    write('cric', cric('offline'));
    expect(await one.look()).to.equal('changed');
  });

  it('hole 8: gives way between the entries of CRIC, and names one that is too large to be read', async () => {
    const entry = { pilot_manager: 'Harvester', harvester: 'us', text: 'x'.repeat(60_000) };
    const large = Array.from({ length: 100 }, (_, at) => [`Q${at}`, entry] as const);
    const more = { ...entry, list: Array<number>(10_001).fill(1) };
    write('cric', writeEntryLines(new Map([...large, ['MORE', more]])));
    const reader = new CacheReader({ directory, items: items.slice(0, 1), harvesterId: 'us', files });
    const most = await mostJsonInATurn(async () => {
      const data = await reader.queueData(names);
      expect(data.queueData?.entries.size).to.equal(100);
      expect(data.problems.map(({ severity, code, message }) => [severity, code, message])).to.deep.equal([
        [
          ...['warning', 'cric-value-wrong'],
          'an entry of CRIC is left out: MORE (more than 10000 values); thresher fetches the file again from http://h/',
        ],
      ]);
      await digestsOf({}, data);
    });
    // Of the 6,000,000 of the file.
    expect(most).to.be.below(1_200_000);
  });

  it('waits while a file that counts is gone or damaged, and sees afterwards what changed beside it', async () => {
    write('remote', remote('here'));
    write('cric', cric('online'));
    const one = await watch();
    write('remote', '{"Q": ');
    expect(await one.look()).to.equal('same');
    write('cric', cric('offline'));
    expect(await one.look()).to.equal('same');
    rmSync(join(directory, paths.remote));
    expect(await one.look()).to.equal('same');
    write('remote', remote('here'));
    expect(await one.look()).to.equal('changed');
  });
});
