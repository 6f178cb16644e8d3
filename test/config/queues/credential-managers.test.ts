import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { chooseOfQueue, managersOf } from '../../../src/config/queues/credential-managers.ts';
import type { PluginCatalogue } from '../../../src/config/queues/queue-config.ts';
import { readSettings } from '../../../src/config/settings/settings.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const k8s = 'pandaharvester.harvestercredmanager.k8s_secret_cred_manager';
const voms = 'pandaharvester.harvestercredmanager.no_voms_cred_manager';

describe('credential managers of the settings', () => {
  let directory: string;
  let plan: string;
  let catalogue: PluginCatalogue;

  before(async () => {
    catalogue = await loadPlugins([], '/', files);
  });

  beforeEach(() => {
    directory = temporaryDirectory();
    plan = join(directory, 'plan.json');
    writeFileSync(join(directory, 'token'), 'x', { mode: 0o600 });
    const access = { server: 'https://127.0.0.1:1' };
    const kubeconfig = {
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      clusters: [{ name: 'a', cluster: access }],
      users: [{ name: 'a', user: { token: 't' } }],
    };
    writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(kubeconfig));
    writeFileSync(plan, JSON.stringify({ k8s_config_file: 'kubeconfig', proxy_files: ['/proxy'] }));
  });

  async function read(text: string, name = 'panda_harvester.cfg') {
    const file = join(directory, name);
    writeFileSync(file, text);
    const result = readSettings(file, undefined, { env: {}, hostname: 'h', home: directory });
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const { choices, problems } = await managersOf(result.settings, catalogue, files, {});
    return {
      managers: choices.map(({ name, config }) => [
        name,
        config.certFile ?? config.inCertFile ?? config.files,
      ]),
      problems: problems.map(
        ({ severity, code, line, pointer, message }) => `${severity} ${code} ${line} ${pointer}: ${message}`,
      ),
    };
  }

  it("are read of Harvester's parallel lists, one line for each", async () => {
    const text = [
      ...['[credmanager]', 'moduleName =', ` ${k8s}`, ` ${voms}`],
      ...['className =', ' K8sSecretCredManager', ' NoVomsCredManager'],
      ...['certFile =', ` ${plan}`, ' /cert.pem', 'outCertFile =', ' dummy', ' /proxy'],
      ...['voms =', ' dummy', ' atlas:/atlas/Role=pilot'],
    ].join('\n');
    expect(await read(text)).to.deep.equal({
      managers: [
        ['K8sSecretCredManager', plan],
        ['NoVomsCredManager', '/cert.pem'],
      ],
      problems: [],
    });
  });

  it('as the template of Harvester has them are still to fill in: named once, not run, and no other mistake of them', async () => {
    const text = [
      ...['[credmanager]', 'moduleName =', ` ${voms}`, ` ${voms}`, ' /path_to/FIXME', ` ${voms}`],
      ...['className =', ' NoVomsCredManager', ' NoVomsCredManager', ' FIXME', ' NoVomsCredManager'],
      ...['inCertFile =', ' /path_to/FIXME_production', ' /path_to/FIXME_pilot', ' dummy', ' /cert.pem'],
      ...['outCertFile =', ' /path_to/FIXME_proxy', ' /proxy', ' dummy', ' /proxy2'],
    ].join('\n');
    expect(await read(text)).to.deep.equal({
      managers: [['NoVomsCredManager', '/cert.pem']],
      problems: [
        'warning template-placeholder 1 /credmanager: 3 credential managers are still to fill in, and they do not run until then: NoVomsCredManager (inCertFile, outCertFile), NoVomsCredManager (inCertFile), FIXME (module, name); write the values of your site in place of FIXME, or remove the entries',
      ],
    });
  });

  it("are as many as the shortest list has, as in Harvester's zip, and all that is dropped is named", async () => {
    const text = [
      ...['[credmanager]', 'moduleName =', ` ${k8s}`, ` ${voms}`],
      ...['className =', ' K8sSecretCredManager', ' NoVomsCredManager', 'certFile =', ` ${plan}`],
    ].join('\n');
    const { managers, problems } = await read(text);
    expect(managers).to.deep.equal([['K8sSecretCredManager', plan]]);
    expect(problems).to.deep.equal([
      `warning credmanager-dropped 8 /credmanager/certFile: the lists are not equally long: moduleName has 2, className has 2, certFile has 1; as in Harvester the shortest counts, and these are dropped: moduleName ${voms}; className NoVomsCredManager; write one line for each manager, "dummy" where it needs nothing`,
    ]);
  });

  for (const [what, text, name] of [
    ['of JSON', `[credmanager]\nmoduleName =\n []\nclassName =\n []\nvoms =\n atlas\n`, undefined],
    ['on one line', '[credmanager]\nmoduleName = []\nclassName = []\n', undefined],
    ['of YAML', 'credmanager: { moduleName: [], className: [], outCertFile: [/proxy] }\n', 'thresher.yaml'],
  ] as const) {
    it(`are none by empty lists ${what}, without a problem`, async () => {
      expect(await read(text, name)).to.deep.equal({ managers: [], problems: [] });
    });
  }

  it('are none by an empty list of modules, and the classes are named that have none', async () => {
    const { managers, problems } = await read(
      'credmanager: { moduleName: [], className: [A, B] }\n',
      'thresher.yaml',
    );
    expect(managers).to.deep.equal([]);
    expect(problems.join()).to.match(
      /^warning credmanager-dropped 1 .*moduleName has 0, className has 2; .*dropped: className A, B;/,
    );
  });

  it('take the PanDA server from [pandacon] where they do not name one', async () => {
    writeFileSync(join(directory, 'client'), '{}');
    const options = { client_cred_file: 'client', target_type: 'panda', out_dir: '.' };
    writeFileSync(join(directory, 'setup.json'), JSON.stringify(options));
    const plugin = (configs: object) => ({
      module: 'pandaharvester.harvestercredmanager.iam_token_cred_manager',
      name: 'IamTokenCredManager',
      configs,
    });
    const own = 'https://own.example:25443/server/panda';
    const configs = { a: options, b: { ...options, pandaURLSSL: own }, c: { inFile: 'setup.json' } };
    const lines = (server: string) => [
      ...['[pandacon]', `pandaURLSSL = ${server}`, '[credmanager]'],
      ...['pluginConfigs =', ` [${JSON.stringify(plugin(configs))},`, ' ]'].map((line) =>
        line.replace(/,$/, ''),
      ),
    ];
    const server = 'https://pandaserver.example:25443/server/panda';
    const file = join(directory, 'panda_harvester.cfg');
    writeFileSync(file, lines(server).join('\n'));
    const result = readSettings(file, undefined, { env: {}, hostname: 'h', home: directory });
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const { choices, problems } = await managersOf(result.settings, catalogue, files, {});
    expect(problems).to.deep.equal([]);
    expect(choices.map(({ config }) => config.pandaURLSSL)).to.deep.equal([server, own, server]);
  });

  it('D5: may get tokens for the computing elements of the queues, without a list of their own', async () => {
    const ce = { client_cred_file: 'token', target_type: 'ce', out_dir: '.' };
    const plugins = [{ module: 'thresher/credentials', name: 'IamTokenCredManager', configs: { a: ce } }];
    const { managers, problems } = await read(
      `credmanager: { pluginConfigs: ${JSON.stringify(plugins)} }\n`,
      'thresher.yaml',
    );
    expect(managers.map(([name]) => name)).to.deep.equal(['IamTokenCredManager']);
    expect(problems).to.deep.equal([]);
  });

  it('are read of pluginConfigs, each with its options', async () => {
    const configs = { one: { files: ['token'] }, other: { files: ['/b'] } };
    const text = `credmanager: { pluginConfigs: [${JSON.stringify({ module: 'thresher/credentials', name: 'FileCredManager', configs })}] }\n`;
    expect(await read(text, 'thresher.yaml')).to.deep.equal({
      managers: [
        ['FileCredManager', ['token']],
        ['FileCredManager', ['/b']],
      ],
      problems: [],
    });
  });

  for (const [what, entry, said] of [
    ['a name alone', '"x"', /pluginConfigs\/0: it must have "module" and "name"/],
    ['no configs', '{"module": "m", "name": "n"}', /pluginConfigs\/0: it must have "configs"/],
    [
      'configs that are none',
      '{"module": "m", "name": "n", "configs": {"a": 1}}',
      /pluginConfigs\/0\/configs\/a: configs\.a must be an object/,
    ],
    [
      'a manager that there is not',
      '{"module": "mine", "name": "MyManager", "configs": {"a": {}}}',
      /^error unknown-plugin .*there is no credential manager MyManager of mine; there is .*FileCredManager/,
    ],
    [
      "one of Harvester's that thresher does not have",
      '{"module": "pandaharvester.harvestercredmanager.other", "name": "Other", "configs": {"a": {}}}',
      /^warning credmanager-not-applied .*: incomplete: no credmanager is called Other of /,
    ],
    [
      'a wrong option',
      '{"module": "thresher/credentials", "name": "FileCredManager", "configs": {"a": {"files": "/x"}}}',
      /^error wrong-type .*\/configs\/a\/files: files is "\/x"; it must be a list/,
    ],
  ] as const) {
    it(`settings with ${what} have a mistake at its position, and the other managers go on`, async () => {
      const good =
        '{"module": "thresher/credentials", "name": "FileCredManager", "configs": {"b": {"files": ["/b"]}}}';
      const text = `credmanager:\n  pluginConfigs:\n    - ${entry}\n    - ${good}\n`;
      const { managers, problems } = await read(text, 'thresher.yaml');
      expect(managers).to.deep.equal([['FileCredManager', ['/b']]]);
      expect(problems).to.have.length(1);
      expect(problems[0]).to.match(said);
    });
  }

  it("Harvester's Dummy manager in the settings gets no remark, and the other managers go on", async () => {
    const dummy = 'pandaharvester.harvestercredmanager.dummy_cred_manager';
    const text = `credmanager: { pluginConfigs: [{ module: ${dummy}, name: DummyCredManager, configs: { a: {} } }] }\n`;
    expect(await read(text, 'thresher.yaml')).to.deep.equal({ managers: [], problems: [] });
  });

  it('a wrong plan of a manager is reported at its position in the plan', async () => {
    writeFileSync(plan, '{\n  "proxy_files": "/proxy"\n}\n');
    const lines = [
      '[credmanager]',
      `moduleName = ${k8s}`,
      'className = K8sSecretCredManager',
      `certFile = ${plan}`,
    ];
    const { managers, problems } = await read(lines.join('\n'));
    expect(managers).to.deep.equal([]);
    expect(problems.join('\n')).to.match(/^error wrong-type .*plan\.json:2: proxy_files/);
  });
});

describe('credential managers of a queue', () => {
  const problemsOf = async (name: string, module: string) => {
    const around = { configDir: '/', stateDir: '/state', files };
    const names = { queueName: 'Q', harvesterID: 'H', common: {} };
    const { problems } = await chooseOfQueue(
      { name, module },
      names,
      around,
      await loadPlugins([], '/', files),
    );
    return problems.map(({ severity, code, message }) => `${severity ?? 'error'} ${code}: ${message}`);
  };

  it('a queue with an unknown manager gets the names of all managers, as the settings do', async () => {
    const [said] = await problemsOf('ZzManager', 'thresher/zz');
    expect(said).to.match(/^error unknown-plugin: no credmanager is called .*; there are .*FileCredManager/);
  });

  it("get no remark for Harvester's Dummy, and say of a third party's that thresher does not run it", async () => {
    const dummy = 'pandaharvester.harvestercredmanager.dummy_cred_manager';
    expect(await problemsOf('DummyCredManager', dummy)).to.deep.equal([]);
    expect(await problemsOf('Mine', 'mine.module')).to.deep.equal([
      'notice credmanager-not-applied: thresher does not run Mine of mine.module, a credential manager of a third party: keep its credentials fresh by other means',
    ]);
  });
});
