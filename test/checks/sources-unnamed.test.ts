import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { builtInPlugins } from '../../src/plugins/registry.ts';
import { type Files, root } from './copied-tree.ts';

/** The layers that serve every source alike. */
const above = ['config', 'limits', 'store', 'agents', 'daemon', 'http', 'cli'];

const names = builtInPlugins.filter(({ kind }) => kind === 'source').map(({ name }) => name);

/** By file and line, strings above `sources/` that are the name of a source. */
function namings(files: Files): string[] {
  const named = new RegExp(`(?<quote>['"])(?<name>${names.join('|')})\\k<quote>`, 'g');
  // `none` is a word of the language, too: it is a source's name beside a word of theirs.
  const isAbout = (line: string) => /demand|source|origin|\bkind\b/i.test(line);
  return Object.entries(files)
    .filter(([file]) => above.some((layer) => file.startsWith(`src/${layer}/`)))
    .flatMap(([file, text]) =>
      text
        .split('\n')
        .flatMap((line, at) =>
          [...(isAbout(line) ? line.replace(/^\s*(\*|\/\/|\/\*).*$/, '') : '').matchAll(named)].map(
            ({ groups }) => `${file}:${at + 1}: ${groups?.name ?? ''}`,
          ),
        ),
    );
}

function sourceFiles(): Files {
  const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.includes('validator'))
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

describe('the layers above the sources', () => {
  it('name no source', () => {
    expect(namings(sourceFiles())).to.deep.equal([]);
  });

  it('are reported for each planted name', () => {
    const planted: Files = {
      'src/agents/a.ts': "if (kind === 'fill') return;\n",
      'src/daemon/b.ts': '\nconst demand = "none";\n',
      'src/config/queues/c.ts': '/** The source "fill" in a comment. */\nfindSource("fill");\n',
      'src/http/f.ts': "names.join(', ') || 'none'\n",
      'src/sources/fill/d.ts': "name: 'fill',\n",
      'src/plugins/local/e.ts': "defaultDemand: 'fill',\n",
    };
    expect(namings(planted)).to.deep.equal([
      'src/agents/a.ts:1: fill',
      'src/daemon/b.ts:2: none',
      'src/config/queues/c.ts:2: fill',
    ]);
  });
});
