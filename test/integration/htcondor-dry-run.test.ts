import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { describeBatch, type DescribeOptions } from '../../src/plugins/htcondor/template/describe.ts';
import { logSubdirOf } from '../../src/plugins/htcondor/template/placeholders.ts';
import { type CondorTemplate, loadTemplate } from '../../src/plugins/htcondor/template/template.ts';
import type { Worker, WorkerToStart } from '../../src/worker/worker.ts';
import { issue, makeAuthority, proxyText, rfcProxy } from '../support/credentials.ts';
import { batchOptions, ce, submitterConfig, templateOf } from '../support/htcondor-batch.ts';
import { files } from '../support/operator-files.ts';
import { condorPool } from '../support/htcondor.ts';
import { requirements, workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
const fixtures = ['harvester', 'sites'].flatMap((folder) => {
  const directory = join(root, 'test/fixtures', folder);
  const found = readdirSync(directory).filter((name) => name.endsWith('.sdf'));
  return found.map((name) => join(directory, name));
});
const own = readdirSync(join(root, 'templates/htcondor')).map((name) =>
  join(root, 'templates/htcondor', name),
);

type Ad = Readonly<Record<string, string>>;

/** The text of a ClassAd string. */
function stringOf(written = '""'): string {
  return written.slice(1, -1).replaceAll('\\"', '"');
}

/** Words of HTCondor's new syntax, in which quotes are doubled and blanks stand between single quotes. */
function wordsOf(written: string | undefined): string[] {
  const words = [...stringOf(written).matchAll(/(?:'(?:[^']|'')*'|[^\s'])+/g)];
  return words.map(([word]) =>
    word.replace(/'((?:[^']|'')*)'/g, (_, inside: string) => inside.replaceAll("''", "'")),
  );
}

describe('condor_submit -dry-run', () => {
  let tool: string;
  let directory: string;
  let options: DescribeOptions;
  let workers: Worker[];

  before(async () => {
    tool = join((await condorPool()).programs, 'condor_submit');
    directory = temporaryDirectory();
    writeFileSync(
      join(directory, 'condor_config'),
      `LOG = ${directory}\nSPOOL = ${directory}\nEXECUTE = ${directory}\n`,
    );
    const ca = makeAuthority();
    const user = issue(ca.directory, ca, { name: '/DC=org/CN=Pilot' });
    const proxy = issue(ca.directory, user, { name: '/DC=org/CN=Pilot/CN=1', extensions: rfcProxy });
    writeFileSync(join(directory, 'proxy.pem'), proxyText(proxy, user), { mode: 0o600 });
    for (const file of ['wrapper.sh', 'ASGCHPCJob.sh']) {
      writeFileSync(join(directory, file), '#!/bin/sh\n');
      chmodSync(join(directory, file), 0o755);
    }
    mkdirSync(join(directory, 'tokens'));
    writeFileSync(join(directory, 'tokens/panda'), 'token');
    const config = submitterConfig({
      logDir: directory,
      logBaseURL: 'https://logs.site.org/condor',
      executableFile: join(directory, 'wrapper.sh'),
      x509UserProxy: join(directory, 'proxy.pem'),
      tokenDir: join(directory, 'tokens'),
      pandaTokenDir: join(directory, 'tokens'),
      pandaTokenFilename: 'panda',
      pandaTokenKeyPath: join(directory, 'tokens/panda'),
      customSubmitAttributes: { wantRemote: true, Team: '"atlas"' },
    });
    options = batchOptions(directory, { config, ce, factoryLog: join(directory, 'factory.log') });
    mkdirSync(join(directory, logSubdirOf(options.now)));
    workers = [101, 102, 103].map((workerId) => {
      const accessPoint = join(directory, String(workerId));
      mkdirSync(accessPoint);
      writeFileSync(join(accessPoint, 'pandaJobData.out'), 'job');
      for (const file of ['wrapper.sh', 'ASGCHPCJob.sh']) {
        execFileSync('cp', [join(directory, file), accessPoint]);
      }
      const size = { ...requirements, nCore: workerId - 100, maxDiskCount: 10 };
      return workerOf(workerId, { accessPoint, requirements: size });
    });
  });

  /** The ads of a batch, as the real tool makes them. */
  function adsOf(template: CondorTemplate, of: readonly WorkerToStart[] = workers, with_ = options): Ad[] {
    const { description, rejected } = describeBatch(template, of, with_);
    if (rejected.size > 0) throw new Error(JSON.stringify([...rejected]));
    writeFileSync(options.sdfPath, description);
    const output = join(directory, 'ads');
    const done = spawnSync(tool, ['-dry-run', output, options.sdfPath], {
      encoding: 'utf8',
      timeout: 90_000,
      killSignal: 'SIGKILL',
      cwd: directory,
      env: { ...process.env, CONDOR_CONFIG: join(directory, 'condor_config') },
    });
    if (done.status !== 0) throw new Error(`${done.stderr}\n${description}`);
    // The tool says of a variable or command that it does not use: nordugrid_rsl in universe grid of type arc, and what is in it.
    expect(
      done.stderr.replace(/^.*(\(queue = |line 'nordugrid_rsl|Queue variable 'thresherV).*$/gm, ''),
    ).to.not.match(/typo|WARNING/i);
    const ads: Record<string, string>[] = [];
    const cluster: Record<string, string> = {};
    for (const line of readFileSync(output, 'utf8').split('\n')) {
      const [, key, value] = /^([\w.]+)=(.*)$/.exec(line) ?? [];
      if (key === undefined || value === undefined) continue;
      // The first process has all, the others what is different.
      if (key === 'ProcId') ads.push({ ...(ads.length === 0 ? cluster : ads[0]) });
      Object.assign(ads.at(-1) ?? cluster, { [key]: value });
    }
    return ads;
  }

  for (const file of [...fixtures, ...own]) {
    it(`takes ${file.slice(root.length + 1)}, one job for each worker`, async () => {
      const adapted = await templateFrom(file);
      const ads = adsOf(adapted);
      expect(ads.map((ad) => ad.harvesterWorkerID)).to.deep.equal(['"101"', '"102"', '"103"']);
      for (const ad of ads) {
        expect(ad.thresherFactory).to.equal('"thresher-test"');
        expect(ad.harvesterID).to.equal('"CERN_test"');
        expect(ad.DAGManNodesLog).to.equal(`"${join(directory, 'factory.log')}"`);
        expect(ad.Team).to.equal('"atlas"');
        expect(Object.values(ad).join('\n')).to.not.match(/thresherV|\{\w+\}/);
      }
    });
  }

  it('hole 8: has nothing brought back but the words of the pilot, whose directory of logs it shares with others', async () => {
    const [ad] = adsOf(await templateFrom(join(root, 'templates/htcondor/pilot.yaml')));
    expect(ad?.TransferOutput).to.equal('""');
    expect(stringOf(ad?.Out)).to.match(/\.out$/);
  });

  it("asks for a worker's own cores, memory, disk and time", async () => {
    const ads = adsOf(await templateFrom(join(root, 'templates/htcondor/pilot.yaml')));
    expect(ads.map(({ RequestCpus }) => RequestCpus)).to.deep.equal(['1', '2', '3']);
    expect(ads[2]).to.include({
      RequestMemory: '2000',
      RequestDisk: '10240',
      AllowedExecuteDuration: '3600',
    });
  });

  it('leaves values as they are, whatever HTCondor would read in them', () => {
    const evil = [
      ...[
        'a"b',
        "a'b",
        'a b',
        '$(Cluster)',
        '$ENV(HOME)',
        '$(dollars)',
        'queue 5',
        '# no',
        'a\\b',
        'x = y',
        'a,b',
      ],
      ...['$F(executable)', '$INT(1)', '%n', '{workerID}', '${workerID}', '<&>', 'é', '$', "''", '""', '\\"'],
    ];
    const text =
      'executable = {executableFile}\narguments = "-s {computingSite} \'{computingSite}\' end"\n' +
      'environment = "SITE={computingSite} OTHER=1"\n+site = "{computingSite}"\nqueue 1\n';
    const many = evil.map((computingSite, index) => workerOf(1000 + index, { computingSite }));
    for (const yaml of [false, true]) {
      const template = yaml
        ? templateOf(
            'executable: ${executableFile}\narguments: [-s, "${computingSite}", "${computingSite}", end]\nenvironment: {SITE: "${computingSite}", OTHER: 1}\nattributes: {site: "${computingSite}"}\n',
            'a.yaml',
          )
        : templateOf(text);
      const ads = adsOf(template, many);
      for (const [index, ad] of ads.entries()) {
        const value = evil[index] ?? '';
        expect(stringOf(ad.site), 'attribute').to.equal(value);
        expect(wordsOf(ad.Arguments), 'arguments').to.deep.equal(['-s', value, value, 'end']);
        expect(wordsOf(ad.Environment), 'environment').to.have.members([`SITE=${value}`, 'OTHER=1']);
        expect(ad.Cmd).to.equal(JSON.stringify(join(directory, 'wrapper.sh')));
      }
    }
  });

  it('takes workers with payloads as one cluster, with nothing of the payload in it but values', () => {
    const template = templateOf(
      'executable = {executableFile}\narguments = "-s \'{payload.word}\'"\nenvironment = "KEPT=1"\n+Word = "{payload.word}"\nqueue 1\n',
    );
    const words = ['a"b', "it's", '$(Cluster) $ENV(HOME)', 'a,b'];
    const odd = 'content $(Cluster) "quoted"\nof the payload';
    const content = Buffer.from(odd).toString('base64');
    const started = words.map((word, index): WorkerToStart => {
      const payload = {
        values: { word },
        files: [{ name: 'a secret', mode: 0o600, content, secret: true }],
        env: { ODD: odd },
        ...(index % 2 === 1 && { argv: ['./run', odd] }),
      };
      return { ...workerOf(2000 + index), payload };
    });
    const bundleOf = ({ workerId, attempt }: WorkerToStart) => {
      const path = join(directory, "state's dir", `${workerId}.${attempt}`, 'thresher-payload.sh');
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, '');
      return path;
    };
    const wrapper = join(directory, 'wrapper.sh');
    for (const [index, ad] of adsOf(template, started, { ...options, bundleOf }).entries()) {
      const word = words[index] ?? '';
      const bundle = join(directory, "state's dir", `${2000 + index}.1`, 'thresher-payload.sh');
      expect(ad).to.include({ Cmd: '"/bin/sh"', TransferExecutable: 'false', Environment: '"KEPT=1"' });
      expect(stringOf(ad.Word)).to.equal(word);
      const own = index % 2 === 1;
      const arguments_ = own ? [] : ['transferred', wrapper, '-s', word];
      expect(wordsOf(ad.Arguments)).to.deep.equal(['thresher-payload.sh', ...arguments_]);
      expect(stringOf(ad.TransferInput)).to.equal(own ? bundle : `${wrapper},${bundle}`);
      expect(JSON.stringify(ad)).to.not.contain('of the payload').and.not.contain(content);
    }
  });

  it('takes a thousand workers as one cluster', async () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({
      ...(workers[0] as Worker),
      workerId: 5000 + index,
    }));
    const ads = adsOf(await templateFrom(join(root, 'test/fixtures/harvester/htcondor-ce_pull.sdf')), many);
    expect(ads).to.have.length(1000);
    expect(ads[999]?.harvesterWorkerID).to.equal('"5999"');
  });

  /** A file of the tree, with the paths that only its site has replaced by ones that are here. */
  async function templateFrom(file: string): Promise<CondorTemplate> {
    const text = readFileSync(file, 'utf8').replaceAll(
      '/opt/harvester/sandbox/lsst.rubin-wrapper.sh',
      '{executableFile}',
    );
    const copy = join(directory, file.endsWith('.yaml') ? 'copy.yaml' : 'copy.sdf');
    writeFileSync(copy, text);
    const loaded = await loadTemplate(files, copy, options.config);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    return loaded.template;
  }
});
