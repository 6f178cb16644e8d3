import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runHere } from '../support/command-line.ts';
import { kubeconfig } from '../support/kubernetes-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Json = Record<string, unknown>;

/** What may stand in the place of a file, by its name below. */
const noFiles = ['pipe', 'device', 'directory', 'socket', 'endless'] as const;
type NoFile = (typeof noFiles)[number];

let directory: string;
let paths: Readonly<Record<NoFile, string>>;

before(() => {
  directory = temporaryDirectory();
  const at = (name: string) => join(directory, name);
  paths = {
    pipe: at('pipe'),
    device: '/dev/zero',
    directory: at('directory'),
    socket: at('socket'),
    endless: at('endless'),
  };
  mkdirSync(paths.directory);
  execFileSync('mkfifo', [paths.pipe]);
  execFileSync('truncate', ['-s', '1G', paths.endless]);
  execFileSync('python3', ['-c', 'import socket,sys; socket.socket(1).bind(sys.argv[1])', paths.socket]);
});

const local = { name: 'LocalSubmitter', module: 'thresher/local' };
const base: Json = {
  maxWorkers: 1,
  mapType: 'NoJob',
  submitter: local,
  monitor: { name: 'LocalMonitor', module: 'thresher/local' },
  sweeper: { name: 'LocalSweeper', module: 'thresher/local' },
};
const kubernetes = (options: Json): Json => ({
  maxWorkers: 1,
  mapType: 'NoJob',
  common: { k8s_config_file: 'kubeconfig', ...options },
  submitter: { name: 'K8sSubmitter', module: 'thresher/kubernetes', k8s_yaml_file: 'job.yaml', ...options },
  monitor: { name: 'K8sMonitor', module: 'thresher/kubernetes' },
  sweeper: { name: 'K8sSweeper', module: 'thresher/kubernetes' },
});
const htcondor = (options: Json): Json => ({
  maxWorkers: 1,
  mapType: 'NoJob',
  submitter: { name: 'HTCondorSubmitter', module: 'thresher/htcondor', templateFile: 'a.sdf', ...options },
  monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
  sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
});
const withManager = (name: string, options: Json): Json => ({
  ...base,
  credmanagers: [{ name, module: 'thresher/credentials', ...options }],
});

/** A kubeconfig whose user or cluster names the path. */
function naming(path: string, user: Json, cluster: Json = {}): string {
  const file = `kubeconfig-${path.replaceAll('/', '_')}-${Object.keys({ ...user, ...cluster }).join('')}`;
  const value = kubeconfig({ server: 'https://127.0.0.1:1', ...cluster }, user);
  writeFileSync(join(directory, file), JSON.stringify(value));
  return file;
}

/** Each kind of file that a queue names. */
const kinds: readonly (readonly [what: string, queue: (path: string) => Json])[] = [
  ['a local template', (path) => ({ ...base, submitter: { ...local, templateFile: path } })],
  ['a Job template', (path) => kubernetes({ k8s_yaml_file: path })],
  ['a kubeconfig', (path) => kubernetes({ k8s_config_file: path })],
  [
    'the token that a kubeconfig names',
    (path) => kubernetes({ k8s_config_file: naming(path, { tokenFile: path }) }),
  ],
  [
    'the authority that a kubeconfig names',
    (path) => kubernetes({ k8s_config_file: naming(path, {}, { 'certificate-authority': path }) }),
  ],
  ['a proxy for Kubernetes', (path) => kubernetes({ x509UserProxy: path })],
  ['a submit description', (path) => htcondor({ templateFile: path })],
  ['a list of schedds', (path) => htcondor({ condorHostConfig: path })],
  ['a plugin module', (path) => ({ ...base, sweeper: { name: 'Own', module: path } })],
  ['the options of IamTokenCredManager', (path) => withManager('IamTokenCredManager', { inFile: path })],
  ['the plan of K8sSecretCredManager', (path) => withManager('K8sSecretCredManager', { certFile: path })],
];

const wrong =
  /is (a|an) (pipe|device|directory|socket), not a regular file|is not a regular file|has more than the \d+ bytes/;
/** What would be right. */
const right = /: name the (right file|file of the )/;

async function check(settings: Json, queues: Json) {
  writeFileSync(join(directory, 'queues.json'), JSON.stringify(queues));
  const file = join(directory, 'thresher.yaml');
  const own = { master: { stateDir: 'state' }, qconf: { configFile: 'queues.json' }, ...settings };
  writeFileSync(file, JSON.stringify(own));
  return runHere('--config', file, 'check-config');
}

describe('check-config, where no file stands in the place of one', () => {
  beforeEach(() => {
    writeFileSync(
      join(directory, 'kubeconfig'),
      JSON.stringify(kubeconfig({ server: 'https://127.0.0.1:1' })),
    );
    writeFileSync(join(directory, 'a.sdf'), 'executable = /bin/true\n');
  });

  for (const [what, queue] of kinds) {
    it(`check-config reports ${what} at once as a pipe, a device, a directory, a socket or endless`, async () => {
      const names = Object.fromEntries(noFiles.map((kind) => [kind, queue(paths[kind])]));
      const { stdout } = await check({}, { ...names, GOOD: base });
      // Each open of a pipe would hang for good, or until the deadline of its files, which is no reason of these.
      for (const kind of noFiles) {
        const lines = stdout.split('\n').filter((line) => line.includes(paths[kind]) && wrong.test(line));
        expect(lines, `${kind}: ${stdout}`).to.not.be.empty;
        for (const line of lines) expect(line).to.match(right);
        // Each line of the queue file says it once.
        expect(new Set(lines).size).to.equal(lines.length);
      }
      expect(stdout).to.match(/^GOOD +ready/m);
    });
  }

  for (const kind of noFiles) {
    it(`check-config reports at once a queue file that is no file: ${kind}`, async () => {
      const { stdout, status } = await check({ qconf: { configFile: paths[kind] } }, {});
      expect(status).to.equal(1);
      expect(stdout).to.match(wrong).and.to.match(right).and.to.contain('no queue could be read');
    });

    it(`check-config reports at once settings that are no file: ${kind}`, async () => {
      const { stdout, status } = await runHere('--config', paths[kind], 'check-config');
      expect(status).to.equal(1);
      expect(stdout).to.match(wrong).and.to.match(right);
    });

    it(`check-config reports at once a token of the HTTP server that is no file: ${kind}`, async () => {
      const { stdout } = await check({ http: { tokenFile: paths[kind] } }, { GOOD: base });
      expect(stdout).to.match(wrong).and.to.match(right).and.to.contain('http-token-unreadable');
    });
  }
});
