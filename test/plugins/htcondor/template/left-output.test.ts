import { expect } from 'chai';
import { describeBatch } from '../../../../src/plugins/htcondor/template/describe.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';
import { batchOptions, submitterConfig, templateOf } from '../../../support/htcondor-batch.ts';
import { workerOf } from '../../../support/samples.ts';

const usual = 'executable = /bin/true\noutput = out.1\nerror = err.1\nlog = log.1\n';

function described(
  text: string,
  output: boolean | undefined,
  path = '/state/outputs/7',
  settings: Readonly<Record<string, unknown>> = {},
) {
  const config = submitterConfig({ logDir: '/logs', ...settings });
  const payload = { argv: ['./run.sh'], ...(output !== undefined && { output }) };
  const worker: WorkerToStart = { ...workerOf(7), payload };
  return describeBatch(templateOf(text, undefined, config), [worker], {
    ...batchOptions('/logs', { config }),
    bundleOf: () => '/state/payloads/7.1/thresher-payload.sh',
    outputOf: () => path,
  });
}

function commands(
  text: string,
  output: boolean | undefined,
  key: string,
  settings: Readonly<Record<string, unknown>> = {},
): string[] {
  const { description, rejected } = described(text, output, '/state/outputs/7', settings);
  expect([...rejected]).to.deep.equal([]);
  const begin = `${key} = `;
  return description
    .split('\n')
    .flatMap((line) => (line.startsWith(begin) ? [line.slice(begin.length)] : []));
}

describe('a submit description of a worker that says what it leaves', () => {
  it('is that of the template where the payload says nothing', () => {
    expect(commands(usual, undefined, 'transfer_output_files')).to.deep.equal([]);
    expect(commands(usual, undefined, 'output')).to.deep.equal(['out.1']);
  });

  it('brings nothing back by itself where the worker leaves nothing', () => {
    expect(commands(usual, false, 'transfer_output_files')).to.deep.equal(['""']);
    expect(commands(usual, false, 'transfer_output_remaps')).to.deep.equal([]);
    const listed = `${usual}transfer_output_files = a, b\n`;
    expect(commands(listed, false, 'transfer_output_files')).to.deep.equal(['a, b']);
  });

  for (const output of [false, true])
    it(`has the words of the job in files that go with its worker, ${output ? 'and' : 'without'} an output`, () => {
      expect(commands(usual, output, 'output')).to.deep.equal(['/state/outputs/7.out']);
      expect(commands(usual, output, 'error')).to.deep.equal(['/state/outputs/7.err']);
      expect(commands(usual, output, 'log')).to.deep.equal(['/state/outputs/7.log']);
    });

  it('gives the job of a third party no leave to set attributes while it runs, whatever the template says', () => {
    const key = '+WantDelayedUpdates';
    expect(commands(`${usual}${key} = True\n`, false, key).at(-1)).to.equal('False');
    const pilots = describeBatch(templateOf(usual), [workerOf(7)], batchOptions('/logs'));
    expect(pilots.description).not.to.contain(key);
  });

  it('bounds what the job of a third party brings back, unless the template does', () => {
    const key = 'max_transfer_output_mb';
    expect(commands(usual, false, key)).to.deep.equal(['2000']);
    expect(commands(`${usual}${key} = 50\n`, false, key)).to.deep.equal(['50']);
    expect(commands(`${usual}+MaxTransferOutputMB = 50\n`, false, key)).to.deep.equal([]);
    expect(commands(usual, false, key, { [key]: 0 })).to.deep.equal([]);
    const pilots = describeBatch(templateOf(usual), [workerOf(7)], batchOptions('/logs'));
    expect(pilots.description).not.to.contain(key);
  });

  it('has them also where nothing else is in the payload, so that its job needs no bundle', () => {
    const config = submitterConfig({ logDir: '/logs' });
    const worker: WorkerToStart = { ...workerOf(7), payload: { output: false } };
    const { description } = describeBatch(templateOf(usual, undefined, config), [worker], {
      ...batchOptions('/logs', { config }),
      outputOf: () => '/state/outputs/7',
    });
    expect(description).to.contain('output = /state/outputs/7.out\n');
    expect(description).to.contain('log = /state/outputs/7.log\n');
    expect(description).to.contain('executable = /bin/true\n');
  });

  for (const [what, more, files, remaps] of [
    ['nothing', '', 'thresher-output', 'thresher-output=/state/outputs/7'],
    ['no files', 'transfer_output_files = ""\n', 'thresher-output', 'thresher-output=/state/outputs/7'],
    [
      'files and names for them',
      'transfer_output_files = a, b\ntransfer_output_remaps = "a=/x/a; b=c"\n',
      'a, b, thresher-output',
      'a=/x/a; b=c; thresher-output=/state/outputs/7',
    ],
  ] as const)
    it(`brings the output back beside what the template lists: ${what}`, () => {
      expect(commands(usual + more, true, 'transfer_output_files')).to.deep.equal([files]);
      expect(commands(usual + more, true, 'transfer_output_remaps')).to.deep.equal([`"${remaps}"`]);
    });

  for (const [text, why] of [
    ['output_destination = https://else.where/\n', 'output_destination'],
    ['when_to_transfer_output = NEVER\n', 'write ON_EXIT'],
    ['if true\ntransfer_output_files = a\nendif\n', 'stands between "if" and "endif"'],
  ] as const)
    it(`is refused with ${text.split('\n')[0] ?? ''}`, () => {
      const reason = described(usual + text, true).rejected.get(7);
      expect(reason?.code).to.equal('htcondor-payload');
      expect(reason?.message).to.contain(why);
      expect(described(usual + text, false).rejected.get(7)).to.equal(undefined);
    });

  for (const letter of [';', '=', ',', '"'])
    it(`is refused with a ${letter} in the path of the state directory`, () => {
      const reason = described(usual, true, `/sta${letter}te/7`).rejected.get(7);
      expect(reason?.message).to.contain(`has a ${letter}, at which HTCondor divides`);
    });
});
