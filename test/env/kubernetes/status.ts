import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Binary, findBinary, type Program, programs } from './binaries.ts';
import { isAlive } from './processes.ts';
import { type NodeStatus, nodeStatus } from './node.ts';
import { placesIn, type Ports, readState } from './state.ts';

const run = promisify(execFile);

/** What `test-env kubernetes status` prints. */
export interface Status {
  /** Whether every component is alive. */
  readonly running: boolean;
  readonly directory: string;
  readonly server?: string;
  readonly kubeconfig?: string;
  /** ca.crt, admin.crt, admin.key. */
  readonly certificates?: string;
  readonly ports?: Ports;
  /** Of what is alive. */
  readonly pids: Readonly<Record<string, number>>;
  /** Who needs it: process ids, or 'by hand'. */
  readonly holders: readonly (number | string)[];
  /** Null: would have to be built. */
  readonly programs: Readonly<Record<string, (Binary & { readonly version: string }) | null>>;
  readonly node?: NodeStatus;
}

export async function readStatus(directory: string): Promise<Status> {
  const state = readState(directory);
  const { root, kubeconfig, certificates } = placesIn(directory);
  const alive = Object.entries(state?.components ?? {}).filter(([, recorded]) => isAlive(recorded));
  const described = await Promise.all(
    programs.map(async (program) => [program, await describe(directory, program)] as const),
  );
  const node = nodeStatus(directory);
  return {
    running: alive.length === programs.length,
    directory: root,
    ...(state && {
      server: `https://127.0.0.1:${state.ports.apiServer}`,
      kubeconfig,
      certificates,
      ports: state.ports,
    }),
    pids: Object.fromEntries(alive.map(([name, { pid }]) => [name, pid])),
    holders: (state?.holders ?? []).map((holder) => (holder === 'by hand' ? holder : holder.pid)),
    programs: Object.fromEntries(described),
    ...(node && { node }),
  };
}

async function describe(directory: string, program: Program) {
  const found = findBinary(directory, program);
  if (found === undefined) return null;
  const { stdout } = await run(found.path, ['--version']).catch(() => ({ stdout: '' }));
  return { ...found, version: /v?\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? 'unknown' };
}
