import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { Access } from '../../src/clients/kubernetes/access.ts';
import { KubernetesClient } from '../../src/clients/kubernetes/client.ts';
import { Pacer } from '../../src/clients/kubernetes/pacer.ts';
import type { RequestsOptions } from '../../src/clients/kubernetes/requests.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { files } from './operator-files.ts';
import { temporaryDirectory } from './temporary.ts';

/** A kubeconfig of one cluster, as a value. */
export function kubeconfig(
  cluster: Record<string, unknown>,
  user: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: 'grid' } }],
    clusters: [{ name: 'one', cluster }],
    users: [{ name: 'me', user }],
  };
}

/** Writes a kubeconfig, and returns its path. */
export function writeKubeconfig(value: unknown, directory = temporaryDirectory()): string {
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, typeof value === 'string' ? value : stringify(value));
  return file;
}

/** A client as fast as it can be; `file` is its kubeconfig. */
export function makeClient(
  file: string,
  options: Partial<Omit<RequestsOptions, 'access'>> & { readonly clock?: Clock } = {},
): KubernetesClient {
  const clock = options.clock ?? systemClock;
  const rate = { perSecond: 1_000_000, burst: 1_000_000 };
  const pacer = options.pacer ?? new Pacer(rate, clock, () => 0);
  const access = new Access({ kind: 'file', file }, { clock, files });
  return new KubernetesClient({ userAgent: 'thresher/test', ...options, access, pacer, clock });
}

/** What `promise` rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to fail, and did not');
}
