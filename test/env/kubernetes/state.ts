import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { programs } from './binaries.ts';
import type { Recorded } from './processes.ts';

export type Component = (typeof programs)[number];

/** Who needs the environment: processes, and who started it by hand. */
export type Holder = Recorded | 'by hand';

export interface Ports {
  readonly etcd: number;
  readonly etcdPeers: number;
  readonly apiServer: number;
}

/** What was started, as it stands in state.json. */
export interface State {
  readonly ports: Ports;
  readonly components: Partial<Record<Component, Recorded>>;
  /** Digest of the stages that kwok plays. */
  readonly stages?: string;
  readonly holders: readonly Holder[];
}

/** The files of an environment below its directory. */
export const placesIn = (directory: string) => {
  const root = join(directory, 'kubernetes');
  return {
    root,
    certificates: join(root, 'pki'),
    kubeconfig: join(root, 'kubeconfig'),
    log: (name: string) => join(root, `${name}.log`),
  };
};

/** @returns undefined if nothing was started. */
export function readState(directory: string): State | undefined {
  let text: string;
  try {
    text = readFileSync(join(placesIn(directory).root, 'state.json'), 'utf8');
  } catch {
    return undefined;
  }
  return JSON.parse(text) as State;
}

/** Written as a whole: `status` reads without the lock. */
export function writeState(directory: string, state: State): void {
  const path = join(placesIn(directory).root, 'state.json');
  writeFileSync(`${path}.new`, JSON.stringify(state));
  renameSync(`${path}.new`, path);
}
