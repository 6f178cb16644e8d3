/** Variables that a shell, apptainer or the runner could change on their way into a container. */
export const hostileVariables: Readonly<Record<string, string>> = {
  QUOTES: `'single' "double" \`back\``,
  NEWLINES: 'one\n\ntwo\n',
  RETURN: 'a\r\nb\r',
  DOLLAR: '$HOME ${HOME} $(id) $$ $(QUOTES)',
  UNICODE: 'ü \u{1F41F} 日本',
  BACKSLASH: '\\n \\\\ \\0 \\',
  BLANKS: '  two  words\t ',
  SHELL: '; exit 9 & | * ? [a] {a,b} ~ #x !h >file',
  EMPTY: '',
  EQUALS: 'a=b,c:d',
  LONG: 'x'.repeat(20_000),
  'my.var': 'dot "and"\n$HOME ü',
  'my-var': 'dash',
  PATH: '/bin',
  HOME: '/somewhere/$x',
  TMPDIR: '/tmp/x',
  USER: 'me',
  TERM: 'dumb',
  IFS: ':',
  UID: '1',
  GOPATH: '/go',
  PS1: '> ',
  ENV: '/none',
  XDG_RUNTIME_DIR: '/run/x',
  APPTAINER_BIND: '/x',
  SINGULARITY_NAME: 'n',
  OPTIND: '7',
  PPID: '2',
  EUID: '3',
  GID: '4',
  RANDOM: 'no',
  GROUPS: 'a',
  SECONDS: 'z',
  BASH_ENV: '/none',
};

/** Words that a shell could split, expand or drop. */
export const hostileWords: readonly string[] = [
  'two  words',
  '',
  ';',
  'exit 9; echo INJECTED',
  '*',
  '/bin/*',
  '$HOME',
  '${x}',
  '`id`',
  '$(id)',
  "it's",
  '"q"',
  'a\nb\n',
  '\r',
  '-n',
  '--',
  '\\',
  '\\0101',
  '~',
  '{a,b}',
  '#x',
  '&',
  '>file',
  'ü\u{1F41F}',
  '',
];

/** The variables that `env -0` wrote. */
export function variablesIn(log: string): Readonly<Record<string, string>> {
  const lines = log.split('\0').filter((one) => one !== '');
  return Object.fromEntries(
    lines.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]),
  );
}
