import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { cacheItemsOf } from '../../../src/config/settings/cache-items.ts';
import { readSettings } from '../../../src/config/settings/settings.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const directory = temporaryDirectory();
const machine = { env: { CRIC_URL: 'https://cric.test/queues' }, hostname: 'host', home: '/nowhere' };

function read(data: readonly string[] | undefined, qconf: Record<string, unknown> = {}) {
  const file = join(directory, 'thresher.yaml');
  writeFileSync(file, stringify({ qconf, ...(data && { cacher: { data } }) }));
  const result = readSettings(file);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return cacheItemsOf(result.settings, machine);
}

const problemsOf = (...asked: Parameters<typeof read>) =>
  read(...asked).problems.map(({ severity, code, pointer, message }) => {
    expect(code).to.equal('cacher-item');
    return [severity, pointer, message];
  });

describe('the files that the cacher is to fetch', () => {
  it('are read as Harvester writes them', () => {
    const { items, problems } = read([
      'panda_queues.json||https://atlas-cric.cern.ch/api/atlas/pandaqueue/query/?json',
      'queues_config_file | | file:///etc/queues.json',
      'resource_types.json||panda_server:get_resource_types|types.json',
      'panda_queues.json|atlas|${CRIC_URL}|/srv/atlas.json',
    ]);
    expect(problems).to.deep.equal([]);
    const url = 'https://atlas-cric.cern.ch/api/atlas/pandaqueue/query/?json';
    expect(items).to.deep.equal([
      { key: 'panda_queues.json', subKey: '', use: 'queue-data', from: { kind: 'web', url }, shown: url },
      {
        key: 'queues_config_file',
        subKey: '',
        use: 'queue-file',
        from: { kind: 'file', path: '/etc/queues.json' },
        shown: 'file:///etc/queues.json',
      },
      {
        key: 'resource_types.json',
        subKey: '',
        use: 'dump',
        from: { kind: 'server', path: 'metaconfig/get_resource_types' },
        shown: 'panda_server:get_resource_types',
        dumpFile: join(directory, 'types.json'),
      },
      {
        key: 'panda_queues.json',
        subKey: 'atlas',
        use: 'dump',
        from: { kind: 'web', url: 'https://cric.test/queues' },
        shown: 'https://cric.test/queues',
        dumpFile: '/srv/atlas.json',
      },
    ]);
  });

  it('are none without the setting, and nothing is wrong', () => {
    expect(read(undefined)).to.deep.equal({ items: [], problems: [] });
  });

  for (const [text, message] of [
    ['panda_queues.json', 'has no key or no URL: write "key||URL" or "key|subkey|URL|dump file"'],
    ['||https://cric.test/', 'has no key or no URL: write "key||URL" or "key|subkey|URL|dump file"'],
    ['panda_queues.json||https://FIXME/', "is a placeholder of Harvester's template"],
    ['panda_queues.json||$NOT_SET', 'names a variable that the environment does not have'],
    ['panda_queues.json||https://', 'has no valid URL'],
    [
      'panda_queues.json||ftp://cric.test/',
      'has a URL of another kind than file:, http:, https: or panda_server:',
    ],
    ['panda_queues.json||file:', 'has no path: write file:///PATH'],
    [
      'panda_queues.json||panda_server:get_everything',
      'names the call "get_everything", which thresher does not know; there are get_resource_types, get_job_stats, get_job_stats_new, get_worker_stats_from_panda',
    ],
    [
      'BNL_key||panda_cache:A.pub&A|key.json',
      'asks the PanDA server for a pair of keys, which thresher does not keep on disk',
    ],
  ] as const) {
    it(`leave ${text} out with a warning`, () => {
      const { items } = read([text, 'queues_config_file||http://h/q']);
      expect(items.map(({ key }) => key)).to.deep.equal(['queues_config_file']);
      expect(problemsOf([text])).to.deep.equal([
        ['warning', '/cacher/data/0', `${JSON.stringify(text)} ${message}; the item is left out`],
      ]);
    });
  }

  it('may be misspelt: the message says the word that is meant', () => {
    const said = (text: string) => problemsOf([text]).map(([severity, , message]) => [severity, message]);
    expect(said('panda_queue.json||https://h/q')).to.deep.equal([
      [
        'warning',
        '"panda_queue.json||https://h/q" has a key that nothing reads; did you mean "panda_queues.json"? The item is left out',
      ],
    ]);
    expect(said('types||panda_server:get_resource_typs|types.json')).to.deep.equal([
      [
        'warning',
        '"types||panda_server:get_resource_typs|types.json" names the call "get_resource_typs", which thresher does not know; did you mean "get_resource_types"? The item is left out',
      ],
    ]);
  });

  it('are found from the directory of the settings where their path is not absolute', () => {
    const { items, problems } = read(['panda_queues.json||file:cric.json']);
    expect(problems).to.deep.equal([]);
    expect(items[0]?.from).to.deep.equal({ kind: 'file', path: join(directory, 'cric.json') });
  });

  it('are not fetched where thresher has no use for them', () => {
    expect(
      problemsOf(['ddmendpoints.json||https://h/d', 'resource_types.json||panda_server:get_resource_types']),
    ).to.deep.equal([
      [
        'notice',
        '/cacher/data/0',
        'ddmendpoints.json is not fetched: nothing in thresher reads ddmendpoints.json, and no dump file is named for other programs',
      ],
      [
        'notice',
        '/cacher/data/1',
        'resource_types.json is not fetched: thresher asks the PanDA server itself for the resource types, and no dump file is named for other programs',
      ],
    ]);
  });

  it('show no password of their URLs', () => {
    const { items } = read(['panda_queues.json||https://me:pa55@cric.test/q']);
    expect(items[0]?.shown).to.equal('https://me:(hidden)@cric.test/q');
    expect(problemsOf(['panda_queues.json|https://me:pa55@cric.test/q'])[0]?.[2]).not.to.include('pa55');
  });

  it('count once where they are named twice, the last one', () => {
    const { items } = read(['panda_queues.json||http://h/a', 'panda_queues.json||http://h/b']);
    expect(items.map(({ shown }) => shown)).to.deep.equal(['http://h/b']);
    expect(problemsOf(['a||http://h/a|x', 'a||http://h/b|x'])).to.deep.equal([
      ['warning', '/cacher/data/1', 'a is in cacher.data twice; the last one counts'],
    ]);
  });

  it('are missed where other settings need them', () => {
    expect(problemsOf([], { queueList: ['A', 'DYNAMIC'], configFromCacher: true })).to.deep.equal([
      [
        'warning',
        '/qconf/queueList/1',
        'DYNAMIC stands for the queues of CRIC, and cacher.data has no item panda_queues.json: only those of qconf.configFile are used; write "panda_queues.json||URL" into it',
      ],
      [
        'warning',
        '/qconf/configFromCacher',
        'configFromCacher is true, and cacher.data has no item queues_config_file: write "queues_config_file||URL" into it',
      ],
    ]);
    expect(problemsOf([], { resolverClass: 'MyQueues' })).to.deep.equal([
      [
        'warning',
        '/qconf/resolverClass',
        'resolverClass is "MyQueues", and thresher has PandaQueuesDict alone, which it uses',
      ],
    ]);
  });
});
