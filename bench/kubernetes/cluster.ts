import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Status } from '../../test/env/kubernetes/status.ts';
import { ControlPlane } from '../../test/support/kubernetes.ts';

const run = promisify(execFile);
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

export interface Cluster {
  readonly plane: ControlPlane;
  /** Of the API server, as it says itself. */
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
  const { gitVersion } = await plane.client.request<{ gitVersion: string }>('GET', '/version');
  return { plane, version: gitVersion, stop };
}

async function status(environment: Readonly<Record<string, string>>): Promise<Status> {
  // Its exit code says only whether something runs.
  const asked = run(testEnv, ['kubernetes', 'status'], { env: { ...process.env, ...environment } });
  const { stdout } = await asked.catch((error: unknown) => error as { stdout: string });
  return JSON.parse(stdout) as Status;
}
