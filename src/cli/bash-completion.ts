import { workerStatuses } from '../worker/status.ts';
import { allCommands, type CommandNode, type OptionNode } from './tree.ts';

/** How a value is completed, by what stands for it in the help. Everything else is the user's. */
const byValue: Readonly<Record<string, string>> = {
  file: 'compopt -o default',
  dir: 'compopt -o dirnames',
  queue: '_thresher_ask queues',
  id: '_thresher_ask workers',
  request: '_thresher_ask requests',
  'path[:name]': 'compopt -o default',
  'status,...': `_thresher_list ${workerStatuses.join(' ')}`,
};

/**
 * The script for bash. Names of queues are never given to `compgen -W`: it would carry out what is written in them.
 */
export function bashCompletion(tree: CommandNode): string {
  const commands = allCommands(tree);
  const withValue = commands.flatMap(({ options }) => options.filter(({ value }) => value !== undefined));
  const globals = tree.options.filter(({ value }) => value !== undefined);
  return `# Completion of thresher for bash: source <(thresher completion bash)

_thresher_words() {
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

# One or more, with commas between them.
_thresher_list() {
  local before=
  if [[ $cur == *,* ]]; then before=\${cur%,*},; fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "\${cur##*,}")
}

_thresher_ask() {
  local line
  while IFS= read -r line; do
    if [[ $line == "$cur"* ]]; then COMPREPLY+=("$(printf %q "$line")"); fi
  done < <("\${COMP_WORDS[0]/#\\~\\//$HOME/}" "\${globals[@]}" __complete "$1" 2>/dev/null </dev/null)
}

_thresher() {
  local command=thresher value= globals=() cur=\${COMP_WORDS[COMP_CWORD]} word i
  if [[ $cur == = ]]; then cur=; fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash takes --output=json for three words.
    if [[ $word == = ]]; then continue; fi
    if [[ -n $value ]]; then
      case $value in
        ${alternatives(namesOf(globals))}) globals+=("$value" "\${word/#\\~\\//$HOME/}") ;;
      esac
      value=
      continue
    fi
    case $word in
      ${alternatives(namesOf(withValue))}) value=$word ;;
    esac
    case "$command $word" in
      ${alternatives(commands.slice(1).map(({ path }) => path))}) command+=" $word" ;;
    esac
  done
  case "$command:$value" in
${commands.flatMap(valueBranches(tree)).join('')}${globals.map((option) => branch(`*:${pattern(option)}`, completerOf(option))).join('')}    *:-*) ;;
${commands.map((node) => branch(quoted(`${node.path}:`), wordCompleter(node, tree))).join('')}  esac
}

complete -F _thresher thresher
`;
}

const valueBranches = (tree: CommandNode) => (node: CommandNode) =>
  node === tree
    ? []
    : node.options
        .filter(({ value }) => value !== undefined)
        .map((option) => branch(`${quoted(`${node.path}:`)}${pattern(option)}`, completerOf(option)));

/** Options after a dash; otherwise subcommands, or the command's argument. */
function wordCompleter(node: CommandNode, tree: CommandNode): string {
  const options = namesOf([...node.options, ...(node === tree ? [] : tree.options)]);
  const dashed = `_thresher_words ${[...new Set(options)].join(' ')}`;
  const [first] = node.arguments;
  const words = node.commands.map(({ name }) => name);
  const plain =
    words.length > 0
      ? `_thresher_words ${words.join(' ')}`
      : first === undefined
        ? ':'
        : completerOf({ ...first, value: first.name });
  return `if [[ $cur == -* ]]; then ${dashed}; else ${plain}; fi`;
}

function completerOf({ value, choices }: Pick<OptionNode, 'value' | 'choices'>): string {
  if (choices.length > 0) return `_thresher_words ${choices.join(' ')}`;
  return byValue[value ?? ''] ?? ':';
}

const branch = (when: string, what: string): string => `    ${when}) ${what} ;;\n`;

const quoted = (text: string): string => `'${text}'`;

function namesOf(options: readonly OptionNode[]): string[] {
  return options.flatMap(({ names }) => names);
}

function pattern({ names }: OptionNode): string {
  return names.length === 1 ? (names[0] ?? '') : `@(${names.join('|')})`;
}

function alternatives(words: readonly string[]): string {
  return [...new Set(words)].map(quoted).join(' | ');
}
