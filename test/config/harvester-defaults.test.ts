import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { TSchema } from 'typebox';
import { knownOptions } from '../../src/config/harvester/plugin-options.ts';
import { keysWithoutEffect } from '../../src/config/queues/queue-keys.ts';
import { QueueOptions, WorkerMakerOptions, WorkerOptions } from '../../src/config/queues/queue-schema.ts';
import { Settings } from '../../src/config/settings/settings-schema.ts';
import { whyWithoutEffect } from '../../src/plugins/contracts/without-effect.ts';
import { builtInPlugins } from '../../src/plugins/registry.ts';
import { isObject } from '../../src/util/json.ts';
import { parseConfig } from '../../src/util/configparser.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

type Schemas = Readonly<Record<string, TSchema>>;
const propertiesOf = (schema: TSchema): Schemas => (schema as { properties?: Schemas }).properties ?? {};

/** The plugin of thresher that a plugin of Harvester stands for. */
const pluginOf = (name: string) =>
  builtInPlugins.find(({ aliases }) => aliases.some(([, alias]) => alias === name));

/** The schemas of the options of a place. Undefined where thresher has no such plugin, which the queue file's reader names. */
function schemasOf(place: string): Schemas | undefined {
  if (place === 'queue') return propertiesOf(QueueOptions);
  if (place === 'SimpleWorkerMaker')
    return { ...propertiesOf(WorkerMakerOptions), ...propertiesOf(QueueOptions) };
  const plugin = pluginOf(place === 'CRIC' ? 'K8sSubmitter' : place);
  if (plugin === undefined) return undefined;
  return {
    ...(plugin.kind === 'submitter' && propertiesOf(WorkerOptions)),
    ...propertiesOf(plugin.config),
  };
}

/** "Nothing" is written as None, False, 0, an empty text, list or dictionary, or not at all. */
const isNothing = (value: unknown): boolean =>
  [undefined, null, false, 0, ''].includes(value as null) ||
  (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0);

const isSame = (theirs: unknown, ours: unknown): boolean =>
  JSON.stringify(theirs) === JSON.stringify(ours) || (isNothing(theirs) && isNothing(ours));

const recorded = JSON.parse(read('test/fixtures/harvester/defaults.json')) as Readonly<
  Record<string, Readonly<Record<string, unknown>>>
>;

/** A value of the settings file as Harvester's code reads it. */
function valueOf(text: string): unknown {
  if (/^(True|False)$/.test(text)) return text === 'True';
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Values of Harvester's template that are for the site to fill in, or its own. */
const isOfSite = (text: string) => /FIXME|^https?:|^\/etc\/|^$/.test(text);

function* differences(): Generator<readonly [place: string, option: string, theirs: unknown]> {
  for (const [place, options] of Object.entries(recorded))
    for (const [option, theirs] of Object.entries(options)) {
      const schemas = schemasOf(place);
      if (schemas === undefined || (place === 'queue' && Object.hasOwn(keysWithoutEffect, option))) continue;
      const ours = schemas[option];
      if (ours !== undefined && whyWithoutEffect(ours) !== undefined) continue;
      if (ours === undefined || !isSame(theirs, (ours as { default?: unknown }).default))
        yield [place, option, theirs];
    }
  for (const { name, options } of parseConfig(
    read('test/fixtures/harvester/panda_harvester.cfg'),
  ).sections.values()) {
    const schemas = propertiesOf(Settings)[name];
    for (const { name: key, lines } of schemas === undefined ? [] : options.values()) {
      const ours = schemas && propertiesOf(schemas)[key];
      const text = lines.map(({ text }) => text).join('\n');
      // What thresher does not read is named when it is written.
      if (ours === undefined || isOfSite(text)) continue;
      const own = (ours as { default?: unknown }).default;
      if (own !== undefined && !isSame(valueOf(text), own))
        yield ['panda_harvester.cfg', `${name}.${key}`, text];
    }
  }
}

/** Rows of the table, by "place option", with what they say of Harvester. */
function documented(): ReadonlyMap<string, string> {
  const [, page = ''] = read('docs/from-harvester.md').split('## Where nothing is written');
  const rows = page.split('\n').flatMap((line) => {
    const [, place = '', options = '', theirs = ''] =
      line.split(' | ').length === 4 ? ['', ...line.split('|').slice(1)] : [];
    return [...options.matchAll(/`([^`]+)`/g)].map(
      ([, option = '']) => [`${place.replaceAll(/[ `]/g, '')} ${option}`, theirs] as const,
    );
  });
  return new Map(rows);
}

describe("Harvester's defaults", () => {
  const different = [...differences()];

  it('are those of thresher, or docs/from-harvester.md has a line that says so', () => {
    expect([...documented().keys()]).to.have.members(
      different.map(([place, option]) => `${place} ${option}`),
    );
  });

  for (const [place, option, theirs] of different)
    it(`the line of ${place} ${option} has Harvester's own`, () => {
      const said = documented().get(`${place} ${option}`) ?? '';
      const words =
        typeof theirs === 'string'
          ? [...theirs.matchAll(/[A-Z0-9_]{5,}|inCertFile|\/tmp/g)].map(([word]) => word)
          : [];
      if (words.length > 0) for (const word of words) expect(said).to.include(word);
      else if (theirs !== null)
        expect(said.trim()).to.equal(`\`${JSON.stringify(theirs).replaceAll('"', '')}\``);
    });

  for (const [place, options] of Object.entries(recorded))
    if (knownOptions(place) !== undefined)
      it(`knows every option of ${place} that has one`, () => {
        expect([...(knownOptions(place) ?? []), ...Object.keys(schemasOf('queue') ?? {})]).to.include.members(
          Object.keys(options),
        );
      });
});
