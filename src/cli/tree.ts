import type { Command, Option } from 'commander';

/** A subcommand as completion and the man page need it, read from the program itself. */
export interface CommandNode {
  /** "thresher", "thresher queues". */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly ArgumentNode[];
  readonly options: readonly OptionNode[];
  readonly commands: readonly CommandNode[];
}

export interface ArgumentNode {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly variadic: boolean;
  /** It stands behind `--`, after all options. */
  readonly afterDashes: boolean;
  readonly choices: readonly string[];
}

export interface OptionNode {
  /** Its form: "--queue", or "-h" for an option with a short form. */
  readonly names: readonly string[];
  /** Name of its value: "queue", "status,..."; undefined for a flag. */
  readonly value: string | undefined;
  readonly mandatory: boolean;
  readonly description: string;
  readonly choices: readonly string[];
  readonly default: string | undefined;
}

/** The tree of everything that is shown in the help. */
export function commandTree(command: Command, parent?: string): CommandNode {
  const help = command.createHelp();
  const path = parent === undefined ? command.name() : `${parent} ${command.name()}`;
  return {
    path,
    name: command.name(),
    description: command.description(),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      description: argument.description,
      required: argument.required,
      variadic: argument.variadic,
      afterDashes: command.usage().includes(`[-- ${argument.name()}`),
      choices: argument.argChoices ?? [],
    })),
    options: help.visibleOptions(command).map(optionNode),
    commands: help
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .map((child) => commandTree(child, path)),
  };
}

/** A command and all below it, in the order of the help. */
export function allCommands(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(allCommands)];
}

function optionNode(option: Option): OptionNode {
  return {
    names: [option.short, option.long].filter((name) => name !== undefined),
    value: /^[^<[]*[<[](.+)[>\]]$/.exec(option.flags)?.[1],
    mandatory: option.mandatory,
    description: option.description,
    choices: option.argChoices ?? [],
    default: describeDefault(option.defaultValue),
  };
}

function describeDefault(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}
