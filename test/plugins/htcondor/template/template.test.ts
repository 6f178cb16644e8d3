import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { identityText } from '../../../../src/plugins/htcondor/marks.ts';
import { describeBatch, type DescribeOptions } from '../../../../src/plugins/htcondor/template/describe.ts';
import { parseFormat } from '../../../../src/plugins/htcondor/template/pieces.ts';
import { type LackedValue, lackedValues } from '../../../../src/plugins/htcondor/template/checks.ts';
import { knownPlaceholders, valuesOf } from '../../../../src/plugins/htcondor/template/placeholders.ts';
import { loadTemplate, parseTemplate } from '../../../../src/plugins/htcondor/template/template.ts';
import { templateFiles } from '../../../../src/plugins/htcondor/template/which-file.ts';
import type { Worker, WorkerToStart } from '../../../../src/worker/worker.ts';
import { batchOptions, ce, submitterConfig, templateOf } from '../../../support/htcondor-batch.ts';
import { files } from '../../../support/operator-files.ts';
import { requirements, workerOf } from '../../../support/samples.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const root = join(import.meta.dirname, '../../../..');
const full = submitterConfig({
  executableFile: '/w.sh',
  x509UserProxy: '/p',
  tokenDir: '/t',
  pandaTokenDir: '/pt',
  pandaTokenFilename: 'f',
  pandaTokenKeyPath: '/k/key',
});

/** "line code: message" of what is said of a template. */
function findings(text: string, file = 'pilot.sdf', config = full): string[] {
  const loaded = parseTemplate(text, file, config);
  const problems = loaded.ok ? loaded.warnings : loaded.problems;
  return problems.map(({ line, code, message }) => `${line ?? 0} ${code}: ${message}`);
}

const body = 'executable = {executableFile}\n';

describe('the grid type of a submit template', () => {
  const grid = (resource: string) => `universe = grid\n${body}grid_resource = ${resource}\n`;

  for (const [type, release] of [
    ...[['gt2', '9.0.2'] as const, ['gt5', '9.0.2'] as const, ['cream', '9.0.0'] as const],
    ...[['unicore', '9.0.0'] as const, ['nordugrid', '9.3.0'] as const, ['gt4', 'long ago'] as const],
  ])
    it(`is named with the release of HTCondor that dropped it where it is ${type}`, () => {
      const [first, ...others] = findings(grid(`${type} {ceHostname}`));
      expect(others).to.deep.equal([]);
      expect(first).to.match(/^3 template-wrong: HTCondor dropped the grid type /);
      expect(first).to.contain(`${type} `).and.to.contain(release);
    });

  for (const [what, type, named] of [
    ['gone for long', 'naregi', 'naregi'],
    ['none', 'None', 'None'],
    ['misspelt', 'condr', 'condr'],
    ['a host', 'ce.site', undefined],
  ] as const)
    it(`is an error where it is ${what}, as far as it is a word`, () => {
      const found = findings(grid(`${type} {ceHostname}`));
      expect(found).to.have.length(named === undefined ? 0 : 1);
      if (named !== undefined)
        expect(found[0])
          .to.match(/^3 template-wrong: .*\bone of condor, batch, arc/)
          .and.contain(named);
    });

  it('is not known behind a placeholder or a macro, and may count for no job between "if" and "endif"', () => {
    for (const type of ['{ceFlavour}', '{queueName}gt2', '$(TYPE)']) {
      expect(findings(grid(`${type} {ceHostname}`))).to.deep.equal([]);
    }
    const branch = `universe = grid\n${body}if version < 9.0\ngrid_resource = gt2 a\nendif\n`;
    expect(findings(branch).join()).to.match(/^4 template-risky: HTCondor dropped the grid type gt2/);
  });

  for (const type of ['condor', 'arc', 'batch', 'pbs', 'ec2'])
    it(`is taken where it is ${type}`, () => {
      expect(findings(grid(`${type} {ceHostname} x`))).to.deep.equal([]);
    });

  it('is that of ceARCGridType where the template names it', () => {
    const of = (ceARCGridType: 'arc' | 'nordugrid') =>
      findings(grid('{ceARCGridType} {ceEndpoint}'), 'pilot.sdf', { ...full, ceARCGridType });
    expect(of('arc')).to.deep.equal([]);
    expect(of('nordugrid').join()).to.match(/dropped the grid type nordugrid in 9\.3\.0 .*; write arc/);
  });
});

describe('a submit template', () => {
  for (const folder of ['test/fixtures/harvester', 'test/fixtures/sites', 'templates/htcondor']) {
    for (const name of readdirSync(join(root, folder)).filter((name) => /\.(sdf|yaml)$/.test(name))) {
      it(`of ${folder}/${name} is taken as it is`, async () => {
        const loaded = await loadTemplate(files, join(root, folder, name), full);
        expect(loaded.ok ? [] : loaded.problems).to.deep.equal([]);
      });
    }
  }

  for (const [what, text, expected] of [
    [
      'an unknown placeholder',
      `${body}x = 1\n+a = "{workerId}"\n`,
      /^3 unknown-placeholder: "\{workerId\}" is not a placeholder; did you mean "workerID"\?/,
    ],
    [
      'a brace that is never closed',
      `${body}+a = "{workerID"\n`,
      /^2 template-wrong: the "\{" at column 2 is never closed/,
    ],
    [
      'a brace that closes nothing',
      `${body}+a = "workerID}"\n`,
      /^2 template-wrong: a "\}" at column 10 closes nothing/,
    ],
    [
      'an expression of Python',
      `${body}+a = "{workerID.real}"\n`,
      /^2 template-wrong: "\{workerID\.real\}" is no placeholder/,
    ],
    ['several jobs', `${body}queue 5\n`, /^2 template-wrong: "queue 5" would make other jobs/],
    ['jobs from a list', `${body}queue x from a.txt\n`, /^2 template-wrong: "queue x from a.txt"/],
    ['a second queue', `${body}queue 1\nqueue 1\n`, /^3 template-wrong: there is a queue already on line 2/],
    [
      'commands behind the queue',
      `${body}queue\n+a = 1\n`,
      /^3 template-wrong: this stands behind the queue of line 2/,
    ],
    [
      'what is no command',
      `${body}include : /etc/passwd\n`,
      /^2 template-wrong: "include : \/etc\/passwd" is no command/,
    ],
    [
      "the factory's log",
      `${body}dagman_log = /x\n`,
      /^2 template-wrong: dagman_log: it is the log by which/,
    ],
    ["the factory's mark", `${body}+thresherFactory = "other"\n`, /^2 template-wrong: \+thresherFactory/],
    ['a job on hold', `${body}hold = True\n`, /^2 template-wrong: hold: the job would wait/],
    ['several starts', `${body}max_retries = 3\n`, /^2 template-risky: max_retries/],
    [
      'tokens for which a person may be asked',
      `${body}use_oauth_services = vault\n`,
      /^2 template-risky: use_oauth_services: .* may wait for a person at a terminal/,
    ],
    ['jobs that come later', `${body}max_materialize = 3\n`, /^2 template-wrong: max_materialize/],
    [
      'a universe of another kind',
      `${body}universe = java\n`,
      /^2 template-wrong: universe is java; it must be one of vanilla/,
    ],
    [
      'a grid job without its CE',
      `${body}universe = grid\n`,
      /^2 template-wrong: universe grid needs grid_resource/,
    ],
    [
      'a container without an image',
      `${body}universe = container\n`,
      /^2 template-wrong: universe container needs container_image/,
    ],
    [
      'no executable',
      'arguments = x\n',
      /^1 template-wrong: there is no executable; write executable = \{executableFile\}/,
    ],
    ['an executable without a value', 'executable =\n', /^1 template-wrong: executable has no value; write/],
    [
      'a grid job with an empty CE',
      `${body}universe = grid\ngrid_resource =\n`,
      /^3 template-wrong: universe grid needs grid_resource/,
    ],
    [
      'a container with an empty image',
      `${body}universe = container\ncontainer_image =\n`,
      /^3 template-wrong: universe container needs container_image/,
    ],
    [
      'docker without an image',
      `${body}universe = docker\n`,
      /^2 template-wrong: universe docker needs docker_image/,
    ],
    [
      'a proxy that only the environment names',
      `${body}use_x509userproxy = true\nx509userproxy =\n`,
      /^2 template-risky: use_x509userproxy without x509userproxy: condor_submit takes the proxy of X509_USER_PROXY/,
    ],
    [
      'a token that only the environment names',
      `${body}use_scitokens = true\n`,
      /^2 template-risky: use_scitokens without scitokens_file: condor_submit takes the file of BEARER_TOKEN_FILE/,
    ],
    [
      'attributes in a value',
      `${body}+a = {customSubmitAttributes}\n`,
      /^2 template-wrong: customSubmitAttributes stands for whole lines/,
    ],
    ['a mistake behind a continued line', `${body}a = b \\\n  c\n+d = {no}\n`, /^4 unknown-placeholder/],
    [
      'output that is never transferred',
      `${body}should_transfer_files = NO\nwhen_to_transfer_output = ON_EXIT\n`,
      /^3 template-risky: when_to_transfer_output/,
    ],
  ] as const) {
    it(`with ${what} is found out, with its line`, () => {
      const found = findings(text);
      expect(found).to.have.length(1);
      expect(found[0]).to.match(expected);
    });
  }

  for (const [what, text, expected] of [
    ['a queue', 'executable: a\nqueue: 1\n', /^2 template-wrong: queue: thresher writes/],
    [
      'an unknown placeholder in a list',
      'executable: a\narguments:\n  - -x\n  - ${no}\n',
      /^4 unknown-placeholder: "\$\{no\}"/,
    ],
    ['an open placeholder', 'executable: a\nlog: ${logDir\n', /^2 template-wrong: "\$\{logDir/],
    ['a map for a value', 'executable: a\nlog: {a: 1}\n', /^2 template-wrong: log is \{"a":1\}/],
    ['several lines', 'executable: a\nlog: "a\\nqueue 5"\n', /^2 template-wrong: log has several lines/],
    [
      'a name that is none',
      'executable: a\nattributes:\n  "a b": 1\n',
      /^3 template-wrong: "a b" is no name/,
    ],
    [
      'a command that is none',
      'executable: a\n"queue 5": 1\n',
      /^2 template-wrong: "queue 5" is no name of a command/,
    ],
    ['a list for all', '- a\n', /^1 template-wrong: it is a list/],
    ['a key twice', 'executable: a\nexecutable: b\n', /^2 syntax: not valid YAML/],
    ['nothing', '', /^1 template-wrong: there is no executable; write executable: \$\{executableFile\}/],
  ] as const) {
    it(`in YAML with ${what} is found out, with its line`, () => {
      const found = findings(text, 'pilot.yaml');
      expect(found).to.have.length(1);
      expect(found[0]).to.match(expected);
    });
  }

  it('that is not there says so', async () => {
    const loaded = await loadTemplate(files, '/none/pilot.sdf', full);
    expect(loaded.ok ? '' : loaded.problems[0]?.code).to.equal('file-unreadable');
    const file = join(temporaryDirectory(), 'latin.sdf');
    writeFileSync(file, Buffer.from([0x61, 0x0a, 0xe9]));
    const latin = await loadTemplate(files, file, full);
    expect(latin.ok ? '' : latin.problems[0]?.message).to.match(/UTF-8/);
  });

  it('warns where an option is not set, and Harvester would write None', () => {
    const found = findings(
      `${body}environment = "TOKEN={pandaTokenPath}"\n`,
      'a.sdf',
      submitterConfig({ executableFile: '/w' }),
    );
    expect(found).to.have.length(1);
    expect(found[0]).to.match(
      /^2 template-risky: pandaTokenPath in environment has no value and becomes "None"/,
    );
  });

  it('says nothing of comments, whatever is in them', () => {
    expect(findings(`# {no} {\n#queue 7\n${body}#+a = {b}\nqueue 1\n`)).to.deep.equal([]);
  });
});

describe('a value that a template needs and its queue does not say', () => {
  const lacked = (text: string, options: object = {}): LackedValue[] => {
    const config = submitterConfig(options);
    return lackedValues(templateOf(text, 'pilot.sdf', config).statements, config);
  };
  const said = (text: string, options: object = {}) =>
    lacked(text, options).map(({ line, code, option }) => `${line} ${code} ${option}`);

  for (const [command, placeholder, option] of [
    ['x509userproxy', 'x509UserProxy', 'x509UserProxy'],
    ['X509UserProxy', 'x509UserProxy', 'x509UserProxy'],
    ['scitokens_file', 'tokenPath', 'tokenDir'],
    ['transfer_input_files', 'pandaTokenKeyPath', 'pandaTokenKeyPath'],
    ['TransferInputFiles', 'pandaTokenKeyPath', 'pandaTokenKeyPath'],
    ['input', 'executableFile', 'executableFile'],
    ['container_image', 'executableFile', 'executableFile'],
  ] as const)
    it(`is the file of ${command}, by the option`, () => {
      const text = `executable = /bin/sh\n${command} = {${placeholder}}\n`;
      expect(said(text)).to.deep.equal([`2 file-not-said ${option}`]);
      expect(lacked(text)[0]).to.include({ certain: true });
      expect(lacked(text)[0]?.message).to.contain(command).and.to.contain(`set ${option}`);
      expect(said(text, { [option]: '/there' })).to.deep.equal([]);
      // A later command of the same name counts instead.
      expect(said(`${text}${command} = /file\n`)).to.deep.equal([]);
      expect(lacked(`if true\n${text}endif\n`)[0]).to.include({ certain: false });
    });

  it('is the program, wherever it is', () => {
    expect(said(body)).to.deep.equal(['1 file-not-said executableFile']);
    expect(said(`${body}transfer_executable = false\n`)).to.deep.equal(['1 file-not-said executableFile']);
  });

  it('is no file of arguments and environment, which may well be none', () => {
    expect(said('executable = /bin/sh\narguments = {x509UserProxy}\n')).to.deep.equal([]);
  });

  it('is not the proxy where the queue has one for analysis', () => {
    const text = 'executable = /bin/sh\nx509userproxy = {x509UserProxy}\n';
    const analysis = { x509UserProxyAnalysis: '/a' };
    expect(said(text, { ...analysis, useAnalysisCredentials: true })).to.deep.equal([]);
    expect(said(text, analysis)).to.deep.equal(['2 file-not-said x509UserProxy']);
    expect(
      findings(text, 'a.sdf', submitterConfig({ ...analysis, useAnalysisCredentials: true })),
    ).to.deep.equal([]);
  });

  it('may be there where HTCondor transfers files only if it has to', () => {
    const text =
      'executable = /bin/sh\ntransfer_input_files = {tokenPath}\nshould_transfer_files = IF_NEEDED\n';
    expect(lacked(text)[0]).to.include({ certain: false });
  });

  it('is the CE of a grid job, unless CRIC is to name it', () => {
    const text = (resource: string) => `executable = /bin/sh\nuniverse = grid\ngrid_resource = ${resource}\n`;
    const both = text('condor {ceHostname} {ceEndpoint}');
    const missing = ['3 ce-list-missing ceList'];
    expect(said(both)).to.deep.equal(missing);
    expect(said(text('{ceARCGridType} {ceEndpoint}'))).to.deep.equal(missing);
    expect(said(text('arc {ceEndpoint}'), { ceHostname: 'ce' })).to.deep.equal(missing);
    expect(said(text('condor {ceHostname} {ceHostname}:9619'), { ceHostname: 'ce' })).to.deep.equal([]);
    expect(said(both, { ceEndpoint: 'ce:9619' })).to.deep.equal([]);
    expect(said(both, { ceList: [{ ce_endpoint: 'ce', ce_flavour: 'htcondor-ce' }] })).to.deep.equal([]);
    expect(said(both, { useCRICGridCE: true })).to.deep.equal([]);
    expect(said(text('condor here pool'))).to.deep.equal([]);
  });
});

describe('the file of a template', () => {
  const dir = { CEtemplateDir: '/t' };

  for (const [what, options, chosen, expected] of [
    ['the one of the queue', { templateFile: '/a.sdf', ...dir }, ce, ['/a.sdf']],
    ["the one for the CE's kind", dir, ce, ['/t/htcondor-ce.sdf', '/t/htcondor-ce.yaml']],
    [
      'the one for ARC',
      dir,
      { ...ce, flavour: 'arc-ce', gridType: 'arc' },
      ['/t/arc-ce.sdf', '/t/arc-ce.yaml'],
    ],
    [
      ...(["the one for ARC's gridftp", dir, { ...ce, flavour: 'arc-ce', gridType: 'nordugrid' }] as const),
      ['/t/arc-ce_nordugrid.sdf', '/t/arc-ce_nordugrid.yaml'],
    ],
    ['none without a CE', dir, undefined, []],
  ] as const) {
    it(`is ${what}`, () => {
      expect(templateFiles(options, chosen)).to.deep.equal(expected);
    });
  }
});

describe("Python's str.format", () => {
  const read = (text: string) => {
    const parsed = parseFormat(text);
    return parsed.ok ? parsed.pieces : parsed.problem.message;
  };

  it('knows braces that stand for themselves, conversions and widths', () => {
    expect(read('{{a}}{workerID}{nCore!s}{workerID:05d}')).to.deep.equal([
      '{a}',
      { name: 'workerID' },
      { name: 'nCore' },
      { name: 'workerID', width: { fill: '0', length: 5 } },
    ]);
  });
});

describe('the values of placeholders', () => {
  const values = (
    changes: Partial<Worker['requirements']> = {},
    options: object = {},
    facts: Partial<DescribeOptions> = {},
  ) =>
    valuesOf(
      workerOf(7, { requirements: { ...requirements, ...changes } }),
      batchOptions('/d', { config: submitterConfig(options), ce, ...facts }),
    );

  it('are there for every known one', () => {
    const have = Object.keys(values());
    expect(knownPlaceholders.filter((name) => !have.includes(name))).to.deep.equal([
      'customSubmitAttributes',
    ]);
  });

  it("are Harvester's for sizes: MB, KB, s and minutes", () => {
    expect(values({ nCore: 8, minRamCount: 16_001, maxDiskCount: 20, maxWalltime: 3601 })).to.include({
      nCoreTotal: 8,
      nCorePerNode: 8,
      nNode: 1,
      nCoreFactor: 1,
      requestRam: 16_001,
      requestDisk: 20_480,
      requestRamBytes: 16_001 * 2 ** 20,
      requestRamPerCore: 2001,
      requestRamBytesPerCore: 2_097_283_072,
      requestWalltime: 3601,
      requestWalltimeMinute: 61,
      requestCputime: 28_808,
      requestCputimeMinute: 481,
    });
  });

  it('are the least where nothing is said, and follow nodes and factors', () => {
    expect(values({ nCore: 4, minRamCount: 0, maxDiskCount: 0, maxWalltime: 0 })).to.include({
      requestRam: 4,
      requestDisk: 1,
      requestWalltime: 0,
    });
    expect(values({ nCore: 8 }, { nCorePerNode: 3 })).to.include({ nNode: 3, nCorePerNode: 3 });
    expect(values({ nCore: 8 }, { nCorePerNode: 0 })).to.include({ nNode: 1 });
    expect(values({ nCore: 2, minRamCount: 10 }, { nCoreFactor: 3 })).to.include({
      nCoreTotal: 6,
      requestRam: 30,
      requestRamPerCore: 5,
    });
    const byType = { managed: { MCORE: 2 }, Any: { Undefined: 5 } };
    expect(
      values({ resourceType: 'MCORE' }, { nCoreFactor: byType, unifiedQueue: true }).nCoreFactor,
    ).to.equal(2);
    expect(values({ jobType: 'other' }, { nCoreFactor: byType }).nCoreFactor).to.equal(5);
  });

  for (const [pilotType, expected] of [
    [
      'PR',
      {
        prodSourceLabel: 'managed',
        pilotType: 'PR',
        pilotUrlOption: '',
        pilotDebugOption: '',
        pilotJobLabel: 'unified',
      },
    ],
    [
      'RC',
      { prodSourceLabel: 'rc_test2', pilotType: 'RC', pilotDebugOption: '-d', pilotJobLabel: 'rc_test2' },
    ],
    ['ALRB', { prodSourceLabel: 'rc_alrb', pilotType: 'ALRB', pilotUrlOption: '' }],
    [
      'PT',
      {
        prodSourceLabel: 'ptest',
        pilotType: 'PR',
        pilotUrlOption: '--piloturl http://cern.ch/atlas-panda-pilot/pilot3-dev2.tar.gz',
      },
    ],
    ['constructor', { prodSourceLabel: 'managed', pilotType: 'PR' }],
  ] as const) {
    it(`are Harvester's for pilots of type ${pilotType}`, () => {
      expect(values({ pilotType }, { pilot_version: '3.9.1' })).to.include(expected);
    });
  }

  it('draw the release candidate by its weight', () => {
    const at = (chance: number) =>
      values({}, { rcPilotRandomWeightPermille: 100 }, { random: () => chance }).pilotUrlOption;
    expect(at(0.099)).to.match(/pilot3-rc/);
    expect(at(0.1)).to.equal('');
  });

  it('name the token of a CE by the MD5 of its endpoint, and the directory of the hour', () => {
    // printf ce1.site.org:9619 | md5sum
    const tokenFilename = '5e8eb6952a55999c3dd33becebd9c14e';
    expect(values({}, { tokenDir: '/t' })).to.include({
      tokenFilename,
      tokenPath: `/t/${tokenFilename}`,
      logSubdir: '26-08-31_14',
      ceEndpoint: 'ce1.site.org:9619',
    });
    expect(values().tokenPath).to.equal(null);
  });

  it('take the credentials for analysis where they are there', () => {
    const both = { x509UserProxy: '/p', x509UserProxyAnalysis: '/a', useAnalysisCredentials: true };
    expect(values({}, both).x509UserProxy).to.equal('/a');
    expect(values({}, { ...both, useAnalysisCredentials: false }).x509UserProxy).to.equal('/p');
  });
});

describe('the submit description of a batch', () => {
  const describeText = (text: string, workers: readonly Worker[], changes: Partial<DescribeOptions> = {}) =>
    describeBatch(templateOf(text), workers, batchOptions('/d', changes));

  it('says once what is the same, and by a row for each worker what is not', () => {
    const { description, workers } = describeText(
      `${body}+a = "{computingSite}"\n+w = {workerID}\nqueue 1\n`,
      [workerOf(1), workerOf(2)],
    );
    expect(description.split('\n')).to.deep.equal([
      'executable = /d/wrapper.sh',
      '+a = "Q"',
      '+w = $(thresherV0)',
      '+thresherFactory = "thresher-test"',
      '+harvesterID = "CERN_test"',
      '+harvesterWorkerID = "$(thresherWorker)"',
      '+thresherIdentity = "$(thresherIdentity)"',
      'queue thresherWorker,thresherV0,thresherIdentity from (',
      ...[1, 2].map((id) => `${id},${id},${identityText(workerOf(id)).replaceAll('"', '\\"')}`),
      ')',
      '',
    ]);
    expect(workers.map(({ workerId }) => workerId)).to.deep.equal([1, 2]);
  });

  it('has a row in which nothing divides a value, and a macro for what uses those of HTCondor', () => {
    const { description } = describeText(
      `${body}+a = "{workerID}, {workerID}"\noutput = $CHOICE(0, x, y)/{workerID}\nlog = $(Cluster).{workerID}\nqueue 1\n`,
      [workerOf(1), workerOf(2)],
    );
    const lines = description.split('\n');
    expect(lines).to.include.members([
      '+a = $(thresherV0)',
      'output = $(thresherV1W$(thresherWorker))',
      'thresherComma = ,',
      'thresherV1W2 = $CHOICE(0, x, y)/2',
      'log = $(thresherV2)',
      'queue thresherWorker,thresherV0,thresherV2,thresherIdentity from (',
    ]);
    expect(lines.find((line) => line.startsWith('2,'))).to.match(
      /^2,"2\$\(thresherComma\)\$\(thresherBlank\)2",\$\(Cluster\)\.2,\{/,
    );
  });

  it('leaves out a worker whose value cannot be written, and not the others', () => {
    const evil = ['a\nqueue 100', 'x$$(y)', 'a$(DOLLAR)', 'a\u0000', 'a\rb', 'a\u2028b'];
    for (const computingSite of evil) {
      const { workers, rejected } = describeText(`${body}+a = "{computingSite}"\n`, [
        workerOf(1),
        workerOf(2, { computingSite }),
      ]);
      expect(workers.map(({ workerId }) => workerId)).to.deep.equal([1]);
      expect(rejected.get(2)?.code).to.equal('htcondor-value');
    }
  });

  it('refuses what would end an expression, a list or a line', () => {
    for (const [line, computingSite] of [
      ['requirements = Site == {computingSite}', 'a || true'],
      ['transfer_input_files = {computingSite}', 'a,/etc/passwd'],
      ['accounting_group = {computingSite}', 'a\\'],
      ['+a = "{computingSite}"', 'a\\'],
      ['arguments = -s {computingSite}', 'a --other'],
      ['environment = SITE={computingSite}', 'a;LD_PRELOAD=b'],
    ] as const) {
      expect(describeText(`${body}${line}\n`, [workerOf(1, { computingSite })]).rejected.size, line).to.equal(
        1,
      );
    }
  });

  it('is empty where no worker is left', () => {
    expect(describeText(body, []).description).to.equal('');
  });

  it('keeps macros that the template names alive in gtag', () => {
    const config = submitterConfig({
      executableFile: '/w',
      logBaseURL: 'https://$hostname/[ScheddHostname]/${harvester_id}',
      logDir: '/l',
    });
    const text = `${body}output = {logDir}/{workerID}.$(Cluster).$(Process).out\nenvironment = "GTAG={gtag}"\n`;
    const { description } = describeText(text, [workerOf(5)], {
      config,
      submissionHost: 'x@ap.org:9618,pool',
    });
    expect(description).to.contain(
      'environment = "GTAG=https://here/ap.org/CERN_test/26-08-31_14/5.$(Cluster).$(Process).out"',
    );
  });

  it("has the queue's own group, image, GPUs and attributes, where the template does not say", () => {
    const config = submitterConfig({
      accounting_group: 'g',
      requestGpus: 2,
      container_image: 'docker://a',
      customSubmitAttributes: { Team: '"x"', n: 1 },
    });
    const template = templateOf('universe: container\nexecutable: /w\nrequest_cpus: 3\n', 'a.yaml', config);
    const { description } = describeBatch(template, [workerOf(1)], batchOptions('/d', { config }));
    for (const line of [
      'accounting_group = g',
      'request_gpus = 2',
      'container_image = docker://a',
      '+Team = "x"',
      '+n = 1',
      'request_cpus = 3',
    ]) {
      expect(description.split('\n')).to.include(line);
    }
    expect(description.match(/request_cpus/g)).to.have.length(1);
  });

  describe('of a worker that asks for more than one job may', () => {
    const much = [2 ** 31, 3e9, Number.MAX_SAFE_INTEGER];
    const yaml = 'executable: /w\n';
    const sdf = `${body}request_cpus = {nCoreTotal}\nrequest_memory = {requestRam}\nqueue\n`;
    const refusalsOf = (text: string, changes: Partial<WorkerToStart>, options: object = {}) => {
      const config = submitterConfig({ executableFile: '/w', ...options });
      const template = templateOf(text, text.includes('=') ? 'a.sdf' : 'a.yaml', config);
      const workers = [
        { ...workerOf(1), ...changes },
        { ...workerOf(2), payload: { values: { n: '2' } } },
      ];
      const { rejected, description } = describeBatch(template, workers, batchOptions('/d', { config }));
      expect(description).to.not.match(/2147483648|3000000000|3e9|9007199254740991/);
      expect([...rejected.values()].map(({ code }) => code)).to.include('htcondor-value');
      return [...rejected].map(([id, { message }]) => `${id} ${message}`);
    };

    for (const number of much) {
      for (const [need, what] of [
        ['nCore', `cores: nCore is ${number} of the worker`],
        ['minRamCount', `MiB of memory: minRamCount is ${number} of the worker`],
        ['maxDiskCount', `KiB of disk: maxDiskCount is ${number} MB of the worker`],
      ] as const)
        it(`refuses this worker alone: ${need} ${number}`, () => {
          for (const text of [yaml, sdf]) {
            const said = refusalsOf(text, { requirements: { ...requirements, [need]: number } });
            expect(said).to.have.length(1);
            expect(said[0])
              .to.match(/^1 a job of HTCondor may ask for at most /)
              .and.to.include(what);
          }
        });

      it(`refuses the workers of the queue that says it: ${number}`, () => {
        for (const [options, what] of [
          [{ nCorePerNode: number }, `nCorePerNode is ${number}`],
          [
            { nCoreFactor: number },
            `nCore is 1 of the worker, by its request, its queue file or CRIC, times`,
          ],
          [{ requestGpus: number }, `requestGpus is ${number}`],
          [{ customSubmitAttributes: { RequestCpus: number } }, `its value is "${number}"`],
          [{ customSubmitAttributes: { requestcpus: `ifThenElse(true, ${number}, 1)` } }, 'its value is'],
          [{ customSubmitAttributes: { RequestMemory: number } }, `its value is "${number}"`],
        ] as const) {
          const said = refusalsOf(yaml, {}, options);
          expect(said, what).to.have.length(2);
          for (const one of said) expect(one).to.include(what);
        }
      });

      it(`refuses it in a line of the template, as from a value of its payload: ${number}`, () => {
        expect(refusalsOf(`${body}request_cpus = ${number}\nqueue\n`, {})).to.deep.equal(
          [1, 2].map(
            (id) =>
              `${id} request_cpus of the template: its value is "${number}"; it must be at most 4096, and not negative`,
          ),
        );
        for (const written of [String(number), '3e9', '1 + 3000000000', '-1']) {
          const values = { n: written };
          for (const key of ['request_cpus', '+RequestGpus']) {
            const said = refusalsOf(`${body}${key} = {payload.n}\nqueue\n`, { payload: { values } });
            expect(said, written).to.have.length(1);
          }
        }
      });
    }

    it('keeps memory that an expression asks for by its payload within its range', () => {
      const worker = { ...workerOf(1), payload: { values: { n: '3000000000' } } };
      const template = templateOf(`${body}request_memory = {payload.n} * 2\nqueue\n`);
      expect(describeBatch(template, [worker], batchOptions('/d')).description).to.include(
        'request_memory = min({67108864, max({0, (3000000000 * 2)})})',
      );
    });
  });

  it('asks for memory and disk in YAML only where the queue says them: the default of the pool counts elsewhere', () => {
    const template = templateOf('executable: /w\n', 'a.yaml', submitterConfig());
    const linesFor = (minRamCount: number, maxDiskCount: number) => {
      const worker = workerOf(1, { requirements: { ...requirements, minRamCount, maxDiskCount } });
      const { description } = describeBatch(template, [worker], batchOptions('/d'));
      return description.split('\n').filter((line) => /^request_(memory|disk)/.test(line));
    };
    expect(linesFor(0, 0)).to.deep.equal([]);
    expect(linesFor(2000, 10)).to.deep.equal(['request_memory = 2000', 'request_disk = 10240']);
  });
});
