/** The namespace of the Lease must outlive every namespace that the operator follows: without a Lease no HTCJob goes on. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { settings } from '../../../src/clients/htcjob/manifests.ts';
import { readConfiguration } from '../../../src/daemon/configuration.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const remedy = 'name a namespace that users cannot delete, as the one where thresher runs';

async function read(text: string) {
  const directory = temporaryDirectory();
  const file = join(directory, 'thresher.yaml');
  writeFileSync(file, text);
  writeFileSync(join(directory, 'panda_queueconfig.json'), '{}');
  const { queueFile } = await readConfiguration(file, directory, files);
  if (queueFile === undefined) throw new Error('settings');
  const { problems, sources } = queueFile.sources;
  return {
    problems: problems.map((problem) => ({ ...problem, file: problem.file.replace(`${directory}/`, '') })),
    running: sources.map(({ definition }) => definition.name),
  };
}

const readOptions = (htcjob: object) =>
  read(stringify({ qconf: { configFile: 'panda_queueconfig.json' }, sources: { htcjob } }));

describe('leaseNamespace of sources.htcjob', () => {
  for (const [what, options, line, message] of [
    [
      'missing beside namespaces',
      { namespaces: ['a', 'b'] },
      4,
      `leaseNamespace is missing, which namespaces needs beside it: ${remedy}`,
    ],
    [
      'null beside namespaces',
      { namespaces: ['a', 'b'], leaseNamespace: null },
      8,
      `leaseNamespace is missing, which namespaces needs beside it: ${remedy}`,
    ],
    [
      'one of namespaces',
      { namespaces: ['a', 'b'], leaseNamespace: 'b' },
      8,
      `leaseNamespace is "b", one of namespaces, and no HTCJob goes on once that is deleted: ${remedy}`,
    ],
  ] as const)
    it(`is refused where it is ${what}, and the source does not run`, async () => {
      const { problems, running } = await readOptions(options);
      const place = { file: 'thresher.yaml', pointer: '/sources/htcjob/leaseNamespace', line };
      expect(problems).to.deep.equal([{ ...place, severity: 'error', code: 'wrong-type', message }]);
      expect(running).to.deep.equal([]);
    });

  for (const [what, options] of [
    ['another than those of namespaces', { namespaces: ['a', 'b'], leaseNamespace: 'own' }],
    ['missing where all namespaces are followed', {}],
    ['any where all namespaces are followed', { namespaces: [], leaseNamespace: 'a' }],
  ] as const)
    it(`may be ${what}`, async () => {
      expect(await readOptions(options)).to.deep.equal({ problems: [], running: ['htcjob'] });
    });

  it('is right in the settings that thresher prints, also with namespaces of a site', async () => {
    const [, map] = settings() as readonly { readonly data?: Readonly<Record<string, string>> }[];
    const printed = (map?.data?.['thresher.yaml'] ?? '').replace(
      '/etc/thresher/panda_queueconfig.json',
      'panda_queueconfig.json',
    );
    const narrowed = printed.replace('  htcjob:\n', '$&    namespaces: [a, b]\n');
    expect(narrowed).to.contain('namespaces:');
    for (const text of [printed, narrowed]) {
      const { problems, running } = await read(text);
      expect(problems).to.deep.equal([]);
      expect(running).to.deep.equal(['htcjob']);
    }
  });
});
