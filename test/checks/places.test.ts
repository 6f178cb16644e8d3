import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { type Files, root } from './copied-tree.ts';
import { handMadePlaces } from './places.ts';

/** Tests, benches and scripts. Fixtures do not count: they are files of real sites, which name what they like. */
function checkedFiles(): Files {
  // Nor do those that say which places are meant.
  const left = ['test/fixtures/', 'test/checks/places'];
  const files = ['test', 'bench', 'scripts', '.ci', 'bin'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name))),
  );
  const checked = files.filter((file) => !left.some((place) => file.startsWith(place)));
  return Object.fromEntries(checked.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

describe('tests, benches and scripts', () => {
  it('name no place outside of the project, its caches and the directories of every system', () => {
    expect(handMadePlaces(checkedFiles())).to.deep.equal([]);
  });

  it('are refused for each kind of such a place', () => {
    const planted = {
      'test/a.test.ts': "const tool = process.env.PREFIX ?? '/opt/condor-test';\n",
      'test/b.test.ts': '\nrun(`/home/me/bin/kubectl ${name}`);\n',
      'scripts/c': 'PATH=$PATH:/usr/local/condor/bin\n: "${KUBE:-/srv2/kube}"\ncd /work/checkout\n',
      'bench/d.ts': "join('/mnt', name)\n",
    };
    expect(handMadePlaces(planted, (path) => path === '/work' || path === '/srv2')).to.deep.equal([
      'test/a.test.ts:1: /opt/condor-test',
      'test/b.test.ts:2: /home/me/bin/kubectl',
      'scripts/c:1: /usr/local/condor/bin',
      'scripts/c:2: /srv2/kube',
      'scripts/c:3: /work/checkout',
      'bench/d.ts:1: /mnt',
    ]);
  });

  it('may name routes, pointers, and the directories of every system', () => {
    const sound = {
      'test/a.test.ts':
        "get('/workers/1', '/master/stateDir', '/usr/bin/env', '/proc/self', '/var/cache/thresher');\n",
      'scripts/b': 'cd "$root/opt/x" && ls ./srv ~/work src/home\nexport PATH=/usr/local/bin:/bin\n',
    };
    expect(handMadePlaces(sound, () => false)).to.deep.equal([]);
  });
});
