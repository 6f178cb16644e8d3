import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import type { TSchema } from 'typebox';
import { QueueOptions, WorkerMakerOptions, WorkerOptions } from '../../src/config/queues/queue-schema.ts';
import { whyWithoutEffect } from '../../src/plugins/contracts/without-effect.ts';
import { builtInPlugins } from '../../src/plugins/registry.ts';

const sources = resolve(import.meta.dirname, '../../src');
/** Where options are declared, and where Harvester's are listed: naming one there is not reading it. */
const declarations = /schema\.ts$|\/config\/harvester\/|\/codes\/|\/codes\.ts$/;

const text = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  .map((path) => join(sources, path))
  .filter((path) => path.endsWith('.ts') && !declarations.test(path))
  .map((path) => readFileSync(path, 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*\*).*$/gm, ''))
  .join('\n');

/** Options that neither do something nor are marked as doing nothing. */
function withoutReader(properties: Readonly<Record<string, TSchema>>): string[] {
  return Object.entries(properties)
    .filter(([, schema]) => whyWithoutEffect(schema) === undefined)
    .map(([key]) => key)
    .filter((key) => !new RegExp(`\\b${key.replaceAll('.', '\\.')}\\b`).test(text));
}

describe('an option that is not marked as without effect', () => {
  for (const { name, kind, config } of builtInPlugins.filter((plugin) => plugin.kind !== 'inert'))
    it(`has a reader: those of ${name} (${kind})`, () => {
      const { properties = {} } = config as { properties?: Record<string, TSchema> };
      expect(withoutReader(properties)).to.deep.equal([]);
    });

  for (const [what, { properties }] of [
    ['a queue', QueueOptions],
    ['its workers', WorkerOptions],
    ['its worker maker', WorkerMakerOptions],
  ] as const)
    it(`has a reader: those of ${what}`, () => {
      expect(withoutReader(properties)).to.deep.equal([]);
    });
});
