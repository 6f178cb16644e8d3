import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { modulesNamedIn, type QueueFileResult, readQueueFile } from '../../../src/config/queues/queues.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { runHere } from '../../support/command-line.ts';
import { files as operatorFiles } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const fixtures = resolve(import.meta.dirname, '../../fixtures');
const options = { stateDir: '/state', files: operatorFiles, defaultDemand: undefined, queueList: undefined };

async function readWith(file: string, modules: Iterable<string>): Promise<QueueFileResult> {
  const catalogue = await loadPlugins(modules, resolve(file, '..'), operatorFiles);
  return readQueueFile(file, catalogue, options);
}

async function read(file: string): Promise<QueueFileResult> {
  return readWith(file, await modulesNamedIn(file, operatorFiles));
}

/** Of each file: queues by state, templates, and duplicate keys as [pointer, line of the second, line of the first]. */
const files: [file: string, ready: number, incomplete: number, templates: number, duplicates: unknown[]][] = [
  ['sites/doma.panda_queueconfig.json', 0, 37, 6, [['/DOMA_LSST_GOOGLE_MERGE/queueStatus', 478, 473]]],
  [
    'sites/lsst.panda_queueconfig.json',
    ...([0, 56, 5] as const),
    [
      ['/production_k8s.pull/nQueueLimitWorkerMin', 243, 241],
      ['/production_k8s.pull/nQueueLimitWorkerMax', 245, 242],
      ...[4, 8, 12, 16, 20, 24, 28, 32].map((size, at) => {
        return [`/RAL_Rubin_${size}G/submitter/useCRICGridCE`, 1522 + 32 * at, 1519 + 32 * at];
      }),
      ['/DOMA_LSST_GOOGLE_MERGE/queueStatus', 1932, 1927],
    ],
  ],
  ['harvester/panda_queueconfig_doma.json', 0, 5, 3, []],
  ['harvester/panda_queueconfig_with_tmpl.json', 4, 1, 1, []],
  [
    'harvester/panda_queueconfig_cloud.json',
    ...([0, 0, 1] as const),
    [['/GOOGLE_TEMPLATE/nQueueLimitWorker', 5, 4]],
  ],
];

describe('queue files of real sites', () => {
  for (const [name, ready, incomplete, templates, duplicates] of files) {
    const file = join(fixtures, name);

    it(`${name}: every queue is in one state and none is refused`, async () => {
      const result = await read(file);
      expect(result.queues, 'ready').to.have.length(ready);
      expect(result.incomplete, 'incomplete').to.have.length(incomplete);
      expect(result.templates, 'templates').to.have.length(templates);
      expect(result.refused).to.deep.equal([]);
      const raw = JSON.parse(readFileSync(file, 'utf8')) as object;
      expect([...result.templates, ...result.verdicts.map((verdict) => verdict.name)]).to.have.members(
        Object.keys(raw),
      );
    });

    it(`${name}: its duplicate keys are placed, both of each`, async () => {
      const { problems } = await read(file);
      const found = problems
        .filter(({ code }) => code === 'duplicate-key')
        .map(({ pointer, line, message }) => [
          pointer,
          line,
          Number(/first on line (\d+)/.exec(message)?.[1]),
        ]);
      expect(found).to.have.deep.members(duplicates);
      const lines = readFileSync(file, 'utf8').split('\n');
      for (const [pointer, second, first] of found) {
        const key = `"${String(pointer).replace(/^.*\//, '')}"`;
        expect(lines[Number(second) - 1]).to.contain(key);
        expect(lines[Number(first) - 1]).to.contain(key);
      }
    });

    it(`${name}: check-config prints what was found good by eye`, async () => {
      const directory = temporaryDirectory();
      const settings = join(directory, 'thresher.yaml');
      writeFileSync(settings, JSON.stringify({ qconf: { configFile: file } }));
      const { status, stdout, stderr } = await runHere('--config', settings, 'check-config');
      // A file of templates alone is judged by them, and the plugin of this one is gone.
      expect({ status, stderr }).to.deep.equal({
        status: ready + incomplete === 0 || incomplete > 0 ? 1 : 0,
        stderr: '',
      });
      const text = stdout.replaceAll(relative(process.cwd(), file), 'FILE').replaceAll(file, 'FILE');
      const expected = join(fixtures, name.replace(/\.json$/, '.check-config.txt'));
      if (process.env.THRESHER_UPDATE_FIXTURES === '1') writeFileSync(expected, text);
      expect(text).to.equal(readFileSync(expected, 'utf8'));
    });
  }
});

describe('any queue file', () => {
  const production = files.map(([name]) => readFileSync(join(fixtures, name), 'utf8'));
  const odd = fc.oneof(
    ...[fc.jsonValue(), fc.constantFrom(null, -1, 2.5, '', 'NoJob', '__proto__', [], {}, true)],
  );

  it('is read without an exception, and each entry is a template or in exactly one state', async () => {
    const file = join(temporaryDirectory(), 'queues.json');
    const catalogue = await loadPlugins([], '/', operatorFiles);
    const judge = async (text: string) => {
      writeFileSync(file, text);
      const value = JSON.parse(text) as unknown;
      const { verdicts, templates, queues, refused, incomplete } = await readQueueFile(
        file,
        catalogue,
        options,
      );
      const isFile = typeof value === 'object' && value !== null && !Array.isArray(value);
      expect([...templates, ...verdicts.map(({ name }) => name)].sort()).to.deep.equal(
        isFile ? Object.keys(value).sort() : [],
      );
      expect([...queues.map(({ name }) => name), ...refused, ...incomplete].sort()).to.deep.equal(
        verdicts.map(({ name }) => name).sort(),
      );
    };
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), odd), async (value) => {
        await judge(JSON.stringify(value));
      }),
      { numRuns: 200 },
    );
    const mutation = fc.tuple(
      fc.constantFrom(...production),
      fc.array(fc.tuple(fc.nat(), odd), { minLength: 1, maxLength: 5 }),
    );
    await fc.assert(
      fc.asyncProperty(mutation, async ([text, changes]) => {
        const value = JSON.parse(text) as Record<string, unknown>;
        for (const [at, replacement] of changes) mutate(value, at, replacement);
        await judge(JSON.stringify(value));
      }),
      { numRuns: 60 },
    );
  });
});

/** Replaces some value anywhere in `root`, or takes it away. */
function mutate(root: Record<string, unknown>, at: number, replacement: unknown): void {
  const places: [holder: Record<string, unknown>, key: string][] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      places.push([value as Record<string, unknown>, key]);
      visit((value as Record<string, unknown>)[key]);
    }
  };
  visit(root);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return;
  const [holder, key] = place;
  if (at % 3 === 0 && !Array.isArray(holder)) Reflect.deleteProperty(holder, key);
  else holder[key] = replacement;
}
