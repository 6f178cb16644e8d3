import { rules } from '../src/config/cric/derived.ts';
import { type CricField, cricFields } from '../src/config/cric/fields.ts';

/** Fields of CRIC that Harvester reads or once read, and that become no option here. */
const unapplied: readonly (readonly [field: string, why: string])[] = [
  ['`params`: `nQueueLimitJob...`', 'Limits of the jobs of push queues, which thresher does not run.'],
  ['`params`: `job_minramcount` and the like', 'Sizes of the jobs of push queues.'],
  [
    '`params`: `unified_dispatch`, `catchall`: `grandly_unified`',
    'Harvester itself has asked the server for all kinds of jobs since 2025, whatever they say.',
  ],
  [
    '`type` `analysis`',
    'Pilots for analysis alone: set `prodSourceLabel` and `useAnalysisCredentials` in the queue file.',
  ],
  [
    '`type`, `workflow`, `harvester_template`',
    'They choose the template of a queue that the queue file lacks (`DYNAMIC` in `qconf.queueList`), and are no options.',
  ],
  [
    '`minrss`, `meanrss`, `mintime`, `timefloor`, `uconfig`',
    'The PanDA server reads them, and counts with them when it orders workers.',
  ],
];

/** docs/cric.md: which options CRIC's fields become. */
export function cricPage(): string {
  const row = (...cells: string[]) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# CRIC',
    '',
    '<!-- Generated from the sources by `npm run docs`. -->',
    '',
    'CRIC has an entry for each queue of PanDA. thresher reads it where `cacher.data` of the settings names the file of all entries,',
    'as in Harvester:',
    '',
    '    cacher:',
    '      data:',
    '        - panda_queues.json||https://HOST/PATH/pandaqueue/query/?json',
    '',
    "Each field becomes an option as the queue file could have it. An option of the queue file, of its template and of `common` counts before CRIC's, and CRIC's before",
    "every default. So `thresher explain QUEUE` shows it, with `CRIC` as its origin. With `DYNAMIC` in `qconf.queueList` CRIC's limits count before those of a template, as in",
    "Harvester. `corecount` counts before every file: Harvester's SimpleWorkerMaker reads the cores of CRIC alone, and `nCore` of real queue files often has another number, which the notice `cric-value-differs` names. For other cores change CRIC.",
    'A value of a wrong form is left out with the warning `cric-value-wrong`, which names the entry: no mistake in CRIC refuses a queue. Empty texts and',
    '`null` say nothing; neither does 0 for a size.',
    '',
    'A queue of HTCondor takes the options of its pilot only if it asks for CRIC, as in Harvester: by `useCRIC`, or `useCRICGridCE`, which takes the CEs too, or by one of',
    'their older names.',
    '',
    '## Fields that become one option',
    '',
    row('Field', 'Option', 'Queues'),
    row('---', '---', '---'),
    ...cricFields.map((field) => row(fieldOf(field), optionOf(field), queuesOf(field))),
    '',
    'With `per_core_attr` in `catchall`, `maxrss` and `maxwdir` are those of one core: thresher multiplies them by `corecount`.',
    '',
    '## Fields with a rule',
    '',
    row('Field', 'Option', 'Rule'),
    row('---', '---', '---'),
    ...rules.map(({ fields, options, note }) =>
      row(fields, options.map((option) => `\`${option}\``).join(', '), note),
    ),
    '',
    "With `qconf.autoBlacklist: false`, Harvester's default, a queue of another instance stays open. `cricStatus` in the queue file counts before CRIC's.",
    '',
    'HTCondor chooses among the CEs by their waiting and running workers ([htcondor-templates.md](htcondor-templates.md)). An endpoint without a port gets that of its kind: 443 for',
    'ARC by REST, where 2811 becomes 443 too, 8443 for cream-ce, 9619 for htcondor-ce. Of two entries with one endpoint the one counts whose queue is not `default`.',
    '',
    '## Fields without an option',
    '',
    row('Field', 'Why'),
    row('---', '---'),
    ...unapplied.map(([field, why]) => row(field, why)),
    '',
  ].join('\n');
}

function fieldOf({ field: [first, second] }: CricField): string {
  return second === undefined ? `\`${first}\`` : `\`params\`: \`${second}\``;
}

function optionOf({ section, option }: CricField): string {
  return section === 'queue' ? `\`${option}\` of the queue` : `\`${option}\``;
}

function queuesOf({ reach }: CricField): string {
  const names = { any: 'all', kubernetes: 'Kubernetes', htcondor: 'HTCondor with `useCRIC`' } as const;
  return names[reach];
}
