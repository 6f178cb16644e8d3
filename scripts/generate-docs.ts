/** Writes the reference pages of docs/ from the tables and schemas in the sources: `npm run docs`. A test holds them equal. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { QueueOptions, sections } from '../src/config/queue-schema.ts';
import { Settings } from '../src/config/settings-schema.ts';
import { builtInPlugins } from '../src/plugins/registry.ts';
import { LocalTemplate } from '../src/plugins/local/schema.ts';
import { knownPlaceholders } from '../src/plugins/local/template.ts';
import { commandLineErrors } from '../src/worker/catalogue/command-line.ts';
import { configurationErrors } from '../src/worker/catalogue/configuration.ts';
import { daemonErrors } from '../src/worker/catalogue/daemon.ts';
import type { Explanation } from '../src/worker/catalogue/explanation.ts';
import { httpErrors } from '../src/worker/catalogue/http.ts';
import { reasons } from '../src/worker/catalogue/reasons.ts';
import { storeErrors } from '../src/worker/catalogue/store.ts';
import { workerErrors } from '../src/worker/catalogue/workers.ts';

interface Schema {
  readonly type?: string;
  readonly const?: string;
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

const generated = '<!-- Generated from the sources by `npm run docs`. -->';

/** All generated pages by their path in docs/. */
export function generatePages(): Record<string, string> {
  return { 'errors.md': errorsPage(), 'configuration.md': configurationPage() };
}

function errorsPage(): string {
  const section = (title: string, intro: string, table: Readonly<Record<string, Explanation>>) => [
    `## ${title}`,
    '',
    intro,
    '',
    '| Code | What it means | What to do |',
    '| --- | --- | --- |',
    ...Object.entries(table).map(
      ([code, { meaning, remedy }]) => `| \`${code}\` | ${cell(meaning)} | ${cell(remedy)} |`,
    ),
    '',
  ];
  return [
    '# Codes',
    '',
    generated,
    '',
    'Every message carries a code that never changes its meaning. Third-party plugins may have codes of their own.',
    '',
    ...section('Reasons', 'Why no more workers of a queue are submitted: `thresher queues`.', reasons),
    ...section('Workers', '`errorCode` of a worker: `thresher worker ID`.', workerErrors),
    ...section(
      'Configuration',
      'Mistakes in files, in the log at start. Errors refuse the queue; the others go on.',
      configurationErrors,
    ),
    ...section('Daemon', 'What keeps a daemon from starting.', daemonErrors),
    ...section('HTTP', 'What the HTTP server says, at start and in its answers.', httpErrors),
    ...section('State', 'What keeps the state from being kept.', storeErrors),
    ...section(
      'Command line',
      'Wrong use ends with exit status 2, everything else that fails with 1.',
      commandLineErrors,
    ),
  ].join('\n');
}

function configurationPage(): string {
  const settings = (Settings as unknown as Schema).properties ?? {};
  return [
    '# Configuration',
    '',
    generated,
    '',
    'Two files: `thresher.yaml` with the settings of the daemon, and `panda_queueconfig.json` with the queues, as PanDA',
    'Harvester has it. Relative paths count from the file that names them. Mistakes are found before anything starts; each is',
    'logged with file, line and JSON pointer. A queue with an error is refused, the others run.',
    '',
    '## thresher.yaml',
    '',
    ...Object.entries(settings).flatMap(([name, schema]) => [`### ${name}`, '', ...optionTable(schema), '']),
    '## Queues',
    '',
    'The queue file is an object of queues. An entry is a template when it has `"isTemplateQueue": true`, when its name ends in',
    '`_TEMPLATE`, or when another names it as `templateQueueName` (with a notice). A queue takes what it does not say itself',
    'from its template: plugin sections key by key, everything else as a whole. Options in `common` go to every plugin',
    'section that does not set them. Of duplicate keys the last counts, with a warning.',
    '',
    ...optionTable(QueueOptions),
    '',
    `Plugin sections are ${Object.entries(sections)
      .map(([name, { needed }]) => `\`${name}\`${needed ? ' (needed)' : ''}`)
      .join(', ')}. Each has \`name\` and \`module\`, and the options of its plugin. Options that`,
    'the plugin does not read are kept and reported as notices.',
    '',
    '## Plugins',
    '',
    ...builtInPlugins
      .filter(({ kind }) => kind !== 'inert')
      .flatMap(({ kind, name, module, aliases, config }) => [
        `### ${name} (${kind})`,
        '',
        `Module \`${module}\`.${aliases.length === 0 ? '' : ` Also ${aliases.map(([m, n]) => `\`${n}\` of \`${m}\``).join(', ')}.`}`,
        '',
        ...optionTable(config as unknown as Schema),
        '',
      ]),
    'Accepted without effect, so that a queue file of Harvester can be used as it is: ' +
      `${builtInPlugins
        .filter(({ kind }) => kind === 'inert')
        .map(({ name }) => `\`${name}\``)
        .join(', ')}.`,
    '',
    '## Templates of the local backend',
    '',
    'A YAML file:',
    '',
    ...optionTable(LocalTemplate),
    '',
    `Strings may hold placeholders: ${[...knownPlaceholders].map((name) => `\`\${${name}}\``).join(', ')}, and`,
    "Harvester's `${_workerID_3.2}` (digits of the worker id counted from the right, joined). `$${` stands for a literal",
    '`${`. In `command` and `args` an unknown `${name}` is the shell’s and stays; in `env` and `cwd` it is an error.',
    '',
  ].join('\n');
}

function optionTable({ properties = {} }: Schema): string[] {
  const rows = Object.entries(properties);
  if (rows.length === 0) return ['No options.'];
  return [
    '| Key | Type | Default | Meaning |',
    '| --- | --- | --- | --- |',
    ...rows.map(([key, schema]) => {
      const value = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
      return `| \`${key}\` | ${cell(typeOf(schema))} | ${value} | ${cell(schema.description ?? '')} |`;
    }),
  ];
}

function typeOf(schema: Schema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.const !== undefined) return `\`${schema.const}\``;
  const bound =
    schema.minimum !== undefined
      ? ` ≥ ${schema.minimum}`
      : schema.exclusiveMinimum !== undefined
        ? ` > ${schema.exclusiveMinimum}`
        : '';
  const items = schema.items === undefined ? '' : ` of ${typeOf(schema.items)}`;
  return `${schema.type ?? 'any'}${items}${bound}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

if (import.meta.main) {
  for (const [name, text] of Object.entries(generatePages())) {
    writeFileSync(join(import.meta.dirname, '../docs', name), text);
  }
}
