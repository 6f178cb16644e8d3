import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';

const run = promisify(execFile);

interface Source {
  /** Folder with go.mod and go.sum, beside this file. */
  readonly module: string;
  readonly package: string;
  /** The module that decides the version. */
  readonly versioned: string;
  /** Variable that the program's version is put into; without one it knows it by itself. */
  readonly versionVariable?: string;
}

const kubernetes = (program: string, module = 'control-plane'): Source => ({
  module,
  package: `k8s.io/kubernetes/cmd/${program}`,
  versioned: 'k8s.io/kubernetes',
  versionVariable: 'k8s.io/component-base/version.gitVersion',
});

const sources = {
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3', versioned: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  kwok: {
    module: 'kwok',
    package: 'sigs.k8s.io/kwok/cmd/kwok',
    versioned: 'sigs.k8s.io/kwok',
    versionVariable: 'sigs.k8s.io/kwok/pkg/consts.Version',
  },
  kubelet: kubernetes('kubelet'),
  'kube-proxy': kubernetes('kube-proxy', 'kube-proxy'),
  kustomize: {
    module: 'kustomize',
    package: 'sigs.k8s.io/kustomize/kustomize/v5',
    versioned: 'sigs.k8s.io/kustomize/kustomize/v5',
  },
  helm: { module: 'helm', package: 'helm.sh/helm/v4/cmd/helm', versioned: 'helm.sh/helm/v4' },
} as const satisfies Record<string, Source>;

export type Program = keyof typeof sources;

/** What a control plane with fake nodes consists of, in the order of its start. */
export const programs = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
] as const satisfies readonly Program[];

/** What a real node needs beside a control plane. */
export const nodePrograms = ['kubelet', 'kube-proxy'] as const satisfies readonly Program[];

/** Programs that make objects of templates; no environment runs them. */
export const manifestPrograms = ['kustomize', 'helm'] as const satisfies readonly Program[];

export interface Binary {
  readonly path: string;
  readonly from: 'KUBEBUILDER_ASSETS' | 'PATH' | 'built';
}

/**
 * Where a program is.
 * @returns undefined if it has to be built: it is nowhere, or the built one is of other modules.
 */
export function findBinary(directory: string, program: Program): Binary | undefined {
  const assets = process.env.KUBEBUILDER_ASSETS;
  if (assets !== undefined && assets !== '') {
    const path = resolve(assets, program);
    if (isExecutable(path)) return { path, from: 'KUBEBUILDER_ASSETS' };
  }
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = resolve(folder, program);
    if (folder !== '' && isExecutable(path)) return { path, from: 'PATH' };
  }
  const path = builtPath(directory, program);
  return isExecutable(path) && readStamp(path) === stampOf(program) ? { path, from: 'built' } : undefined;
}

/** @throws if one is missing: nothing is built here. */
export function requireBinary(directory: string, program: Program): string {
  const found = findBinary(directory, program);
  if (found === undefined) {
    throw new Failure(`${program} is missing: build it with ./scripts/test-env kubernetes build`);
  }
  return found.path;
}

/** Builds what is missing. From nothing that takes minutes, so it says what it does. */
export async function buildBinaries(directory: string, wanted: readonly Program[]): Promise<void> {
  const missing = wanted.filter((program) => findBinary(directory, program) === undefined);
  if (missing.length === 0) return;
  await checkGo(missing);
  mkdirSync(join(directory, 'bin'), { recursive: true });
  for (const program of missing) {
    const { module, package: target } = sources[program];
    console.error(`test-env: building ${program} ${versionOf(program)}`);
    const path = builtPath(directory, program);
    // Moved to its place when it is whole: an interrupted build leaves none that looks so.
    const unfinished = `${path}.unfinished`;
    const flags = ['-trimpath', `-ldflags=${linkerFlags(program)}`, '-o', unfinished];
    await runGo(['build', ...flags, target], join(import.meta.dirname, module), program);
    renameSync(unfinished, path);
    writeFileSync(`${path}.modules`, stampOf(program));
  }
}

async function checkGo(missing: readonly Program[]): Promise<void> {
  const remedy =
    `${missing.join(', ')} must be built, which needs Go 1.26: install it from https://go.dev/dl ` +
    '(on Debian apt-get install golang-go may bring one new enough to fetch it), or set KUBEBUILDER_ASSETS to a ' +
    `directory with ${missing.join(', ')}`;
  let stdout: string;
  try {
    // Asked within a module: a Go that is too old there fetches the one it names.
    ({ stdout } = await run('go', ['env', 'GOVERSION'], { cwd: join(import.meta.dirname, 'etcd') }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure(`${why.includes('ENOENT') ? 'there is no Go' : why.trim()}: ${remedy}`);
  }
  const [, major = '0', minor = '0'] = /^go(\d+)\.(\d+)/.exec(stdout) ?? [];
  // Development versions of Go name no number.
  if (stdout.startsWith('devel')) return;
  if (Number(major) !== 1 || Number(minor) < 26) throw new Failure(`Go is ${stdout.trim()}: ${remedy}`);
}

async function runGo(args: readonly string[], cwd: string, program: Program): Promise<void> {
  const child = spawn('go', args, {
    cwd,
    stdio: ['ignore', 2, 2],
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  const status = await new Promise((ended, failed) => {
    child.once('error', failed);
    child.once('close', (code, signal) => {
      ended(code ?? signal);
    });
  });
  if (status !== 0)
    throw new Failure(`${program} could not be built: go ended with ${String(status)}, see above`);
}

/** The version that will be built. */
function versionOf(program: Program): string {
  const { module, versioned } = sources[program];
  const line = readFileSync(join(import.meta.dirname, module, 'go.mod'), 'utf8')
    .split('\n')
    .map((text) => text.trim().split(' '))
    .find(([name]) => name === versioned);
  return line?.[1] ?? 'unknown';
}

function linkerFlags(program: Program): string {
  const source: Source = sources[program];
  const version =
    source.versionVariable === undefined ? '' : ` -X ${source.versionVariable}=${versionOf(program)}`;
  return `-s -w${version}`;
}

function builtPath(directory: string, program: Program): string {
  return join(directory, 'bin', program);
}

/** What a program is built from. */
function stampOf(program: Program): string {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) {
    hash.update(readFileSync(join(import.meta.dirname, sources[program].module, file)));
  }
  return hash.update(linkerFlags(program)).digest('hex');
}

function readStamp(path: string): string | undefined {
  try {
    return readFileSync(`${path}.modules`, 'utf8');
  } catch {
    return undefined;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
