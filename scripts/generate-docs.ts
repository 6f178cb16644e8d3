/** Writes the reference pages of docs/ from the tables, schemas and commands in the sources: `npm run docs`. A test holds them equal. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { harvesterPlugins } from '../src/config/harvester/plugins.ts';
import { keysWithoutEffect } from '../src/config/queues/queue-keys.ts';
import {
  QueueOptions,
  sections,
  WorkerMakerOptions,
  WorkerOptions,
} from '../src/config/queues/queue-schema.ts';
import {
  missedSettings,
  needlessSettings,
  unreadSections,
} from '../src/config/settings/harvester-file/keys.ts';
import { ownSettings } from '../src/config/settings/harvester-file/places.ts';
import { realEnvironment } from '../src/cli/environment.ts';
import { bashCompletion } from '../src/cli/bash-completion.ts';
import { manPage } from '../src/cli/man-page.ts';
import { makeProgram } from '../src/cli/program.ts';
import { commandTree } from '../src/cli/tree.ts';
import { Settings } from '../src/config/settings/settings-schema.ts';
import type { SourceDefinition } from '../src/plugins/contracts/index.ts';
import { builtInPlugins } from '../src/plugins/registry.ts';
import { LocalTemplate } from '../src/plugins/local/schema.ts';
import { knownPlaceholders } from '../src/plugins/local/template.ts';
import { commandLineErrors } from '../src/codes/command-line.ts';
import { configurationErrors } from '../src/codes/configuration.ts';
import { credentialErrors } from '../src/clients/credentials/codes.ts';
import { daemonErrors } from '../src/codes/daemon.ts';
import type { Explanation } from '../src/codes/explanation.ts';
import { htcjobErrors } from '../src/clients/htcjob/codes.ts';
import { idleReasons } from '../src/sources/htcondor-idle/codes.ts';
import { interlinkErrors } from '../src/sources/interlink/codes.ts';
import { htcondorErrors } from '../src/clients/htcondor/codes.ts';
import { httpErrors } from '../src/codes/http.ts';
import { htcondorMistakes, htcondorWorkerErrors } from '../src/plugins/htcondor/codes.ts';
import { kubernetesWorkerErrors } from '../src/plugins/kubernetes/codes.ts';
import { kubernetesErrors } from '../src/clients/kubernetes/codes.ts';
import { pandaErrors } from '../src/clients/panda/codes.ts';
import { pandaReasons } from '../src/sources/panda/codes.ts';
import { localWorkerErrors } from '../src/plugins/local/codes.ts';
import { poolErrors } from '../src/codes/pool.ts';
import { reasons } from '../src/codes/reasons.ts';
import { serviceErrors } from '../src/codes/services.ts';
import { storeErrors } from '../src/codes/store.ts';
import { webErrors } from '../src/clients/web/codes.ts';
import { workerErrors } from '../src/codes/workers.ts';
import { cricPage } from './cric-page.ts';
import { htcondorStatesPage } from './htcondor-states.ts';
import { kubernetesStatesPage } from './kubernetes-states.ts';

interface Schema {
  readonly type?: string;
  readonly const?: string;
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

const generated = '<!-- Generated from the sources by `npm run docs`. -->';

/** The form of `panda_harvester.cfg`, beyond the keys above. */
const harvesterFile: readonly string[] = [
  '## panda_harvester.cfg',
  '',
  "A file that ends in `.cfg`, or begins with a `[section]`, is Harvester's own. Without `--config` the settings are",
  `\`${ownSettings}\`; if that does not exist, the \`panda_harvester.cfg\` in \`/etc/panda\`, \`/usr/etc/panda\`, \`~/etc/panda\`,`,
  '`$PANDA_HOME/etc/panda` or `$PANDA_HOME/usr/etc/panda`, and a line says so. Harvester merges several of them; thresher',
  'refuses to guess.',
  '',
  "- Sections and keys are those above; thresher's own, `master.stateDir` or `[http]`, can stand in the file as well: Harvester ignores",
  '  unknown keys. `sources` needs a thresher.yaml: its options have no form here, and a warning says so.',
  "- The grammar is that of Python's `configparser`: comments on lines of their own, values that go on in indented lines,",
  '  `%(name)s` and `%%`, `[DEFAULT]`. thresher refuses files that Python refuses: a section or key twice, a key without a value.',
  '- A variable replaces the whole value that begins with `$`: `$HOME/state` names the variable `HOME/state`, and in',
  '  `${HOME}/state` only `HOME` counts, with a warning. A variable that is not set is an error if thresher reads the key.',
  '- `True`, `False` and digits have their types; `None` leaves a key unset. Several lines are a list, or JSON between brackets',
  '  or braces, in which a variable replaces each whole string that holds a `$`. `queueList` may be one line: `ALL`, or names.',
  '- `$PANDA_HOME/etc/configmap/panda_harvester_configmap.json` overrides keys of the sections that the file has, and brings sections of thresher alone, such as `http`, also where the file lacks them.',
  '- `qconf.configFile` counts from the directory of the file. If it is not there, thresher looks in `$PANDA_HOME/etc/panda` and',
  '  `/etc/panda`, with a notice. If Harvester would read another file than thresher, a warning names both.',
  "- A key that still has the `FIXME` of Harvester's template is an error if thresher reads it. Credential managers with one are left out, with one warning ([credentials.md](credentials.md#how-to-name-managers)).",
  '',
  `thresher does not read these, with a notice for each: ${unreadSections.map((name) => `\`[${name}]\``).join(', ')}, and`,
  "Harvester's other keys of the sections above. It warns if that means other queues, more workers, another limit, or another way to submit than with",
  `Harvester: ${Object.keys(missedSettings)
    .map((key) => `\`${key}\``)
    .join(', ')}.`,
  `It needs none of these, and says why: ${Object.keys(needlessSettings)
    .filter((key) => !Object.hasOwn(missedSettings, key))
    .map((key) => `\`${key}\``)
    .join(', ')}.`,
  'It also warns of a key or section that Harvester does not know either. It does not read settings behind',
  '`HARVESTER_INSTANCE_CONFIG_URL`.',
  '',
];

const commandLine = commandTree(await makeProgram(realEnvironment));

/** All generated pages by their path in docs/. */
export function generatePages(): Record<string, string> {
  return {
    'errors.md': errorsPage(),
    'configuration.md': configurationPage(),
    'cric.md': cricPage(),
    'htcondor-states.md': htcondorStatesPage(),
    'kubernetes-states.md': kubernetesStatesPage(),
    'thresher.8': manPage(commandLine),
    'thresher.bash': bashCompletion(commandLine),
  };
}

function errorsPage(): string {
  const section = (title: string, intro: string, table: Readonly<Record<string, Explanation>>) => [
    `## ${title}`,
    '',
    intro,
    '',
    '| Code | Meaning | Remedy |',
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
    'Every message has a code, whose meaning never changes. Third-party plugins may have codes of their own.',
    '',
    ...section(
      'Reasons',
      'Causes for which thresher submits no more workers of a queue: `thresher queues`.',
      reasons,
    ),
    ...section('Workers', '`errorCode` of a worker: `thresher worker ID`.', {
      ...workerErrors,
      ...kubernetesWorkerErrors,
      ...htcondorWorkerErrors,
    }),
    ...section(
      'Kubernetes',
      'Answers of the API server of a cluster, and causes for which thresher did not ask it: reasons of queues and errors of workers.',
      kubernetesErrors,
    ),
    ...section(
      'HTCJobs',
      'Why the operator of HTCJobs waits or refuses one ([htcjob.md](htcjob.md)).',
      htcjobErrors,
    ),
    ...section(
      'interLink',
      'Faults of the sidecar for interLink ([interlink.md](interlink.md)).',
      interlinkErrors,
    ),
    ...section(
      'Demand of a pool',
      'Why a queue gets machines of a HTCondor pool, or none ([pool.md](pool.md)).',
      idleReasons,
    ),
    ...section('Pools', 'Faults of `thresher pool` ([pool.md](pool.md)).', poolErrors),
    ...section(
      'Local workers',
      'Faults of the work directory, the slots and the PID namespaces of local workers.',
      localWorkerErrors,
    ),
    ...section(
      'HTCondor',
      "Answers of HTCondor's commands, and causes for which they gave none: reasons of queues and errors of workers.",
      htcondorErrors,
    ),
    ...section(
      'PanDA server',
      'Answers of the PanDA server, and causes for which it gave none.',
      pandaErrors,
    ),
    ...section('Fetched files', 'Causes for which the cacher could not fetch a file.', webErrors),
    ...section(
      'Demand of the PanDA server',
      'Causes for which a queue gets no workers by the link to the PanDA server: `thresher queues`.',
      pandaReasons,
    ),
    ...section('Credentials', 'Faults of a proxy, token or ticket, or of its renewal.', credentialErrors),
    ...section(
      'Configuration',
      'Mistakes in files, in the log at start. Errors refuse the queue; the others go on.',
      { ...configurationErrors, ...htcondorMistakes },
    ),
    ...section('Daemon', 'Causes for which a daemon does not start.', daemonErrors),
    ...section('Services', 'Causes for which a service of a running daemon fails.', serviceErrors),
    ...section('HTTP', 'Messages of the HTTP server, at start and in its answers.', httpErrors),
    ...section('State', 'Faults of the state directory and the database.', storeErrors),
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
    "Two files: `thresher.yaml` (or Harvester's `panda_harvester.cfg`) with the settings of the daemon, and",
    '`panda_queueconfig.json` with the queues, as PanDA Harvester has it. Relative paths count from the file that names them. thresher finds mistakes before anything starts, and',
    'logs each with file, line and JSON pointer. It refuses a queue with an error, and runs the others.',
    '',
    '## thresher.yaml',
    '',
    'A string that is exactly `$NAME` or `${NAME}` stands for that variable of the environment; `$HOSTNAME` is the short host',
    'name. Text around it is text: `$HOME/state` stays as it is.',
    '',
    ...Object.entries(settings).flatMap(([name, schema]) => [`### ${name}`, '', ...optionTable(schema), '']),
    ...harvesterFile,
    '## Queues',
    '',
    'The queue file is an object of queues. An entry is a template when it has `"isTemplateQueue": true`, when its name ends in',
    '`_TEMPLATE`, or when another names it as `templateQueueName` (with a notice). A queue takes values that it does not set',
    'from its template: plugin sections key by key, everything else as a whole. Options in `common` go to every plugin',
    'section that does not set them. The last of duplicate keys counts, with a warning if they differ; `null` counts as not written.',
    '',
    ...optionTable(QueueOptions),
    '',
    `Plugin sections are ${Object.entries(sections)
      .map(([name, { needed }]) => `\`${name}\`${needed ? ' (needed)' : ''}`)
      .join(', ')}. Each has \`name\` and \`module\`, and the options of its plugin. Options that`,
    'neither thresher nor Harvester reads stay without effect. thresher reports them as notices, or as warnings if they look like a',
    'spelling mistake.',
    '',
    '### Checking',
    '',
    '`thresher check-config [QUEUE...]` reads settings and queues as the daemon would, and changes nothing. Every queue is in',
    'one state:',
    '',
    '- `ready`: it runs. A queue that is ready and yet submits nothing says why.',
    '- `incomplete`: its configuration is correct, but it needs something that is missing: a plugin of Harvester that',
    '  thresher does not have (yet), or a file. It submits nothing (`queue-incomplete`); the others go on.',
    '- `refused`: it has a mistake. It submits nothing (`queue-refused`); the others go on.',
    '',
    'Options without effect (Harvester reads them and thresher does not, or neither does) get one line each for the whole file, with',
    'all line numbers. The line is a warning if the queue behaves differently than with Harvester. A notice on a template comes',
    'once, and not with each queue. In a file without queues, thresher checks the templates as queues that use them.',
    '',
    'The text has one line for several problems of a kind, and for problems that several queues share. `--output json` prints',
    'an array of `{queue, state, problems}`, with `{file, pointer, line, severity, code, message}` for each problem; `severity` is',
    '`error`, `warning` or `notice`. Problems of no single queue (settings, the file as a whole, templates) come first,',
    'with `queue` and `state` null. Exit status: 1 with an error, with `--strict` also with a warning; 2 for wrong use.',
    '',
    '`thresher explain QUEUE` prints one queue as it counts: each value with its entry and line, the effective',
    'limits, the plugins of its sections, and the source that asks for its workers. It hides values that look like secrets.',
    '',
    '`thresher render QUEUE` prints the form in which thresher would send one worker of a queue: the Job of Kubernetes, the submit text of HTCondor,',
    'or the command of this machine with its arguments, environment and directory. Comments above it name its source files',
    'and the objects that thresher makes beside it. The submitter itself makes this form. It asks, writes and sends nothing, and needs neither a daemon nor a',
    'database. `--ncore`, `--ram`, `--disk`, `--walltime`, `--resource-type`, `--job-type`, `--pilot-type` and',
    '`--prod-source-label` choose another worker; `--worker ID` shows an existing one, by the configuration it was made with.',
    '`--output json` prints an array with one object `{queue, workerId, name, connection, format, document, environment, files,',
    'notes}`. It replaces secrets by `(hidden)`: values by the name of their variable, keys and tokens by their form.',
    '',
    "### Harvester's keys without effect",
    '',
    'thresher accepts them, so that files work as they are. `check-config` names each of them in one line, and `explain` marks them.',
    '',
    '| Key | Why |',
    '| --- | --- |',
    ...Object.entries(keysWithoutEffect).map(([key, why]) => `| \`${key}\` | ${cell(sentence(why))} |`),
    '',
    '### Options of a worker',
    '',
    'Options of the `submitter` section that count for every backend:',
    '',
    ...optionTable(WorkerOptions),
    '',
    'Options of the `workerMaker` section:',
    '',
    ...optionTable(WorkerMakerOptions as unknown as Schema),
    '',
    '## Plugins',
    '',
    ...builtInPlugins
      .filter(({ kind }) => kind !== 'inert' && kind !== 'source')
      .flatMap(({ kind, name, module, aliases, config }) => [
        `### ${name} (${kind})`,
        '',
        `Module \`${module}\`.${aliases.length === 0 ? '' : ` Also ${aliases.map(([m, n]) => `\`${n}\` of \`${m}\``).join(', ')}.`}`,
        '',
        ...optionTable(config as unknown as Schema),
        '',
      ]),
    'thresher accepts these without effect, so that a queue file of Harvester works as it is: ' +
      `${builtInPlugins
        .filter(({ kind }) => kind === 'inert')
        .map(({ name }) => `\`${name}\``)
        .join(', ')}.`,
    '',
    "Harvester's plugins that thresher does not have (yet); a queue that needs one is incomplete: " +
      `${absentPlugins().join(', ')}.`,
    '',
    '## Sources',
    '',
    'A source asks for workers: a queue names one as its `demand`. Its options for the daemon stand in `sources` of the settings, its',
    'options for a queue in the section `demand`.',
    '',
    ...builtInPlugins.flatMap((definition) =>
      definition.kind === 'source' && 'queueConfig' in definition ? sourceLines(definition) : [],
    ),
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

function sourceLines({ name, description, everyQueue, config, queueConfig }: SourceDefinition): string[] {
  const every = everyQueue ? ' thresher asks it about every queue.' : '';
  const about = [`${description}${every}`, ''];
  const optionsOf = (schema: unknown, title: string) =>
    Object.keys((schema as Schema).properties ?? {}).length === 0
      ? []
      : [title, '', ...optionTable(schema as Schema), ''];
  const options = [
    ...optionsOf(config, `Options in \`sources.${name}\` of the settings:`),
    ...optionsOf(queueConfig, 'Options in `demand` of a queue:'),
  ];
  return [`### ${name}`, '', ...about, ...(options.length === 0 ? ['No options.', ''] : options)];
}

function sentence(clause: string): string {
  return `${clause.slice(0, 1).toUpperCase()}${clause.slice(1)}.`;
}

/** By section; those of throttlers and credential managers are accepted. */
function absentPlugins(): string[] {
  const there = new Set(
    builtInPlugins.flatMap(({ module, name, aliases }) => [
      ...[[module, name] as const, ...aliases].map((pair) => pair.join(' ')),
    ]),
  );
  const names = harvesterPlugins
    .filter(({ kind, gone }) => !gone && kind !== 'throttler' && kind !== 'credmanager')
    .filter(
      ({ module, name }) =>
        !/^Dummy(Bulk)?(Preparator|Stager|Zipper)$/.test(name) && !there.has(`${module} ${name}`),
    )
    .map(({ name }) => `\`${name}\``);
  return [...new Set(names)];
}

function optionTable({ properties = {}, description }: Schema): string[] {
  const rows = Object.entries(properties);
  if (rows.length === 0) return [description ?? 'No options.'];
  return [
    '| Key | Type | Default | Meaning |',
    '| --- | --- | --- | --- |',
    ...rows.map(([key, schema]) => {
      const value = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
      return `| \`${key}\` | ${cell(typeOf(schema))} | ${value} | ${cell([schema.description ?? '', ...itemKeys(schema)].join(' '))} |`;
    }),
  ];
}

/** The keys of a list's objects, and each form that these may have. */
function itemKeys({ items }: Schema): string[] {
  const forms = (items?.anyOf ?? (items === undefined ? [] : [items])).filter(({ properties }) => properties);
  const said = forms.map(({ properties = {} }) => {
    const keys = Object.entries(properties).map(([key, schema]) => {
      const meaning = schema.description === undefined ? '' : `: ${schema.description.replace(/\.$/, '')}`;
      return `\`${key}\` (${typeOf(schema)}${meaning})`;
    });
    return keys.join(', ');
  });
  return said.length === 0 ? [] : [`Each has ${said.join('; or ')}.`];
}

function typeOf(schema: Schema): string {
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ');
  if (schema.const !== undefined) return `\`${schema.const}\``;
  const bound =
    schema.minimum !== undefined
      ? ` ≥ ${schema.minimum}`
      : schema.exclusiveMinimum !== undefined
        ? ` > ${schema.exclusiveMinimum}`
        : '';
  const most = schema.maximum === undefined ? '' : ` ≤ ${schema.maximum}`;
  const items = schema.items === undefined ? '' : ` of ${typeOf(schema.items).replaceAll(' or ', 's or ')}s`;
  return `${schema.type ?? 'any'}${items}${bound}${most}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

if (import.meta.main) {
  for (const [name, text] of Object.entries(generatePages())) {
    writeFileSync(join(import.meta.dirname, '../docs', name), text);
  }
}
