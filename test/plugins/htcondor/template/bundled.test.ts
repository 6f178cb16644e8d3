import { expect } from 'chai';
import { describeBatch } from '../../../../src/plugins/htcondor/template/describe.ts';
import type { Payload } from '../../../../src/worker/payload.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';
import { batchOptions, submitterConfig, templateOf } from '../../../support/htcondor-batch.ts';
import { workerOf } from '../../../support/samples.ts';

const own: Payload = { argv: ['./run.sh', 'word'] };
const around: Payload = { env: { A: 'b' } };
const wrapper = 'executable = /site/wrapper.sh\n';

function described(
  text: string,
  payload: Payload | undefined,
  options: { file?: string; config?: object } = {},
) {
  const config = submitterConfig({ logDir: '/logs', ...options.config });
  const worker: WorkerToStart = { ...workerOf(7), ...(payload && { payload }) };
  const bundled = payload !== undefined && (payload.argv ?? payload.env) !== undefined;
  return describeBatch(templateOf(text, options.file, config), [worker], {
    ...batchOptions('/logs', { config }),
    ...(bundled && { bundleOf: ({ workerId }) => `/state/${workerId}.1/thresher-payload.sh` }),
  });
}

/** The commands of one key in the description. */
function commands(text: string, payload: Payload | undefined, key: string): string[] {
  const { description, rejected } = described(text, payload);
  expect([...rejected]).to.deep.equal([]);
  const begin = `${key} = `;
  return description
    .split('\n')
    .flatMap((line) => (line.startsWith(begin) ? [line.slice(begin.length)] : []));
}

function refusal(text: string, payload: Payload | undefined) {
  return described(text, payload).rejected.get(7);
}

describe('a submit description with a payload', () => {
  it('is as it was for a worker without one', () => {
    const { description } = described(wrapper, undefined);
    expect(description).to.contain('executable = /site/wrapper.sh').and.not.contain('thresher-payload');
  });

  it("runs the bundle by the machine's own shell, and brings it as a file", () => {
    expect(commands(wrapper, own, 'executable')).to.deep.equal(['/bin/sh']);
    expect(commands(wrapper, own, 'transfer_executable')).to.deep.equal(['false']);
    expect(commands(wrapper, own, 'arguments')).to.deep.equal(['"thresher-payload.sh"']);
    expect(commands(wrapper, own, 'transfer_input_files')).to.deep.equal(['/state/7.1/thresher-payload.sh']);
    expect(commands(wrapper, own, 'should_transfer_files')).to.deep.equal(['YES']);
  });

  it('has no argument and no variable of the payload', () => {
    const { description } = described(wrapper, { argv: ['./run.sh', 'an-argument'], env: { A: 'a-value' } });
    expect(description).to.not.match(/run\.sh|an-argument|a-value/);
  });

  const arguments_: readonly (readonly [what: string, text: string, args: string, inputs: string])[] = [
    ['no arguments', wrapper, '"thresher-payload.sh transferred /site/wrapper.sh "', '/site/wrapper.sh, '],
    [
      'arguments of the new syntax',
      `${wrapper}arguments = "a 'b c' {workerID}"\n`,
      `"thresher-payload.sh transferred /site/wrapper.sh a 'b c' 7"`,
      '/site/wrapper.sh, ',
    ],
    [
      'arguments of the old syntax',
      `${wrapper}args = a \\"b {workerID}\n`,
      'thresher-payload.sh transferred /site/wrapper.sh a \\"b 7',
      '/site/wrapper.sh, ',
    ],
    [
      'a path with blanks and quotes',
      `executable = /a site's/"w"\narguments = "x"\n`,
      `"thresher-payload.sh transferred '/a site''s/""w""' x"`,
      '/a site\'s/"w", ',
    ],
    [
      'a program that is on the machine',
      'executable = /bin/true\ntransfer_executable = False\n',
      '"thresher-payload.sh there /bin/true "',
      '',
    ],
    [
      'a program that is in an image',
      'universe = container\ncontainer_image = sl9\nexecutable = /usr/bin/run\n',
      '"thresher-payload.sh there /usr/bin/run "',
      '',
    ],
    [
      'input files of its own',
      `${wrapper}transfer_input_files = one, /two\n`,
      '"thresher-payload.sh transferred /site/wrapper.sh "',
      'one, /two, /site/wrapper.sh, ',
    ],
    [
      'an empty list of input files',
      `${wrapper}TransferInputFiles = ""\n`,
      '"thresher-payload.sh transferred /site/wrapper.sh "',
      '/site/wrapper.sh, ',
    ],
  ];
  for (const [what, text, args, inputs] of arguments_) {
    it(`runs the template's program behind the bundle: ${what}`, () => {
      expect(commands(text, around, 'arguments')).to.deep.equal([args]);
      expect(commands(text, around, 'transfer_input_files')).to.deep.equal([
        `${inputs}/state/7.1/thresher-payload.sh`,
      ]);
      expect(commands(text, around, 'args')).to.deep.equal([]);
      expect(commands(text, around, 'TransferInputFiles')).to.deep.equal([]);
    });
  }

  it('leaves all else of the template as it is', () => {
    const text = `${wrapper}environment = "A=1"\nrequest_memory = 5\nif version > 8\n+x = 1\nendif\n`;
    const { description } = described(text, own);
    for (const line of ['environment = "A=1"', 'request_memory = 5', '+x = 1'])
      expect(description).to.contain(line);
  });

  it('gives a job for a CE no command that it lacked', () => {
    const grid = `universe = grid\ngrid_resource = condor ce ce:9619\n${wrapper}`;
    expect(commands(grid, own, 'should_transfer_files')).to.deep.equal([]);
    expect(commands(`${grid}should_transfer_files = YES\n`, own, 'should_transfer_files')).to.deep.equal([
      'YES',
    ]);
  });

  const refusals: readonly (readonly [what: string, text: string, payload: Payload, says: RegExp])[] = [
    [
      'transfers nothing',
      `${wrapper}should_transfer_files = NO\n`,
      own,
      /should_transfer_files = NO keeps the payload from the job: write YES/,
    ],
    [
      'has a branch around the program',
      `if version > 8\n${wrapper}endif\n`,
      own,
      /executable on line 2 stands between "if" and "endif"/,
    ],
    [
      'has no program, and neither has the payload',
      'universe = docker\ndocker_image = sl9\n',
      around,
      /it has no executable, and the payload has no argv/,
    ],
    [
      'has an executable with a blank behind old arguments',
      'executable = /a b/c\narguments = x\n',
      around,
      /write arguments = "\.\.\."/,
    ],
  ];
  for (const [what, text, payload, says] of refusals) {
    it(`is refused with a remedy where the template ${what}`, () => {
      expect(refusal(text, payload)).to.have.property('code', 'htcondor-payload');
      expect(refusal(text, payload)?.message).to.match(says);
    });
  }

  it('is refused where HTCondor would divide a path in its list of files', () => {
    const spooled = { config: { useSpool: true } };
    for (const [path, options, says] of [
      ['/a,b', {}, /must have no comma$/],
      ['/a b', spooled, /must have no comma and no blank$/],
    ] as const) {
      const { rejected } = described(`executable = ${path}\n`, around, options);
      expect(rejected.get(7)).to.have.property('code', 'htcondor-payload');
      expect(rejected.get(7)?.message).to.match(says);
      expect([...described(`executable = ${path}\n`, own, options).rejected]).to.deep.equal([]);
    }
  });

  it('lets a payload with its own program into a template without one', () => {
    const docker = 'universe = docker\ndocker_image = {payload.image}\n';
    expect(commands(docker, { ...own, values: { image: 'sl9' } }, 'executable')).to.deep.equal(['/bin/sh']);
    expect(commands(docker, { ...own, values: { image: 'sl9' } }, 'docker_image')).to.deep.equal(['sl9']);
  });

  describe('of values', () => {
    const yaml = 'executable: /w\narguments: ["${payload.word}"]\nattributes: { Word: "${payload.word}" }\n';

    it('fills them in, in submit text and in YAML', () => {
      const payload = { values: { word: 'a "b" $(Cluster)' } };
      expect(commands(`${wrapper}arguments = "'{payload.word}'"\n`, payload, 'arguments')).to.deep.equal([
        `"'a ""b"" $(DOLLAR)(Cluster)'"`,
      ]);
      const { description } = described(yaml, payload, { file: 'pilot.yaml' });
      expect(description).to.contain(`arguments = "'a ""b"" $(DOLLAR)(Cluster)'"`);
      expect(description).to.contain('+Word = "a \\"b\\" $(DOLLAR)(Cluster)"');
    });

    it('refuses a value that HTCondor cannot write, and shows which', () => {
      const { rejected } = described(yaml, { values: { word: 'two\nlines' } }, { file: 'pilot.yaml' });
      expect(rejected.get(7)).to.have.property('code', 'htcondor-value');
      expect(rejected.get(7)?.message).to.contain('"payload.word"');
    });

    it('refuses a worker without the value', () => {
      for (const payload of [undefined, { values: { other: '1' } }]) {
        const { rejected } = described(yaml, payload, { file: 'pilot.yaml' });
        expect(rejected.get(7)).to.have.property('code', 'payload-value-missing');
      }
    });

    it('hole 2: refuses a worker that is to run in an image where the template does not name that as its image', () => {
      const payload = { values: { word: 'centos', image: 'centos' }, image: true };
      const codeOf = (text: string, one: object = payload) => described(text, one).rejected.get(7)?.code;
      expect(codeOf(wrapper)).to.equal('payload-value-missing');
      expect(codeOf(`${wrapper}+Image = "{payload.image}"\n`)).to.equal('payload-value-missing');
      expect(codeOf(`${wrapper}universe = container\ncontainer_image = docker://{payload.image}\n`)).to.equal(
        undefined,
      );
      expect(codeOf(wrapper, { ...payload, image: false })).to.equal(undefined);
    });

    it('hole 1: takes no image or file with a comma, which would be two files', () => {
      const payload = { values: { image: 'a.sif,/etc/passwd' } };
      for (const key of ['container_image', 'ContainerImage', 'transfer_input_files', 'TransferInputFiles'])
        expect(
          described(`${wrapper}${key} = {payload.image}\n`, payload).rejected.get(7)?.message,
          key,
        ).to.contain('has a comma');
    });

    it('hole 1: takes no value with a backslash at its end, also behind blanks', () => {
      for (const word of ['x\\', 'x\\ ', 'x\\\t'])
        expect(
          described(`${wrapper}description = {payload.word}\n`, { values: { word } }).rejected.has(7),
        ).to.equal(true);
    });

    it('knows no other name with a dot', () => {
      for (const name of ['payload.', 'payload.1', 'payloads.x', 'worker.id'])
        expect(() => templateOf(`${wrapper}+x = "{${name}}"\n`), name).to.throw();
    });
  });
});
