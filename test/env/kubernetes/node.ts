import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';
import { nodePrograms, type Program, requireBinary } from './binaries.ts';
import { freePort } from './ports.ts';
import { isAlive } from './processes.ts';

const script = join(import.meta.dirname, 'node.sh');
const nodeName = 'real-node-0';

/** A real node and the control plane that it belongs to. */
export interface NodeStatus {
  /** Whether every process of it is alive. */
  readonly running: boolean;
  readonly name: string;
  readonly server: string;
  readonly kubeconfig: string;
  /** ca.crt, admin.crt, admin.key. */
  readonly certificates: string;
  readonly directory: string;
  readonly port: number;
}

/** What node.sh is told, as it stands in settings.json. */
interface Settings {
  readonly STATE: string;
  readonly KBIN: string;
  readonly PORT: string;
  readonly EPORT: string;
  readonly EPEERS: string;
  readonly NETID: string;
  readonly NODE: string;
}

const needed: readonly Program[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  ...nodePrograms,
];

/** Processes of node.sh whose pid files stand in `run`. */
const processes = ['etcd', 'apiserver', 'kcm', 'sched', 'super'];

/**
 * Starts what of it does not run. That root and the Debian packages are there was seen to by scripts/test-env.
 * @throws Failure; what does not start has shown the end of its logs.
 */
export async function startNode(directory: string): Promise<NodeStatus> {
  const root = join(directory, 'node');
  if (readSettings(directory) === undefined) await makeSettings(root, directory);
  else linkPrograms(root, directory);
  await call('start', directory);
  const status = nodeStatus(directory);
  if (status === undefined) throw new Failure(`the node has left no trace in ${root}`);
  return status;
}

/** Ends it with all its Pods, mounts and interfaces, and removes its files. */
export async function stopNode(directory: string): Promise<void> {
  if (readSettings(directory) === undefined) return;
  await call('purge', directory);
}

/** @returns undefined if none was started. */
export function nodeStatus(directory: string): NodeStatus | undefined {
  const settings = readSettings(directory);
  if (settings === undefined) return undefined;
  const { STATE: root, PORT: port, NODE: name } = settings;
  return {
    running: processes.every((process) => runs(join(root, 'run', `${process}.pid`))),
    name,
    server: `https://127.0.0.1:${port}`,
    kubeconfig: join(root, 'kubeconfig'),
    certificates: join(root, 'pki'),
    directory: root,
    port: Number(port),
  };
}

/**
 * Runs a command of `ctr` for the images and containers of the kubelet.
 * @returns what it printed.
 * @throws Failure with what it said.
 */
export async function inContainerd(directory: string, args: readonly string[]): Promise<string> {
  const env = { ...process.env, ...readSettings(directory) };
  try {
    return (await promisify(execFile)('bash', [script, 'ctr', ...args], { env })).stdout;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Failure(`ctr ${args.join(' ')}: ${said || String(error)}`);
  }
}

async function makeSettings(root: string, directory: string): Promise<void> {
  for (const place of ['/run', '/var/lib', '/var/log']) {
    if (resolve(root).startsWith(`${place}/`)) {
      throw new Failure(
        `--node cannot have its files in ${root}: inside it ${place} is another one; set THRESHER_TEST_ENV`,
      );
    }
  }
  const settings: Settings = {
    STATE: root,
    KBIN: linkPrograms(root, directory),
    PORT: String(await freePort(16443)),
    EPORT: String(await freePort(13379)),
    EPEERS: String(await freePort(13380)),
    NETID: String(freeNetwork()),
    NODE: nodeName,
  };
  writeFileSync(join(root, 'settings.json'), JSON.stringify(settings));
}

/** A node that was made before a program was needed gets it with its next start. */
function linkPrograms(root: string, directory: string): string {
  const programs = join(root, 'programs');
  mkdirSync(programs, { recursive: true, mode: 0o700 });
  for (const program of needed) {
    const link = join(programs, program);
    rmSync(link, { force: true });
    symlinkSync(requireBinary(directory, program), link);
  }
  return programs;
}

/** Two environments on a machine have networks of their own: 10.198.0.0, 10.199.0.0 ... */
function freeNetwork(): number {
  const taken = Object.keys(networkInterfaces());
  for (let id = 198; id < 254; id++) if (!taken.includes(`kn${id}h`)) return id;
  throw new Failure('every network from 10.198.0.0 to 10.253.0.0 has a node already: stop one');
}

function readSettings(directory: string): Settings | undefined {
  const path = join(directory, 'node', 'settings.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Settings) : undefined;
}

async function call(action: 'start' | 'purge', directory: string): Promise<void> {
  const env = { ...process.env, ...readSettings(directory) };
  const child = spawn('bash', [script, action], { stdio: ['ignore', 'ignore', 2], env });
  const status = await new Promise((ended, failed) => {
    child.once('error', failed);
    child.once('close', (code, signal) => {
      ended(code ?? signal);
    });
  });
  if (status !== 0)
    throw new Failure(`the node could not be ${action === 'start' ? 'started' : 'stopped'}, see above`);
  if (action === 'purge')
    rmSync(join(directory, 'node'), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

function runs(pidFile: string): boolean {
  if (!existsSync(pidFile)) return false;
  const [pid = 0, startTicks = 0] = readFileSync(pidFile, 'utf8').trim().split(' ').map(Number);
  return isAlive({ pid, startTicks });
}
