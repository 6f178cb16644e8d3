import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Json = Record<string, unknown>;

describe('check-config of an HTCondor queue', () => {
  let directory: string;

  beforeEach(() => {
    directory = temporaryDirectory();
    writeFileSync(join(directory, 'thresher.yaml'), 'master: { stateDir: state }\n');
  });

  /** State and lines of the queue, without the directory, which is another one every time. */
  async function check(template: string, options: Json = {}): Promise<string[]> {
    writeFileSync(join(directory, 'pilot.sdf'), template);
    const section = { name: 'HTCondorSubmitter', module: 'thresher/htcondor', templateFile: 'pilot.sdf' };
    const queue = {
      maxWorkers: 1,
      mapType: 'NoJob',
      demand: 'fill',
      submitter: { ...section, ...options },
      monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
      sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
    };
    writeFileSync(join(directory, 'panda_queueconfig.json'), JSON.stringify({ Q: queue }));
    const { stdout } = await runHere('--config', join(directory, 'thresher.yaml'), 'check-config', 'Q');
    const text = stdout
      .replaceAll(`${directory}/`, '')
      .replaceAll(`${relative(process.cwd(), directory)}/`, '');
    const lines = text.trimEnd().split('\n').slice(0, -1);
    return lines.map((line) => line.trim().replace(/ {2,}/g, ' '));
  }

  it('is content with a missing executableFile that its template never names', async () => {
    const template = 'executable = /bin/true\n';
    expect(await check(template, { executableFile: 'gone.sh' })).to.deep.equal(['Q ready']);
    const onNode = 'executable = {executableFile}\ntransfer_executable = false\n';
    expect(await check(onNode, { executableFile: '/cvmfs/atlas/pilot.sh' })).to.deep.equal(['Q ready']);
  });

  it('names the executableFile that its template uses and that is missing', async () => {
    const [state, line] = await check('executable = {executableFile}\n', { executableFile: 'gone.sh' });
    expect(state).to.equal('Q incomplete');
    expect(line).to.match(
      /\/Q\/submitter\/executableFile: error: the file gone\.sh of executableFile does not exist: put it there, or name the right one \[file-unreadable\]$/,
    );
  });

  it('names the program that its template itself says and that is missing, with the line', async () => {
    const program = join(directory, 'bin/pilot.sh');
    const template = `universe = vanilla\nexecutable = ${program}\n`;
    expect(await check(template)).to.deep.equal([
      'Q incomplete',
      'pilot.sdf:2: error: the executable bin/pilot.sh does not exist: put it there, or name the right one [file-unreadable]',
    ]);
    mkdirSync(join(directory, 'bin'));
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
    expect(await check(template)).to.deep.equal(['Q ready']);
    expect(await check(`executable = ${join(directory, 'bin')}\n`)).to.deep.equal([
      'Q refused',
      'pilot.sdf:1: error: the executable bin is a directory; it must be a file [wrong-type]',
    ]);
  });

  it('check-config reports a relative program, which condor_submit would look for in the wrong directory', async () => {
    writeFileSync(join(directory, 'pilot.sh'), '#!/bin/sh\n', { mode: 0o755 });
    const [state, line] = await check('executable = pilot.sh\n');
    expect(state).to.equal('Q refused');
    expect(line).to.contain('pilot.sdf:1: error: the executable pilot.sh has no absolute path');
    expect(line).to.match(/write the whole path \[template-wrong\]$/);
  });

  it('check-config only warns of a missing program that a branch of its template may leave out', async () => {
    const [state, line] = await check('if defined X\nexecutable = /none/pilot.sh\nendif\n');
    expect(state).to.equal('Q ready');
    expect(line).to.contain('pilot.sdf:2: warning: the executable /none/pilot.sh does not exist');
  });

  it('names each file that its template takes from an option of the queue which is not there', async () => {
    const template = 'executable = {executableFile}\n\nx509userproxy = {x509UserProxy}\n';
    expect(await check(template)).to.deep.equal([
      'Q incomplete',
      'panda_queueconfig.json:1 /Q/submitter/executableFile: error: pilot.sdf:1: executable names executableFile, and the queue has no executableFile, so that HTCondor would look for a file "None" and refuse or hold every job: set executableFile, or remove the line [file-not-said]',
      'panda_queueconfig.json:1 /Q/submitter/x509UserProxy: error: pilot.sdf:3: x509userproxy names x509UserProxy, and the queue has no x509UserProxy, so that HTCondor would look for a file "None" and refuse or hold every job: set x509UserProxy (Harvester takes X509_USER_PROXY of its environment), or remove the line [file-not-said]',
    ]);
  });

  it('refuses a grid type that HTCondor dropped, also by ceARCGridType', async () => {
    const template =
      'executable = /bin/true\nuniverse = grid\ngrid_resource = {ceARCGridType} {ceEndpoint}\n';
    const ce = { ceEndpoint: 'ce.site:2811' };
    expect(await check(template, ce)).to.deep.equal(['Q ready']);
    const [state, line] = await check(template, { ...ce, ceARCGridType: 'nordugrid' });
    expect(state).to.equal('Q refused');
    expect(line).to.match(
      /^pilot\.sdf:3: error: HTCondor dropped the grid type nordugrid in 9\.3\.0 .*\[template-wrong\]$/,
    );
  });

  describe('with variables of the environment in its template', () => {
    const own = { THRESHER_TEST_SITE: 'CERN', THRESHER_TEST_TOKEN: 'hunter2' };
    before(() => Object.assign(process.env, own));
    after(() => {
      for (const name of Object.keys(own)) Reflect.deleteProperty(process.env, name);
    });

    it('check-config names the variables of a template that are passed and those that are not set', async () => {
      const template =
        'executable = /bin/true\n+Site = "$ENV(THRESHER_TEST_SITE)"\n+None = "$ENV(THRESHER_TEST_NONE)"\n';
      const [state, unset, passed] = await check(template);
      expect(state).to.equal('Q ready');
      expect(unset).to.match(/^pilot\.sdf:3: warning: the variable THRESHER_TEST_NONE is not set here/);
      expect(passed).to.match(
        /^pilot\.sdf:2: notice: the variable THRESHER_TEST_SITE of the daemon's environment is passed to condor_submit \[variable-passed\]$/,
      );
    });

    it('check-config refuses a queue whose template names a secret variable, and does not show the secret', async () => {
      const lines = await check('executable = /bin/true\nenvironment = "T=$ENV(THRESHER_TEST_TOKEN)"\n');
      expect(lines[0]).to.equal('Q refused');
      expect(lines[1]).to.match(
        /^pilot\.sdf:2: error: the variable THRESHER_TEST_TOKEN is called as a token is/,
      );
      expect(lines.join()).to.not.contain('hunter2');
    });
  });
});
