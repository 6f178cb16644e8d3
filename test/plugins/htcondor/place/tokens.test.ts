import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { tokenFileOf } from '../../../../src/clients/htcondor/ce-endpoint.ts';
import { CeTally } from '../../../../src/plugins/htcondor/place/ce-tally.ts';
import { HTCondorSubmitter } from '../../../../src/plugins/htcondor/submitter.ts';
import { Submission } from '../../../../src/plugins/htcondor/submitting/submission.ts';
import { SubmitTexts } from '../../../../src/plugins/htcondor/submitting/submit-texts.ts';
import { htcondorBackend } from '../../../../src/plugins/htcondor/index.ts';
import type { WorkerToStart } from '../../../../src/plugins/contracts/index.ts';
import { makeJwt } from '../../../support/credentials.ts';
import { submitterConfig } from '../../../support/htcondor-batch.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { pluginContext } from '../../../support/plugin-context.ts';
import { workerOf } from '../../../support/samples.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const now = Date.UTC(2026, 10, 30);
const [one, two] = ['ce1.org:9619', 'ce2.org:9619'];
const template = (lines: string) =>
  `executable = {executableFile}\nuniverse = grid\ngrid_resource = condor {ceHostname} {ceEndpoint}\n${lines}\nqueue\n`;
const withToken = template('use_scitokens = True\nscitokens_file = {tokenPath}');

describe('c13: tokens of computing elements', () => {
  let directory: string;
  const tokenOf = (endpoint: string) => join(directory, 'tokens', tokenFileOf(endpoint));

  beforeEach(() => {
    directory = temporaryDirectory();
    mkdirSync(join(directory, 'tokens'));
    writeFileSync(join(directory, 'wrapper.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(directory, 'ce.sdf'), withToken);
  });

  function give(endpoint: string, expiresIn: number | undefined): void {
    const text = expiresIn === undefined ? 'rubbish' : makeJwt({ exp: now / 1000 + expiresIn });
    writeFileSync(tokenOf(endpoint), text, { mode: 0o600 });
  }

  function partsOf(options: object = {}) {
    const config = submitterConfig({
      templateFile: 'ce.sdf',
      executableFile: 'wrapper.sh',
      logDir: directory,
      tokenDir: 'tokens',
      ceList: [{ ce_endpoint: one }, { ce_endpoint: two }],
      ...options,
    });
    const context = pluginContext({ clock: new ManualClock(now), configDir: directory, stateDir: directory });
    return { config, context, tally: new CeTally(), schedds: [], scheddAt: () => undefined as never };
  }
  const submitter = (options?: object) => new HTCondorSubmitter(partsOf(options));
  const told = async (options?: object) =>
    (await submitter(options).preflight()).problems.map(({ code, message }) => `${code}: ${message}`);

  it('and other files of the template are asked for before each submission, where the queue does not say them', async () => {
    writeFileSync(join(directory, 'ce.sdf'), template('x509userproxy = {x509UserProxy}'));
    const [problem, ...others] = await told();
    expect(others).to.deep.equal([]);
    expect(problem).to.match(
      /^preflight: \S+\/ce\.sdf:4: x509userproxy names x509UserProxy, and the queue has no x509UserProxy/,
    );
  });

  it('of which one must be good stop a queue by their manager', async () => {
    expect(await submitter().credentials()).to.deep.equal([[tokenOf(one), tokenOf(two)]]);
    const proxy = { x509UserProxy: '/proxy' };
    expect(await submitter(proxy).credentials()).to.deep.equal(['/proxy', [tokenOf(one), tokenOf(two)]]);
  });

  it('stop nothing where the template names none, or a computing element needs none', async () => {
    writeFileSync(join(directory, 'ce.sdf'), template('x509userproxy = {x509UserProxy}'));
    expect(await submitter({ x509UserProxy: '/proxy' }).credentials()).to.deep.equal(['/proxy']);
    expect(await told({ x509UserProxy: '/proxy' })).to.deep.equal([]);
    writeFileSync(join(directory, 'arc-ce.sdf'), template('#'));
    writeFileSync(join(directory, 'htcondor-ce.sdf'), withToken);
    const kinds = {
      templateFile: undefined,
      CEtemplateDir: directory,
      ceList: [{ ce_endpoint: one }, { ce_endpoint: 'arc.org', ce_flavour: 'arc-ce' }],
    };
    expect(await submitter(kinds).credentials()).to.deep.equal([]);
    expect(await told(kinds)).to.deep.equal([]);
  });

  it('are watched where no manager keeps them, with that for the PanDA server', () => {
    const [definition] = htcondorBackend;
    const panda = { pandaTokenDir: '/panda', pandaTokenFilename: 'token' };
    const watched = (options: object) => definition?.credentialFiles(partsOf(options).config, directory);
    expect(watched(panda)).to.deep.equal([tokenOf(one), tokenOf(two), '/panda/token']);
    expect(watched({ useAnalysisCredentials: true, tokenDirAnalysis: '/a' })).to.deep.equal(
      [one, two].map((endpoint) => join('/a', tokenFileOf(endpoint))),
    );
    expect(watched({ tokenDir: undefined })).to.deep.equal([]);
  });

  it('for the PanDA server are needed where the template names one', async () => {
    const panda = { pandaTokenDir: '/panda', pandaTokenFilename: 'token', tokenDir: undefined };
    expect(await submitter(panda).credentials()).to.deep.equal([]);
    writeFileSync(join(directory, 'ce.sdf'), template('transfer_input_files = {pandaTokenPath}'));
    expect(await submitter(panda).credentials()).to.deep.equal(['/panda/token']);
  });

  for (const [title, first, second, said] of [
    ['absent', 'none', 'none', /^preflight: no computing element has a good token: ce1.org:9619: .*; ce2/],
    ['rubbish', undefined, undefined, /^preflight: no computing element has a good token/],
    ['over', -1, -1, /ended at 2026-11-29T23:59:59/],
    ['good for one alone', -1, 60, undefined],
  ] as const)
    it(`let nothing be submitted while they are ${title}, and the queue says so`, async () => {
      if (first !== 'none') give(one, first);
      if (second !== 'none') give(two, second);
      const [reason] = await told();
      if (said === undefined) expect(reason).to.equal(undefined);
      else expect(reason).to.match(said);
    });

  it('let nothing be submitted while they are not valid yet', async () => {
    const text = makeJwt({ nbf: now / 1000 + 600, exp: now / 1000 + 6000 });
    for (const ce of [one, two]) writeFileSync(tokenOf(ce), text, { mode: 0o600 });
    expect((await told())[0]).to.match(/is not valid before 2026-11-30T00:10:00/);
  });

  /** The endpoints of the workers that were submitted, and the errors of the others. */
  async function submitted(workers: readonly WorkerToStart[]) {
    const { config, context, tally } = partsOf();
    const absolute = { ...config, tokenDir: join(directory, 'tokens') };
    const texts = new SubmitTexts(absolute, context);
    const endpoints: string[] = [];
    const schedd = {
      jobQueue: { requireNow: async () => undefined },
      submissionHost: 'S',
      fenced: new Map(),
      refused: new Map(),
      fresh: new Map(),
      refusedByRule: { takenOf: () => 0, taken: () => undefined },
      submits: { begin: async () => ({ onStart: () => undefined, over: () => undefined }) },
      client: { submit: async () => workers.map((_, proc) => ({ cluster: 1, proc })) },
    };
    const submission = new Submission({
      schedd: schedd as never,
      config: absolute,
      context,
      tally,
      texts: {
        template: (ce: never) => texts.template(ce),
        directory: async () => directory,
        describe: (_: unknown, __: unknown, some: readonly WorkerToStart[], ce: { endpoint: string }) => {
          endpoints.push(...some.map(() => ce.endpoint));
          return { description: 'd', workers: some, rejected: new Map() };
        },
      } as never,
      signal: new AbortController().signal,
    });
    const outcomes = [...(await submission.submit(workers)).values()];
    const errors = outcomes.flatMap((outcome) => (outcome.kind === 'rejected' ? [outcome.error] : []));
    return { endpoints, errors: errors.map(({ code, message }) => `${code}: ${message}`) };
  }

  it('send all workers to those whose own are good', async () => {
    give(one, -1);
    give(two, 60);
    const { endpoints, errors } = await submitted(
      Array.from({ length: 20 }, (_, index) => workerOf(index + 1)),
    );
    expect(endpoints).to.deep.equal(Array.from({ length: 20 }, () => two));
    expect(errors).to.deep.equal([]);
  });

  it('that went bad since the gate was passed refuse the batch', async () => {
    const { endpoints, errors } = await submitted([workerOf(1)]);
    expect(endpoints).to.deep.equal([]);
    expect(errors.join()).to.match(/^preflight: no computing element has a good token/);
  });
});
