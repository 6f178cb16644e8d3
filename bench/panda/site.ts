import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { PandaServer } from '../../test/support/panda.ts';

export interface PandaBenchSite {
  /** `harvester_id` */
  readonly id: string;
  /** Absent: a daemon without a link. */
  readonly server?: PandaServer;
  readonly queues: Readonly<Record<string, unknown>>;
}

/** Settings and queue file of a daemon with a link to the server, all of it as delivered but for what a benchmark says itself. */
export function writeSite(directory: string, { id, server, queues }: PandaBenchSite): void {
  mkdirSync(directory, { recursive: true });
  const settings = {
    master: { stateDir: 'state', harvester_id: id },
    submitter: { sleepTime: 1, maxNewWorkers: 10_000, blackHoleLifetime: 0 },
    monitor: { maxStatusAge: 3600 },
    sweeper: { listInterval: 3600, sleepTime: 3600 },
    http: { enabled: false },
    ...(server !== undefined && {
      pandacon: {
        server_api_url_ssl: server.url,
        cert_file: server.production.cert,
        key_file: server.production.key,
        ca_cert: server.ca,
      },
    }),
  };
  writeFileSync(join(directory, 'thresher.yaml'), stringify(settings));
  writeFileSync(join(directory, 'panda_queueconfig.json'), JSON.stringify(queues, null, 2));
}

/** A queue on the backend that answers at once. */
export function fakeQueue(name: string, workers: number, linked: boolean): Readonly<Record<string, unknown>> {
  const module = join(import.meta.dirname, '../core/fake-backend.ts');
  return {
    [name]: {
      submitter: { name: 'FakeSubmitter', module },
      monitor: { name: 'FakeMonitor', module },
      sweeper: { name: 'FakeSweeper', module },
      common: { connection: 'cluster-0' },
      queueStatus: 'online',
      mapType: 'NoJob',
      ...(linked ? { runMode: 'slave' } : { demand: 'fill' }),
      maxWorkers: workers,
      nQueueLimitWorker: workers,
    },
  };
}
