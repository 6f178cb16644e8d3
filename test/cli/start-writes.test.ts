import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { tokenFileOf } from '../../src/clients/htcondor/ce-endpoint.ts';
import { allManagers } from '../../src/config/queues/credential-managers.ts';
import { readQueueFile } from '../../src/config/queues/queues.ts';
import { namedManagers } from '../../src/daemon/credentials/credentials.ts';
import { loadPlugins } from '../../src/daemon/plugins.ts';
import { builtInPlugins } from '../../src/plugins/registry.ts';
import { check } from '../../src/util/schema.ts';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { files } from '../support/operator-files.ts';

type Json = Record<string, unknown>;

const harvesters = (module: string) => `pandaharvester.harvestercredmanager.${module}`;
const secret = (options: Json = {}): Json => ({
  module: harvesters('k8s_secret_cred_manager'),
  name: 'K8sSecretCredManager',
  k8s_config_file: 'kubeconfig',
  k8s_namespace: '${common.k8s_namespace}',
  proxy_files: ['/proxy'],
  ...options,
});
const local = (name: string) => ({ name, module: 'thresher/local' });
const queue = (own: Json = {}): Json => ({
  maxWorkers: 1,
  mapType: 'NoJob',
  common: { k8s_namespace: 'pilots' },
  credmanagers: [secret()],
  submitter: local('LocalSubmitter'),
  monitor: local('LocalMonitor'),
  sweeper: local('LocalSweeper'),
  ...own,
});
const statuses = ['offline', 'standby', 'maintenance', 'brokeroff', 'test', 'online'];

describe('files and Secrets that a start writes before it submits anything', () => {
  let directory: string;
  let settings: string;
  let queueFile: string;

  beforeEach(() => {
    directory = temporaryDirectory();
    settings = join(directory, 'thresher.yaml');
    queueFile = join(directory, 'panda_queueconfig.json');
    const kubeconfig = {
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
      users: [{ name: 'a', user: { token: 't' } }],
    };
    writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(kubeconfig));
  });

  function write(queues: Json, own: Json = {}): void {
    writeFileSync(queueFile, JSON.stringify(queues));
    writeFileSync(settings, JSON.stringify({ master: { stateDir: 'state', harvester_id: 'H' }, ...own }));
  }

  const run = async (...args: string[]) => {
    const { stdout } = await runHere('--config', settings, ...args);
    return stdout.replaceAll(`${directory}/`, '');
  };
  const writesOf = async (...args: string[]) =>
    (await run('check-config', ...args)).split('\n').filter((line) => line.startsWith('a start would write'));

  it('is listed by check-config, one line for each file and Secret, with all who name it', async () => {
    const voms = { module: harvesters('no_voms_cred_manager'), name: 'NoVomsCredManager' };
    const configs = { proxy: { inCertFile: '/cert', outCertFile: '/run/proxy' } };
    write({ A: queue(), B: queue() }, { credmanager: { pluginConfigs: [{ ...voms, configs }] } });
    expect(await writesOf()).to.deep.equal([
      'a start would write the file /run/proxy (NoVomsCredManager of the settings)',
      'a start would write the Secret proxy-secret in namespace pilots of kubernetes:kubeconfig (K8sSecretCredManager of A, B)',
    ]);
    expect(await writesOf('B')).to.have.length(2);
    const [first] = JSON.parse(await run('check-config', '--output', 'json')) as [Json];
    expect(first.writes).to.deep.include({
      target: { kind: 'secret', cluster: 'kubernetes:kubeconfig', namespace: 'pilots', name: 'proxy-secret' },
      managers: ['A', 'B'].map((namedBy) => ({ name: 'K8sSecretCredManager', namedBy })),
    });
  });

  it('has the name of the instance where a manager asks for ${harvesterID}', async () => {
    const file = { module: 'thresher/credentials', name: 'KerberosCredManager' };
    const kerberos = { ...file, principal: 'p', keytab: 'k', ccache: '/run/${queueName}-${harvesterID}' };
    write({ A: queue({ credmanagers: [kerberos] }) });
    expect(await writesOf()).to.deep.equal([
      'a start would write the file /run/A-H (KerberosCredManager of A)',
    ]);
  });

  it('D5: is a token for each computing element of all queues that are not offline', async () => {
    const client = { issuer: 'https://issuer', client_id: 'i', client_secret: 's' };
    writeFileSync(join(directory, 'client.json'), JSON.stringify(client), { mode: 0o600 });
    writeFileSync(join(directory, 'pilot.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(directory, 'job.sdf'), 'executable = {executableFile}\nqueue\n');
    const tokens = { target_type: 'ce', client_cred_file: 'client.json', out_dir: '/tokens' };
    const entry = { module: harvesters('iam_token_cred_manager'), name: 'IamTokenCredManager', ...tokens };
    const condor = (options: Json, own: Json = {}) =>
      queue({
        credmanagers: [],
        submitter: {
          name: 'HTCondorSubmitter',
          module: 'thresher/htcondor',
          templateFile: 'job.sdf',
          executableFile: 'pilot.sh',
          maxWalltime: 100,
          minRamCount: 100,
          ...options,
        },
        monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
        sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
        ...own,
      });
    const arc = { ce_endpoint: 'gsiftp://arc.org:2811', ce_flavour: 'arc-ce' };
    write({
      A: condor({ ceList: [arc] }, { credmanagers: [entry] }),
      B: condor({ ceList: [{ ce_endpoint: 'ce.org' }, arc] }, { credmanagers: [entry] }),
      C: condor({ ceList: [{ ce_endpoint: 'off.org' }] }, { queueStatus: 'offline' }),
      D: condor({ ceEndpoint: 'https://own.org:443/arex', ceHostname: 'own.org', tokenDir: '/tokens' }),
    });
    expect(await writesOf()).to.have.members(
      ['arc.org:443', 'ce.org:9619', 'https://own.org:443/arex'].map(
        (endpoint) =>
          `a start would write the file /tokens/${tokenFileOf(endpoint)} (IamTokenCredManager of A, B)`,
      ),
    );
    const options = { stateDir: '/state', files, defaultDemand: undefined, queueList: undefined };
    const catalogue = await loadPlugins([], '/', files);
    const { queues } = await readQueueFile(queueFile, catalogue, options);
    const managers = namedManagers(allManagers([], queues, catalogue));
    expect(managers.map(({ name }) => name)).to.deep.equal(['IamTokenCredManager']);
    const own = queues.filter(({ name }) => name === 'D').map((queue) => ({ ...queue, credmanagers: [] }));
    expect(allManagers([], own, catalogue).map(({ config }) => config.files)).to.deep.equal([
      [`/tokens/${tokenFileOf('https://own.org:443/arex')}`],
    ]);
  });

  for (const queueStatus of statuses) {
    const runs = queueStatus !== 'offline';
    it(`is ${runs ? 'the Secret' : 'nothing'} of a queue that is ${queueStatus}, as in Harvester`, async () => {
      write({ A: queue({ queueStatus }) });
      expect(await writesOf()).to.have.length(runs ? 1 : 0);
      const options = { stateDir: '/state', files, defaultDemand: undefined, queueList: undefined };
      const catalogue = await loadPlugins([], '/', files);
      const { queues } = await readQueueFile(queueFile, catalogue, options);
      expect(allManagers([], queues, catalogue).map(({ name }) => name)).to.deep.equal(
        runs ? ['K8sSecretCredManager'] : [],
      );
      expect(await run('explain', 'A')).to.match(
        runs
          ? /^credmanagers .*\(the daemon runs K8sSecretCredManager from its start on, whatever the demand\)$/m
          : /^credmanagers .*\(K8sSecretCredManager: not run while queueStatus is offline, as in Harvester\)$/m,
      );
    });
  }

  it('is nothing of a queue that is incomplete, and explain says so', async () => {
    const { submitter } = queue() as { submitter: Json };
    write({ A: queue({ submitter: { ...submitter, templateFile: 'none.yaml' } }) });
    expect(await writesOf()).to.deep.equal([]);
    expect(await run('explain', 'A')).to.contain(
      '(K8sSecretCredManager: not run while the queue is incomplete)',
    );
  });

  it('every manager that writes reports its files and Secrets', async () => {
    writeFileSync(join(directory, 'more'), '# comment\nother:1\n');
    const tokens = { client_cred_file: 'c', target_type: 'ce', out_dir: 'tokens', target_list: ['ce:1'] };
    const expected: Record<string, [options: Json, targets: string[]]> = {
      ArcproxyCredManager: [{ inCertFile: 'in', outCertFile: 'out' }, ['out']],
      NoVomsCredManager: [{ inCertFile: 'in', outCertFile: 'out' }, ['out']],
      KerberosCredManager: [{ principal: 'p', keytab: 'k', ccache: 'cc' }, ['cc']],
      CondorTokenCredManager: [{ directory: 'd', create: [{ name: 'pool', identity: 'u@d' }] }, ['d/pool']],
      IamTokenCredManager: [
        { ...tokens, target_list_file: 'more' },
        ['tokens/0c766f323c9578fa63a2b76043e22236', 'tokens/67e717499a94cea7dcdedd82f8b34335'],
      ],
      K8sSecretCredManager: [
        { k8s_config_file: 'kubeconfig', k8s_namespace: ['a', 'b'], proxy_files: ['/p'], secret_name: 's' },
        ['kubernetes:kubeconfig/a/s', 'kubernetes:kubeconfig/b/s'],
      ],
      TokenKeyCredManager: [{ client_name: 'c', token_key_file: 'key' }, ['key']],
      FileCredManager: [{ files: ['f'] }, []],
    };
    for (const definition of builtInPlugins.filter(({ kind }) => kind === 'credmanager')) {
      const [options, targets] = expected[definition.name] ?? [{}, ['unknown to this test']];
      const checked = check(definition.config, options);
      if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
      if (!('targets' in definition)) throw new Error(definition.name);
      const named = await definition.targets(checked.value, { configDir: directory, files });
      const found = named.map((target) => {
        const { kind } = target;
        const text = kind === 'file' ? target.path : `${target.cluster}/${target.namespace}/${target.name}`;
        return text.replaceAll(`${directory}/`, '');
      });
      expect(found, definition.name).to.deep.equal(targets);
    }
  });
});
