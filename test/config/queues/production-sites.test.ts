import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { type QueueVerdict, readQueueFile } from '../../../src/config/queues/queues.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { hostnameFor } from '../../../src/util/hostname.ts';
import { fromPointer } from '../../../src/util/located.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { files } from '../../support/operator-files.ts';

const fixtures = resolve(import.meta.dirname, '../../fixtures');
const kubeconfig = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'c',
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [{ name: 'u', user: { token: 't' } }],
});

function putProgram(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '#!/bin/sh\n');
  chmodSync(path, 0o700);
}

/** What stands at a path of a site, by its name; the first match counts. Templates are the site's own, as far as they are public. */
const contents: readonly (readonly [name: RegExp, put: (path: string, site: string) => void])[] = [
  [/\/$|_wdirs|condor_logs/, (path) => mkdirSync(path.replace(/\$.*$/, ''), { recursive: true })],
  [
    /pull.*\.sdf$/,
    (path, site) => {
      const text = readFileSync(join(fixtures, 'sites/lsst.submit_pilot_pull_ups.sdf'), 'utf8');
      const moved = text.replace(/^(executable = )(\/\S+)$/m, (_, before: string, program: string) => {
        putProgram(join(site, program));
        return `${before}${join(site, program)}`;
      });
      writeFileSync(path, moved);
    },
  ],
  [
    /\.sdf$/,
    (path) => {
      copyFileSync(join(fixtures, 'sites/doma.submit_pilot.sdf'), path);
    },
  ],
  [
    /\.yaml$/,
    (path) => {
      copyFileSync(join(fixtures, 'kubernetes/job_cern.yaml'), path);
    },
  ],
  [
    /\.sh$|x509up|\.proxy$/,
    (path) => {
      putProgram(path);
    },
  ],
  [
    /./,
    (path) => {
      writeFileSync(path, kubeconfig);
    },
  ],
];

/** A site with this queue file, moved below a directory of its own, and all that it names. */
function siteOf(name: string): string {
  const directory = temporaryDirectory();
  const text = readFileSync(join(fixtures, 'sites', name), 'utf8');
  const paths = new Set([...text.matchAll(/"(\/[^"]*)"/g)].map(([, path = '']) => path));
  for (const path of paths) {
    const there = join(directory, path.replace(/\$\{?hostname\}?/, hostnameFor()));
    mkdirSync(dirname(there).replace(/\$.*$/, ''), { recursive: true });
    contents.find(([pattern]) => pattern.test(path))?.[1](there, directory);
  }
  const file = join(directory, name);
  writeFileSync(file, text.replaceAll(/"(\/[^"]*)"/g, `"${directory}$1"`));
  return file;
}

async function judge(file: string): Promise<readonly QueueVerdict[]> {
  const options = { stateDir: '/state', files, defaultDemand: 'fill', queueList: undefined } as const;
  return (await readQueueFile(file, await loadPlugins([], '/', files), options)).verdicts;
}

const errorsOf = ({ problems }: QueueVerdict) => problems.filter(({ severity }) => severity === 'error');
/** The option that each error asks for. */
const wantedBy = (verdict: QueueVerdict) =>
  errorsOf(verdict).map(({ pointer }) => fromPointer(pointer).at(-1) ?? '');

/** Of each file how many queues there are by what they still want; files of tokens for a template that is not their own. */
const expected = {
  'doma.panda_queueconfig.json': {
    '': 7,
    'ceList pandaTokenDir pandaTokenFilename pandaTokenKeyPath': 2,
    'minRamCount maxWalltime pandaTokenDir pandaTokenFilename': 8,
    'minRamCount maxWalltime pandaTokenDir pandaTokenFilename ceList': 6,
    'pandaTokenDir pandaTokenFilename pandaTokenKeyPath': 4,
    'pandaTokenDir pandaTokenFilename pandaTokenKeyPath ceList': 10,
  },
  'lsst.panda_queueconfig.json': {
    '': 7,
    'minRamCount maxWalltime': 36,
    pandaTokenKeyPath: 12,
    'ceList pandaTokenKeyPath': 1,
  },
};

describe('the queues of production sites, once their files are there', () => {
  for (const [name, counts] of Object.entries(expected)) {
    it(`${name}: each is ready or names the options that CRIC's values are missing in`, async () => {
      const verdicts = await judge(siteOf(name));
      const found = Map.groupBy(verdicts, (verdict) => wantedBy(verdict).join(' '));
      expect(Object.fromEntries([...found].map(([wanted, some]) => [wanted, some.length]))).to.deep.equal(
        counts,
      );
      for (const verdict of verdicts) {
        expect(verdict.state).to.equal(wantedBy(verdict).length === 0 ? 'ready' : 'incomplete');
        for (const { code, message, pointer } of errorsOf(verdict)) {
          expect(code).to.be.oneOf(['size-not-said', 'file-not-said', 'ce-list-missing']);
          expect(message).to.match(new RegExp(`(set|list them in) ${fromPointer(pointer).at(-1) ?? ''}\\b`));
        }
      }
    });

    it(`${name}: each is ready once these options are set`, async () => {
      const file = siteOf(name);
      const queues = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { submitter?: object }>;
      const ceList = [{ ce_endpoint: 'ce.site', ce_flavour: 'arc-ce' }];
      const token = { pandaTokenDir: 'tokens', pandaTokenFilename: 'token', pandaTokenKeyPath: 'tokens/key' };
      const sizes = { minRamCount: 2000, maxWalltime: 86_400 };
      const values: Readonly<Record<string, unknown>> = { ...sizes, ...token, ceList };
      for (const verdict of await judge(file)) {
        const queue = queues[verdict.name] ?? {};
        const set = Object.fromEntries(wantedBy(verdict).map((option) => [option, values[option]]));
        queue.submitter = { ...queue.submitter, ...set };
      }
      writeFileSync(file, JSON.stringify(queues));
      const verdicts = await judge(file);
      expect(verdicts.map(({ name: queue, state }) => [queue, state])).to.deep.equal(
        verdicts.map(({ name: queue }) => [queue, 'ready']),
      );
    });
  }
});
