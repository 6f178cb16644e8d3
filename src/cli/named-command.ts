/**
 * The subcommand that a command line names: its first word that is neither an option nor the value of one. All options that
 * may stand before it take a value. Known before anything else is loaded: a daemon holds signals back from then on.
 */
export function namedCommand(argv: readonly string[]): string | undefined {
  let at = 0;
  for (let word = argv[at]; word?.startsWith('-'); word = argv[at]) {
    if (word === '-h' || word === '--help') return undefined;
    at += word.includes('=') ? 1 : 2;
  }
  return argv[at];
}
