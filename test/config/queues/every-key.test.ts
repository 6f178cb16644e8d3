import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { QueueReader } from '../../../src/config/queues/queue-reader.ts';
import { mergedSections } from '../../../src/config/queues/queue-schema.ts';
import { modulesNamedIn } from '../../../src/config/queues/queues.ts';
import { Settings } from '../../../src/config/settings/settings-schema.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { parseConfig } from '../../../src/util/configparser.ts';
import { readJsonFile } from '../../../src/util/located-file.ts';
import { fromPointer, toPointer } from '../../../src/util/pointer.ts';
import { runHere } from '../../support/command-line.ts';
import { mergedAtOnce } from '../../support/cric-site.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const fixtures = resolve(import.meta.dirname, '../../fixtures');
const queueFiles = [
  ...['sites/doma.panda_queueconfig.json', 'sites/lsst.panda_queueconfig.json'],
  ...['doma', 'with_tmpl', 'cloud'].map((name) => `harvester/panda_queueconfig_${name}.json`),
];

interface Named {
  readonly file: string;
  readonly pointer: string;
  readonly code: string;
}

/** A queue or template of a fixture: its sections are objects. */
type Entry = Record<string, object | undefined>;

/** Every problem that check-config shows for a settings file. */
async function namedBy(settings: string): Promise<Named[]> {
  const { stdout } = await runHere('--config', settings, '--output', 'json', 'check-config');
  const entries = JSON.parse(stdout) as { readonly problems: readonly Named[] }[];
  return entries.flatMap(({ problems }) => problems);
}

/** Pointers of all keys of a value, at any depth. */
function keysOf(value: unknown, path: readonly (string | number)[] = []): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    return [...(Array.isArray(value) ? [] : [toPointer(at)]), ...keysOf(inner, at)];
  });
}

const isBelow = (pointer: string, other: string) => pointer === other || pointer.startsWith(`${other}/`);

/** Keys of the file that a queue or template honours: it, or an option that it is a part of. */
async function honouredIn(file: string): Promise<(pointer: string) => boolean> {
  const located = await readJsonFile(files, file, 'queues');
  const { queues, templatesAsQueues } = mergedAtOnce(located);
  const catalogue = await loadPlugins(await modulesNamedIn(file, files), resolve(file, '..'), files);
  const options = { stateDir: '/state', files, defaultDemand: undefined, queueList: undefined };
  const read = new Set<string>();
  for (const queue of [...queues, ...templatesAsQueues]) {
    const reader = new QueueReader(queue, located, catalogue, options);
    await reader.read();
    for (const [pointer, { kind }] of reader.effects) if (kind === 'read') read.add(queue.sourceOf(pointer));
  }
  return (pointer) => {
    const [entry = '', key = '', option] = fromPointer(pointer);
    const isSection = mergedSections.includes(key);
    // Merging reads the sections themselves, and the keys that say which entry is a template.
    if (option === undefined)
      return isSection || ['isTemplateQueue', 'templateQueueName'].includes(key) || read.has(pointer);
    return read.has(toPointer(isSection ? [entry, key, option] : [entry, key]));
  };
}

describe('every key', () => {
  for (const name of queueFiles)
    it(`every key of ${name} is honoured, or check-config names it`, async () => {
      const file = join(fixtures, name);
      const settings = join(temporaryDirectory(), 'thresher.yaml');
      writeFileSync(settings, JSON.stringify({ qconf: { configFile: file } }));
      const named = (await namedBy(settings)).filter((problem) => problem.file === file);
      // A plugin that thresher lacks, or that it does not need, is named with all its options.
      const wholes = named
        .filter(({ code }) => code.startsWith('plugin-not-') || code === 'plugin-dropped')
        .map(({ pointer }) => toPointer(fromPointer(pointer).slice(0, 2)));
      const options = named.filter(({ code }) => ['option-without-effect', 'unread-option'].includes(code));
      const isNamed = (pointer: string) =>
        [...options.map((problem) => problem.pointer), ...wholes].some((one) => isBelow(pointer, one));
      const isHonoured = await honouredIn(file);
      const keys = keysOf(JSON.parse(readFileSync(file, 'utf8'))).filter(
        (pointer) => fromPointer(pointer).length > 1,
      );
      const counts = { honoured: 0, named: 0 };
      const neither: string[] = [];
      for (const pointer of keys) {
        if (isNamed(pointer)) counts.named++;
        else if (isHonoured(pointer)) counts.honoured++;
        else neither.push(pointer);
      }
      expect(neither, 'neither honoured nor named').to.deep.equal([]);
      expect(counts.honoured + counts.named).to.equal(keys.length);
      expect(counts.named).to.be.greaterThan(0);
    });

  for (const name of queueFiles)
    it(`an invented key is unread in each section and in common of ${name}`, async () => {
      const queues = JSON.parse(readFileSync(join(fixtures, name), 'utf8')) as Record<string, Entry>;
      const invented: string[] = [];
      for (const [queue, entry] of Object.entries(queues)) {
        entry.common ??= {};
        for (const section of mergedSections.filter((one) => entry[one] !== undefined)) {
          entry[section] = { ...entry[section], inventedOption: 1 };
          invented.push(toPointer([queue, section, 'inventedOption']));
        }
      }
      const directory = temporaryDirectory();
      const file = join(directory, 'queues.json');
      writeFileSync(file, JSON.stringify(queues));
      const settings = join(directory, 'thresher.yaml');
      writeFileSync(settings, JSON.stringify({ qconf: { configFile: file } }));
      const named = (await namedBy(settings)).filter((problem) => problem.file === file);
      const unread = new Set(
        named.filter(({ code }) => code === 'unread-option').map(({ pointer }) => pointer),
      );
      const wholes = named
        .filter(({ code }) => code.startsWith('plugin-not-') || code === 'plugin-dropped')
        .map(({ pointer }) => toPointer(fromPointer(pointer).slice(0, 2)));
      const missed = invented.filter(
        (pointer) => !unread.has(pointer) && !wholes.some((one) => isBelow(pointer, one)),
      );
      expect(missed).to.deep.equal([]);
      expect(unread.size).to.be.greaterThan(invented.length / 2);
    });

  it("every key of Harvester's own panda_harvester.cfg is honoured, or check-config names it or its section", async () => {
    const file = join(fixtures, 'harvester/panda_harvester.cfg');
    const text = readFileSync(file, 'utf8')
      .replace('harvester_id = FIXME', 'harvester_id = CERN_1')
      .replace('FIXME_1', 'CERN');
    const copy = join(temporaryDirectory(), 'panda_harvester.cfg');
    writeFileSync(copy, text);
    const named = new Set((await namedBy(copy)).map(({ pointer }) => pointer));
    const keys = [...parseConfig(text).sections.values()].flatMap(({ name, options }) =>
      [...options.values()].map((option) => [name, option.name] as const),
    );
    const properties = Settings.properties as unknown as Record<string, { readonly properties: object }>;
    const managers = [
      'moduleName',
      'className',
      'inCertFile',
      'certFile',
      'outCertFile',
      'voms',
      'pluginConfigs',
    ];
    const neither = keys.filter(([section, key]) => {
      if (named.has(toPointer([section])) || named.has(toPointer([section, key]))) return false;
      if (section === 'credmanager' && managers.includes(key)) return false;
      return !(key in (properties[section]?.properties ?? {}));
    });
    expect(neither, 'neither honoured nor named').to.deep.equal([]);
    expect(keys.length).to.be.greaterThan(150);
  });
});
