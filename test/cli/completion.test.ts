import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { workerStatuses } from '../../src/worker/status.ts';
import { runHere } from '../support/command-line.ts';
import { program } from '../support/program.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

let script = '';

/** Asks a real bash what it would offer for the last of these words. */
function complete(...words: string[]): string[] {
  const ask = `
    source "$1"
    shift
    compopt() { COMPREPLY=("compopt $*"); }
    COMP_WORDS=("$0" "$@") COMP_CWORD=$#
    _thresher
    printf '%s\\n' "\${COMPREPLY[@]}"
  `;
  const text = execFileSync('bash', ['-euc', ask, program(), script, ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return text.split('\n').filter((line) => line !== '');
}

describe('completion in bash', () => {
  let site: Site;
  let ids: string[];

  before(async () => {
    script = join(temporaryDirectory(), 'completion');
    writeFileSync(script, (await runHere('completion', 'bash')).stdout);
    const queues = ['CERN_PROD', 'CERN_TEST', 'RAL $(touch OOPS)'];
    site = new Site({
      pilot: 'exit 0',
      queues: Object.fromEntries(queues.map((name) => [name, { maxWorkers: 1, nQueueLimitWorker: 1 }])),
    });
    const daemon = site.start();
    await until('there are workers', async () => (await site.workers().catch(() => [])).length > 0);
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    ids = (await site.workers()).map(({ workerID }) => String(workerID));
  });

  after(async () => {
    await site.clean();
  });

  it('offers files where the value is a path with another name', () => {
    expect(complete('submit', 'Q', '--file', '/e')).to.deep.equal(['compopt -o default']);
    expect(complete('submit', 'Q', '--secret-file', '/e')).to.deep.equal(['compopt -o default']);
  });

  it('offers subcommands, also after options of the whole', () => {
    expect(complete('')).to.include.members(['run', 'queues', 'workers', 'completion', 'man']);
    expect(complete('')).not.to.include('__complete');
    expect(complete('q')).to.deep.equal(['queues']);
    expect(complete('--config', '/etc/x.yaml', 'wor')).to.deep.equal(['workers', 'worker']);
    expect(complete('--config', '=', '/etc/x.yaml', 'wor')).to.deep.equal(['workers', 'worker']);
  });

  it('offers the options of a subcommand and of the whole', () => {
    expect(complete('queues', '--')).to.have.members([
      '--output',
      '--help',
      '--config',
      '--state-dir',
      '--version',
    ]);
    expect(complete('logs', '5', '--st')).to.have.members(['--stderr', '--state-dir']);
  });

  it('offers the values of an option, with a space or an equals sign', () => {
    expect(complete('queues', '--output', '')).to.deep.equal(['table', 'json']);
    expect(complete('queues', '--output', '=', 'j')).to.deep.equal(['json']);
    expect(complete('queues', '--output', '=')).to.deep.equal(['table', 'json']);
    expect(complete('render', 'Q', '--output', '')).to.deep.equal(['yaml', 'sdf', 'json']);
    expect(complete('workers', '--status', 'f')).to.deep.equal(['finished', 'failed']);
    expect(complete('workers', '--status', 'running,f')).to.deep.equal([
      'running,finished',
      'running,failed',
    ]);
    expect(complete('kill', '--queue', 'Q', '--status', '')).to.deep.equal([...workerStatuses]);
    expect(complete('completion', '')).to.deep.equal(['bash']);
  });

  it('leaves files and directories to bash, and text to the user', () => {
    expect(complete('--config', '')).to.deep.equal(['compopt -o default']);
    expect(complete('queues', '--state-dir', '')).to.deep.equal(['compopt -o dirnames']);
    expect(complete('workers', '--limit', '')).to.deep.equal([]);
    expect(complete('pause', 'Q', '--reason', '')).to.deep.equal([]);
  });

  it('offers the queues and workers that there are, and carries out nothing that a name says', () => {
    const at = ['--config', site.config];
    expect(complete(...at, 'pause', 'CERN')).to.deep.equal(['CERN_PROD', 'CERN_TEST']);
    expect(complete(...at, 'workers', '--queue', 'CERN_T')).to.deep.equal(['CERN_TEST']);
    expect(complete('--config', '=', site.config, 'drain', 'RAL')).to.deep.equal([
      'RAL\\ \\$\\(touch\\ OOPS\\)',
    ]);
    expect(existsSync(join(process.cwd(), 'OOPS'))).to.equal(false);
    expect(complete(...at, 'worker', '')).to.have.members(ids).and.not.be.empty;
  });

  it('is silent where there is nothing to ask', () => {
    expect(complete('--config', '/nowhere/thresher.yaml', 'pause', '')).to.deep.equal([]);
    expect(complete('nonsense', '')).to.include('run');
  });

  it('is refused for another shell, in one line', async () => {
    const { status, stderr } = await runHere('completion', 'tcsh');
    expect(status).to.equal(2);
    expect(stderr).to.match(/^thresher: [^\n]*'tcsh' is invalid[^\n]*Allowed choices are bash\.[^\n]*\n$/);
  });
});
