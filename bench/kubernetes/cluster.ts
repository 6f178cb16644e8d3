import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Status } from '../../test/env/kubernetes/status.ts';
import { ControlPlane } from '../../test/support/kubernetes.ts';

const run = promisify(execFile);
const nodes = 10;
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

export interface Cluster {
  readonly plane: ControlPlane;
  /** Version of the API server, as it says itself. */
  readonly version: string;
  stop(): void;
}

/** A control plane that nobody else uses, with the programs of the test environment, which are built if they are missing. */
export async function startCluster(): Promise<Cluster> {
  await run(testEnv, ['kubernetes', 'build']);
  const { programs } = await status({});
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-cluster-'));
  const assets = join(directory, 'assets');
  mkdirSync(assets);
  for (const [name, program] of Object.entries(programs)) {
    if (program !== null) symlinkSync(program.path, join(assets, name));
  }
  const environment = { THRESHER_TEST_ENV: directory, KUBEBUILDER_ASSETS: assets };
  let stopped = false;
  const stop = () => {
    if (stopped) return;
    stopped = true;
    execFileSync(testEnv, ['kubernetes', 'stop'], { env: { ...process.env, ...environment } });
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', stop);
  await run(testEnv, ['kubernetes', 'start'], { env: { ...process.env, ...environment } });
  const plane = new ControlPlane(await status(environment));
  await addNodes(plane);
  const { gitVersion } = await plane.client.request<{ gitVersion: string }>('GET', '/version');
  return { plane, version: gitVersion, stop };
}

/** Nodes for more Pods than there will be: that of the test environment is full with 500 of 2 GB. */
async function addNodes({ client }: ControlPlane): Promise<void> {
  const size = { cpu: '10k', memory: '100Ti', 'ephemeral-storage': '1Pi', pods: '100k' };
  for (let number = 1; number <= nodes; number++) {
    await client.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `bench-${number}`, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
      status: { capacity: size, allocatable: size },
    });
  }
}

async function status(environment: Readonly<Record<string, string>>): Promise<Status> {
  // Its exit code says only whether something runs.
  const asked = run(testEnv, ['kubernetes', 'status'], { env: { ...process.env, ...environment } });
  const { stdout } = await asked.catch((error: unknown) => error as { stdout: string });
  return JSON.parse(stdout) as Status;
}
