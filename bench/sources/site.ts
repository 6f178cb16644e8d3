import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** Settings of a daemon that the benchmark's source serves, where `asks`; and a queue file. @returns the settings file. */
export function writeSite(
  directory: string,
  { queues, asks }: { readonly queues: Readonly<Record<string, unknown>>; readonly asks: boolean },
): string {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'thresher.yaml');
  const settings = {
    master: { stateDir: 'state', harvester_id: 'bench' },
    submitter: { sleepTime: 1, maxNewWorkers: 20_000, blackHoleLifetime: 0 },
    monitor: { maxStatusAge: 3600 },
    sweeper: { listInterval: 3600, sleepTime: 3600 },
    http: { enabled: false },
    ...(asks && { sources: { bench: { module: join(import.meta.dirname, 'asker.ts') } } }),
  };
  writeFileSync(config, stringify(settings));
  writeFileSync(join(directory, 'panda_queueconfig.json'), JSON.stringify(queues, null, 2));
  return config;
}

/** One queue, BENCH, on the backend that answers at once. */
export function fakeQueue(demand: 'fill' | 'none', maxWorkers: number): Readonly<Record<string, unknown>> {
  const module = join(import.meta.dirname, '../core/fake-backend.ts');
  return {
    BENCH: {
      submitter: { name: 'FakeSubmitter', module },
      monitor: { name: 'FakeMonitor', module },
      sweeper: { name: 'FakeSweeper', module },
      common: { connection: 'cluster-0' },
      queueStatus: 'online',
      mapType: 'NoJob',
      demand,
      maxWorkers,
    },
  };
}
