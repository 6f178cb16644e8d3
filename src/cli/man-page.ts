import { allCommands, type ArgumentNode, type CommandNode, type OptionNode } from './tree.ts';

/** A term and what it means. */
type Entry = readonly [term: string, meaning: string];

const description = [
  'thresher keeps the right number of workers (pilots) alive for every queue of a panda_queueconfig.json, follows each to its end, and cleans up.',
  '"thresher run" is the daemon. All other commands read its state directory, or leave a request there that the daemon carries out. Run them as the user of the daemon.',
];

const files: readonly Entry[] = [
  ['/etc/thresher/thresher.yaml', 'Settings of the daemon; names the queue file.'],
  ['/etc/thresher/panda_queueconfig.json', 'Queues, unless the settings name another file.'],
  [
    '/var/lib/thresher',
    'State directory: the database, the id of the factory, and the directories of local workers. It is on a local disk.',
  ],
  ['/var/log/thresher', 'Logs, if the settings name a file there.'],
];

const signals: readonly Entry[] = [
  [
    'SIGTERM, SIGINT',
    'The daemon stops within master.shutdownTimeout and a little more. Workers go on. A second one ends it at once.',
  ],
  [
    'SIGHUP',
    'The daemon reads the queue file again, as soon as it runs. With --live the daemon stops, as its terminal is gone.',
  ],
];

const environmentVariables: readonly Entry[] = [
  ['NOTIFY_SOCKET', 'Set by systemd: the daemon tells it start, reload, stop and status.'],
  ['WATCHDOG_USEC, WATCHDOG_PID', 'Set by systemd: the loops of the daemon feed its watchdog.'],
  ['JOURNAL_STREAM', 'Set by systemd: log lines carry the priorities of the journal.'],
];

const exitStatus: readonly Entry[] = [
  ['0', 'All is well.'],
  [
    '1',
    'Something failed. The message ends with a code, which docs/errors.md explains. check-config: there is an error, or with --strict a warning. run: the daemon did not start, or had to force its stop; a daemon that hangs as a whole then ends itself by SIGKILL.',
  ],
  ['2', 'The command line is wrong.'],
];

/** The manual page, in the language of man(7). */
export function manPage(tree: CommandNode): string {
  const commands = allCommands(tree).filter(({ commands: below }) => below.length === 0);
  return [
    '.\\" Generated from the command line\'s own help by "npm run docs".',
    '.TH THRESHER 8 "" thresher "System administration"',
    '.SH NAME',
    escape(`thresher - ${tree.description}`),
    '.SH SYNOPSIS',
    '.B thresher',
    tree.options.filter(takesValue).map(synopsisOf).join(' '),
    '.I command',
    '.RI [ arguments ]',
    '.SH DESCRIPTION',
    ...description.flatMap((text) => ['.PP', escape(text)]).slice(1),
    '.SH COMMANDS',
    ...commands.flatMap((node) => commandSection(node, tree)),
    '.SH OPTIONS',
    'With every command:',
    ...tree.options.flatMap(optionEntry),
    ...listSection('FILES', files),
    ...listSection('SIGNALS', signals),
    ...listSection('ENVIRONMENT', environmentVariables),
    ...listSection('EXIT STATUS', exitStatus),
    '.SH SEE ALSO',
    ...seeAlso('systemctl(1)', 'journalctl(1)', 'systemd.service(5)', 'logrotate(8)'),
    '.PP',
    escape('docs/ of the package: operation.md for administrators, configuration.md, errors.md.'),
    '',
  ].join('\n');
}

function commandSection(node: CommandNode, tree: CommandNode): string[] {
  const usage = [
    `\\fB${escape(node.path.slice(tree.path.length + 1))}\\fR`,
    ...node.arguments.filter(({ afterDashes }) => !afterDashes).map(argumentUsage),
    ...node.options.filter(({ names }) => !names.includes('--help')).map(synopsisOf),
    ...node.arguments.filter(({ afterDashes }) => afterDashes).map(argumentUsage),
  ];
  const own = node.options.filter(({ names }) => !names.includes('--help'));
  const named = node.arguments.filter(({ description: text }) => text !== '');
  return [
    '.TP',
    usage.join(' '),
    escape(`${capitalised(node.description)}.`),
    ...(named.length + own.length === 0 ? [] : ['.RS']),
    ...named.flatMap((argument) => [
      '.TP',
      `\\fI${escape(argument.name)}\\fR`,
      escape(withChoices(argument)),
    ]),
    ...own.flatMap(optionEntry),
    ...(named.length + own.length === 0 ? [] : ['.RE']),
  ];
}

function optionEntry(option: OptionNode): string[] {
  const value = option.value === undefined ? '' : ` \\fI${escape(option.value)}\\fR`;
  const names = option.names.map((name) => `\\fB${escape(name)}\\fR`).join(', ');
  return ['.TP', `${names}${value}`, escape(withChoices(option))];
}

function withChoices(
  entry: Pick<OptionNode, 'description' | 'choices'> & { readonly default?: string | undefined },
) {
  const choices = entry.choices.length === 0 ? '' : `: ${entry.choices.join(', ')}`;
  const fallback = entry.default === undefined ? '' : ` (default: ${entry.default})`;
  return `${capitalised(entry.description)}${choices}${fallback}.`;
}

function argumentUsage({ name, required, variadic, afterDashes }: ArgumentNode): string {
  const shown = `\\fI${escape(name)}\\fR${variadic ? ' ...' : ''}`;
  if (afterDashes) return `[\\fB\\-\\-\\fR ${shown}]`;
  return required ? shown : `[${shown}]`;
}

function synopsisOf({ names, value, mandatory }: OptionNode): string {
  const shown = `\\fB${escape(names.at(-1) ?? '')}\\fR${value === undefined ? '' : ` \\fI${escape(value)}\\fR`}`;
  return mandatory ? shown : `[${shown}]`;
}

const takesValue = ({ value }: OptionNode): boolean => value !== undefined;

function listSection(title: string, entries: readonly Entry[]): string[] {
  return [
    `.SH ${title}`,
    ...entries.flatMap(([term, meaning]) => ['.TP', `\\fB${escape(term)}\\fR`, escape(meaning)]),
  ];
}

function seeAlso(...pages: string[]): string[] {
  return pages.map((page, at) => {
    const [, name = '', section = ''] = /^(.*)(\(\d\))$/.exec(page) ?? [];
    return `.BR ${escape(name)} ${section}${at === pages.length - 1 ? '' : ' ,'}`.replace(') ,', '),');
  });
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Characters that troff would interpret, or print as other ones. Source: groff_char(7). */
const special: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
  '"': '\\(dq',
};

/** Plain text for a line of its own or a part of one. */
export function escape(text: string): string {
  const line = text
    .replace(/\s+/g, ' ')
    .replace(/[\\\-'`^~"]/g, (character) => special[character] ?? character);
  const ascii = line.replace(
    /[^\x20-\x7e]/gu,
    (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
  return ascii.startsWith('.') ? `\\&${ascii}` : ascii;
}
