import { expect } from 'chai';
import { neededFiles } from '../../../../src/plugins/htcondor/template/executable.ts';
import { neededCases } from '../../../support/condor-executables.ts';
import { templateOf } from '../../../support/htcondor-batch.ts';

const needs = (text: string, file = 'pilot.sdf') =>
  neededFiles(templateOf(text, file).statements).map(({ from, path }) => path ?? from);

describe('the program that condor_submit looks for', () => {
  for (const { what, text, looksFor } of neededCases('/opt/pilot.sh'))
    it(`${looksFor ? 'is looked for' : 'is not looked for'} ${what}`, () => {
      expect(needs(text)).to.deep.equal(looksFor ? ['/opt/pilot.sh'] : []);
    });

  it('is that of the option where the template names the option', () => {
    expect(needs('executable = {executableFile}\n')).to.deep.equal(['executableFile']);
    expect(needs('executable: ${executableFile}\n', 'pilot.yaml')).to.deep.equal(['executableFile']);
    const onNode = 'executable = {executableFile}\ntransfer_executable = false\n';
    expect(needs(onNode)).to.deep.equal([]);
    expect(needs('universe = docker\ndocker_image = a\nexecutable = {executableFile}\n')).to.deep.equal([]);
  });

  it('is not that of the option where the template only writes it into arguments', () => {
    const text = 'executable = /bin/sh\ntransfer_executable = false\narguments = {executableFile}\n';
    expect(needs(text)).to.deep.equal([]);
  });

  it('goes with the files that are transferred', () => {
    const text = 'executable = /bin/sh\ntransfer_input_files = {executableFile}\n';
    expect(needs(text)).to.deep.equal(['/bin/sh', 'executableFile']);
  });

  it('is unknown where macros or other placeholders are in its path', () => {
    expect(needs('dir = /opt\nexecutable = $(dir)/pilot.sh\n')).to.deep.equal([]);
    expect(needs('executable = $ENV(HOME)/pilot.sh\n')).to.deep.equal([]);
    expect(needs('executable = /opt/{queueName}.sh\n')).to.deep.equal([]);
  });

  it('is not certain in a template with branches', () => {
    const text = 'if true\nexecutable = /opt/a.sh\nelse\nexecutable = /opt/b.sh\nendif\n';
    const found = neededFiles(templateOf(text).statements);
    expect(found.map(({ certain }) => certain)).to.deep.equal([false]);
  });
});
