import { expect } from 'chai';
import { type Command } from 'commander';
import { realEnvironment } from '../../src/cli/environment.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { allCommands, commandTree } from '../../src/cli/tree.ts';

/** Runs a command line up to the action of its command. @returns what `--output` is for it. */
async function outputOf(path: readonly string[], before: string[], behind: string[]): Promise<unknown> {
  const program = await makeProgram(realEnvironment);
  let seen: unknown;
  const command = path.reduce<Command>(
    (parent, name) => parent.commands.find((child) => child.name() === name) ?? parent,
    program,
  );
  const needed = command.registeredArguments.map(() => '1');
  command.action((...args: unknown[]) => {
    seen = (args.at(-2) as { output?: unknown }).output;
  });
  await program.parseAsync([...before, ...path, ...needed, ...behind], { from: 'user' });
  return seen;
}

const whole = commandTree(await makeProgram(realEnvironment));

describe('--output', () => {
  const having = allCommands(whole)
    .filter(
      ({ path, options }) => path !== 'thresher' && options.some(({ names }) => names.includes('--output')),
    )
    .map(({ path }) => path.split(' ').slice(1));

  it('is an option of the commands that show something', () => {
    expect(having.map((path) => path.join(' '))).to.include.members([
      'queues',
      'workers',
      'check-config',
      'explain',
    ]);
  });

  for (const path of having) {
    it(`counts before ${path.join(' ')} as it does behind, and the one behind wins`, async () => {
      expect(await outputOf(path, [], [])).to.equal('table');
      expect(await outputOf(path, ['--output', 'json'], [])).to.equal('json');
      expect(await outputOf(path, [], ['--output', 'json'])).to.equal('json');
      expect(await outputOf(path, ['--output', 'json'], ['--output', 'table'])).to.equal('table');
    });
  }
});
