import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { subcommands } from '../../src/cli/commands.ts';
import { realEnvironment } from '../../src/cli/environment.ts';
import { namedCommand } from '../../src/cli/named-command.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { program } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);

describe('the table of subcommands', () => {
  it('shows each with the arguments and options that its module gives it', async () => {
    const whole = await makeProgram(realEnvironment);
    const names = await makeProgram(realEnvironment, () => false);
    const usages = ({ commands }: typeof whole) =>
      commands.map((one) => `${one.name()} ${one.usage()}`.trim());
    expect(usages(names)).to.deep.equal(usages(whole));
    expect(whole.commands.map((one) => one.name())).to.deep.equal(subcommands.map(({ name }) => name));
  });

  const lines: [argv: string, named: string | undefined][] = [
    ['', undefined],
    ['--help', undefined],
    ['queues --output json', 'queues'],
    ['--config run queues', 'queues'],
    ['--config=run queues', 'queues'],
    ['--state-dir workers --config file worker 7', 'worker'],
    ['--config', undefined],
    ['--output json run --live', 'run'],
    ['workers --queue run', 'workers'],
    ['check-config run', 'check-config'],
  ];
  for (const [argv, named] of lines) {
    it(`finds ${named ?? 'no subcommand'} in "thresher ${argv}"`, () => {
      expect(namedCommand(argv.split(' ').filter((word) => word !== ''))).to.equal(named);
    });
  }

  it('shows the options of a subcommand by `help NAME` as by `NAME --help`', async () => {
    const [{ stdout: asked }, { stdout: own }] = await Promise.all([
      run(program(), ['help', 'workers']),
      run(program(), ['workers', '--help']),
    ]);
    expect(asked).to.contain('--status <status,...>');
    expect(asked).to.equal(own);
  });
});

describe('a command line', () => {
  const version = async (env: NodeJS.ProcessEnv) => {
    const { stdout } = await run(program(), ['version'], { env: { PATH: process.env['PATH'], ...env } });
    expect(stdout).to.match(/^thresher \d/);
  };

  it('imports nothing that only other subcommands need', async () => {
    // Node itself tells what it imports.
    const { stderr } = await run(program(), ['version'], { env: { ...process.env, NODE_DEBUG: 'esm' } });
    expect(stderr).to.match(/version\.[jt]s/);
    for (const dear of ['kysely', 'typebox', 'better-sqlite3', 'fastify', 'winston', 'undici', 'yaml'])
      expect(stderr, dear).not.to.contain(`node_modules/${dear}/`);
  });

  it('keeps what is compiled in a directory of its own user', async () => {
    const HOME = temporaryDirectory();
    await version({ HOME });
    expect(readdirSync(join(HOME, '.cache/thresher/compiled'))).not.to.deep.equal([]);
  });

  it('keeps nothing where others can write, and works all the same', async () => {
    const HOME = temporaryDirectory();
    const directory = join(HOME, '.cache/thresher/compiled');
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o777);
    await version({ HOME });
    expect(readdirSync(directory)).to.deep.equal([]);
  });

  it('works without a home', async () => {
    await version({});
    await version({ HOME: '/proc/nothing' });
    await version({ CACHE_DIRECTORY: '/proc/nothing' });
  });
});
