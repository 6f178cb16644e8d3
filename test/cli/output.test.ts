import { Writable } from 'node:stream';
import { expect } from 'chai';
import { type Command } from 'commander';
import { realEnvironment } from '../../src/cli/environment.ts';
import { manPage } from '../../src/cli/man-page.ts';
import { printJson, withoutSecrets } from '../../src/cli/output.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { allCommands, commandTree } from '../../src/cli/tree.ts';
import { rememberSecret } from '../../src/util/own-secrets.ts';
import { runHere } from '../support/command-line.ts';

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

describe('JSON of a command', () => {
  it('is JSON also where a number, a name or a text has a secret in it', () => {
    rememberSecret('8402957316');
    const pieces: string[] = [];
    const stream = new Writable({
      write(piece: Buffer, _encoding, done) {
        pieces.push(piece.toString());
        done();
      },
    });
    const rows = [{ id: 8402957316, '8402957316': 'x 8402957316', of: 5 }];
    printJson(withoutSecrets(stream as unknown as NodeJS.WriteStream), rows);
    expect(JSON.parse(pieces.join(''))).to.deep.equal([{ id: '(hidden)', '(hidden)': 'x (hidden)', of: 5 }]);
  });
});

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
      'render',
    ]);
  });

  for (const path of having.filter(([name]) => name !== 'render')) {
    it(`counts before ${path.join(' ')} as it does behind, and the one behind wins`, async () => {
      expect(await outputOf(path, [], [])).to.equal('table');
      expect(await outputOf(path, ['--output', 'json'], [])).to.equal('json');
      expect(await outputOf(path, [], ['--output', 'json'])).to.equal('json');
      expect(await outputOf(path, ['--output', 'json'], ['--output', 'table'])).to.equal('table');
    });
  }

  it("gives render its backend's own format where the command line names none", async () => {
    expect(await outputOf(['render'], [], [])).to.equal(undefined);
  });

  for (const format of ['yaml', 'sdf', 'json']) {
    it(`passes ${format} on to render from either side`, async () => {
      expect(await outputOf(['render'], ['--output', format], [])).to.equal(format);
      expect(await outputOf(['render'], [], ['--output', format])).to.equal(format);
    });
  }

  for (const [command, format, allowed] of [
    ['explain', 'sdf', 'table, json'],
    ['render', 'table', 'yaml, sdf, json'],
  ] as const) {
    it(`names the formats of ${command} where ${command} does not know ${format}`, async () => {
      const { status, stderr } = await runHere('--output', format, command, 'Q');
      expect(status).to.equal(2);
      expect(stderr).to.include(`argument '${format}' is invalid. Allowed choices are ${allowed}. [usage]`);
    });
  }

  it('is refused before a command that prints in one form only', async () => {
    const { status, stderr } = await runHere('--output', 'json', 'man');
    expect(status).to.equal(2);
    expect(stderr).to.include('man has no option --output [usage]');
  });

  it('is told by the man page without formats of its own, and with those of each command', () => {
    const page = manPage(whole);
    const [commands = '', options = ''] = page.split('.SH OPTIONS');
    expect(options)
      .to.include('for every command that has this option; the command says which')
      .and.not.include('table, json');
    expect(commands).to.include('yaml, sdf, json.').and.include('table, json (default: table).');
  });
});
