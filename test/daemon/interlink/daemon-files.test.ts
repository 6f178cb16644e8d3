import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSidecarConfig } from '../../../src/daemon/interlink/sidecar-config.ts';
import { checkedFlags, condorVariables, flagWarnings } from '../../../src/daemon/interlink/condor-flags.ts';
import { sidecarFiles } from '../../../src/daemon/interlink/daemon-files.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const file = 'SidecarConfig.yaml';
const read = (...lines: string[]) => readSidecarConfig(lines.join('\n'), file);

describe('the SidecarConfig.yaml of interLink', () => {
  it('has the options of the HTCondor plugin by its names', () => {
    const { options, dataRoot, warnings } = read(
      'CommandPrefix: "source /cvmfs/setup.sh;"',
      'ExportPodData: false',
      'DataRootFolder: ".interlink/"',
      'SingularityPath: /usr/bin/apptainer',
      'SingularityDefaultOptions: ["--nv"]',
      'ClusterResourcesScript: ./resources.sh',
      'Taints: [{ key: a, effect: NoSchedule }]',
      'Socket: ""',
    );
    expect(options).to.deep.equal({
      commandPrefix: 'source /cvmfs/setup.sh;',
      exportPodData: false,
      runtime: '/usr/bin/apptainer',
      runtimeOptions: ['--nv'],
      capacityScript: './resources.sh',
      taints: [{ key: 'a', effect: 'NoSchedule' }],
    });
    expect(dataRoot).to.equal('.interlink/');
    expect(warnings).to.deep.equal([]);
  });

  it('has those of the slurm plugin too, and says of each key without an effect what to do', () => {
    const { options, logLevel, warnings } = read(
      'SidecarPort: "4000"',
      'Socket: unix:///run/plugin.sock',
      'SbatchPath: /usr/bin/sbatch',
      'ImagePrefix: "docker://"',
      'SingularityPrefix: "oras://"',
      'Tsocks: false',
      'TsocksLoginNode: login01',
      'BashPath: /bin/bash',
      'VerboseLogging: true',
      'ErrorsOnlyLogging: false',
      'EnableProbes: false',
      'ResourceScriptPath: /srv/resources',
      'ContainerRuntime: singularity',
      'Taints: [{ Key: a, Value: 1, Effect: NoExecute }]',
      'DefaultFlavor: default',
    );
    expect(options).to.deep.equal({
      port: 4000,
      socket: '/run/plugin.sock',
      imagePrefix: 'docker://',
      probes: false,
      capacityScript: '/srv/resources',
      taints: [{ key: 'a', value: '1', effect: 'NoExecute' }],
    });
    expect(logLevel).to.equal('debug');
    expect(warnings.map((one) => one.replace(/ has no effect.*/, ''))).to.deep.equal(
      ['SbatchPath', 'TsocksLoginNode', 'BashPath', 'DefaultFlavor'].map((name) => `${file}: ${name}`),
    );
    expect(warnings[1]).to.include('write its commands into CommandPrefix');
  });

  it("has thresher's own options below a key of their own, which win", () => {
    const { options, submit, monitor, http } = read(
      'SingularityPath: singularity',
      'thresher:',
      '  allowHost: true',
      '  hostPaths: [/data]',
      '  runtime: /srv/apptainer',
      '  submit: { accounting_group: cms }',
      '  monitor: { pollInterval: 2 }',
      '  http: { port: 8080 }',
    );
    expect(options).to.deep.equal({ allowHost: true, hostPaths: ['/data'], runtime: '/srv/apptainer' });
    expect([submit, monitor, http]).to.deep.equal([
      { accounting_group: 'cms' },
      { pollInterval: 2 },
      { port: 8080 },
    ]);
  });

  for (const [text, warning] of [
    ['ExportPodDate: true', 'ExportPodDate has no effect: did you mean "ExportPodData"?'],
    ['allowHost: true', 'thresher\'s own options stand below the key "thresher"'],
    ['Colour: blue', 'neither interLink nor thresher has such a key'],
    ['SidecarURL: "http://127.0.0.1"', 'it belongs to the configuration of interLink'],
  ] as const)
    it(`goes on without a key that does nothing: ${text}`, () => {
      const { options, warnings } = read(text);
      expect(options).to.deep.equal({});
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include(warning);
    });

  for (const [text, message] of [
    ['ExportPodData: 3', 'SidecarConfig.yaml: ExportPodData is 3; it must be true or false'],
    ['SidecarPort: 99999', 'SidecarPort is 99999; it must be a port'],
    ['Taints: [{ key: a, effect: Run }]', 'it must be a list of taints with key, effect'],
    ['SingularityDefaultOptions: --nv', 'it must be a list of texts'],
    ['VerboseLogging: 1', 'VerboseLogging is 1; it must be true or false'],
    ['ContainerRuntime: enroot', 'ContainerRuntime is "enroot"; it must be "singularity"'],
    ['thresher: { allowHosts: true }', 'thresher.allowHosts is no option: did you mean "allowHost"?'],
    ['thresher: { allowHost: 3 }', 'SidecarConfig.yaml: thresher.allowHost'],
    ['thresher: { hostPaths: [data] }', 'thresher.hostPaths.0'],
    ['thresher: { dataRoot: /x }', 'thresher.dataRoot is not yours to set'],
    ['thresher: { submit: 3 }', 'thresher.submit is 3; it must be a list of options with values'],
    ['thresher: true', 'thresher is true; it must be a list of options with values'],
    ['- a', 'SidecarConfig.yaml must have keys and values'],
    ['a: "', 'SidecarConfig.yaml is no YAML'],
  ] as const)
    it(`is refused if it has ${JSON.stringify(text)}`, () => {
      expect(() => read(text)).to.throw(ThresherError, message);
    });
});

describe('the files of the sidecar for interLink', () => {
  it('have the schedd, the collector and the port of the flags', () => {
    const flags = { scheddHost: 's.example.com', collectorHost: 'c.example.com', port: 4000 };
    const { settings, queues } = sidecarFiles(flags, read(''), '/data');
    expect(settings.sources.interlink).to.include({
      port: 4000,
      condorPool: 'c.example.com',
      dataRoot: '/data',
    });
    const where = { condorSchedd: 's.example.com', condorPool: 'c.example.com', useSpool: true };
    expect(queues.interlink.submitter).to.include(where);
    const local = sidecarFiles({}, read(''), '/data');
    expect(local.queues.interlink.submitter).not.to.have.any.keys('condorSchedd', 'useSpool');
    expect(local.settings.sources.interlink).to.include({ port: 8000 });
  });

  it('listen where a flag says, also if the file names a socket', () => {
    const config = read('Socket: /run/a.sock', 'SidecarPort: 4000');
    const listen = (flags: object) => sidecarFiles(flags, config, '/data').settings.sources.interlink;
    expect(listen({})).to.include({ socket: '/run/a.sock' });
    expect(listen({ port: 5000 }))
      .to.include({ port: 5000 })
      .and.not.to.have.property('socket');
    expect(listen({ socket: '/run/b.sock' })).to.include({ socket: '/run/b.sock' });
  });

  it('have further submit commands of the operator, but for those that bring the files back', () => {
    const { template } = sidecarFiles({}, read('thresher: { submit: { requirements: "HasX" } }'), '/data');
    expect(template).to.include({ requirements: 'HasX', initialdir: '${payload.output}' });
    const config = read('thresher: { submit: { InitialDir: /x } }');
    expect(() => sidecarFiles({}, config, '/data')).to.throw(ThresherError, 'thresher.submit.InitialDir');
  });

  it('wait for the proxy or the token of the flags, and have a dummy where it is asked for', () => {
    const { queues, settings } = sidecarFiles({ proxy: '/p', dummyJob: true }, read(''), '/data');
    expect(queues.interlink).to.deep.include({ credentials: ['/p'] });
    expect(settings.sources.interlink).to.include({ dummySeconds: 60 });
  });
});

describe("how HTCondor's commands of the sidecar log in", () => {
  for (const [flags, variables] of [
    [
      { authMethod: 'scitokens', proxy: '/token', cadir: '/ca', debug: 'D_FULLDEBUG' },
      {
        _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'SCITOKENS',
        _CONDOR_SCITOKENS_FILE: '/token',
        _CONDOR_AUTH_SSL_CLIENT_CADIR: '/ca',
        _CONDOR_TOOL_DEBUG: 'D_FULLDEBUG',
      },
    ],
    [
      { authMethod: 'SSL', proxy: '/proxy' },
      {
        _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'SSL',
        X509_USER_PROXY: '/proxy',
        _CONDOR_AUTH_SSL_CLIENT_CERTFILE: '/proxy',
        _CONDOR_AUTH_SSL_CLIENT_KEYFILE: '/proxy',
      },
    ],
    [
      { authMethod: 'SSL', certfile: '/c', keyfile: '/k' },
      {
        _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'SSL',
        _CONDOR_AUTH_SSL_CLIENT_CERTFILE: '/c',
        _CONDOR_AUTH_SSL_CLIENT_KEYFILE: '/k',
      },
    ],
    [{ authMethod: 'token, fs' }, { _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'IDTOKENS, FS' }],
    [
      { proxy: '/x509', condorConfig: '/c' },
      { CONDOR_CONFIG: '/c', X509_USER_PROXY: '/x509' },
    ],
    [{}, {}],
  ] as const)
    it(`is what the flags say: ${JSON.stringify(flags)}`, () => {
      expect(condorVariables(flags)).to.deep.equal(variables);
    });

  it('does not depend on the directory of a command', () => {
    expect(checkedFlags({ proxy: 'p' }).proxy).to.equal(join(process.cwd(), 'p'));
  });

  it('is refused, or warned of, where it cannot be', () => {
    expect(() => checkedFlags({ cadir: '/nowhere' })).to.throw(
      ThresherError,
      '--cadir: /nowhere is not there',
    );
    expect(() => checkedFlags({ authMethod: 'SCITOKNES' })).to.throw(
      ThresherError,
      'no method SCITOKNES; did you mean "SCITOKENS"?',
    );
    const proxy = join(temporaryDirectory(), 'proxy');
    expect(flagWarnings({ proxy })[0]).to.include('is not there; Pods are refused until it is');
    writeFileSync(proxy, '');
    expect(flagWarnings(checkedFlags({ authMethod: 'GSI', proxy }))[0]).to.include('have no GSI');
  });
});
