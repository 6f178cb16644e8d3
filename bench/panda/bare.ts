/**
 * The bare client, as a child of the benchmark: `bare.ts DIRECTORY WORKERS ID QUEUE`. It sends the same changes as the daemon, in
 * batches of the same size, back to back on one connection, and keeps no promise.
 */
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Agent, request } from 'undici';
import { pandaDatetime } from '../../src/clients/panda/times.ts';
import { PandaEnvironment } from '../../test/support/panda.ts';
import { report, sleep } from '../core/site.ts';

const [, count = '', id = '', queue = ''] = process.argv.slice(2);
const workers = Number(count);
/** As delivered: `propagator.nWorkersInBulk`. */
const batch = 100;

export interface BareLoad {
  /** For all workers, ms. */
  readonly time: number;
}

const { url, ca, production } = new PandaEnvironment().server();
const connect = {
  ca: readFileSync(ca),
  cert: readFileSync(production.cert),
  key: readFileSync(production.key),
};
const dispatcher = new Agent({ connections: 1, headersTimeout: 0, bodyTimeout: 0, connect });

async function send(call: string, body: Buffer): Promise<void> {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'content-encoding': 'gzip',
  };
  const answer = await request(`${url}/harvester/${call}`, { method: 'POST', headers, body, dispatcher });
  const { success, message } = (await answer.body.json()) as { success: boolean; message: string };
  if (!success && call === 'update_workers') throw new Error(message);
}

const now = Date.now();
const zipped = (content: object) => promisify(gzip)(JSON.stringify({ harvester_id: id, ...content }));
function batches(status: string, more: (index: number) => object): Promise<Buffer[]> {
  return Promise.all(
    Array.from({ length: Math.ceil(workers / batch) }, (_, nth) => {
      const some = Array.from({ length: Math.min(batch, workers - nth * batch) }, (_, at) => {
        const index = nth * batch + at;
        return {
          workerID: index + 1,
          status,
          queueName: queue,
          computingSite: queue,
          harvesterHost: 'host.example.org',
          submissionHost: 'host.example.org',
          batchID: `fake-${index}`,
          jobType: 'managed',
          resourceType: 'SCORE',
          nativeStatus: 'Submitted',
          nCore: 1,
          nJobs: 0,
          minRamCount: 0,
          submitTime: pandaDatetime(now),
          ...more(index),
        };
      });
      return zipped({ workers: some });
    }),
  );
}

await send('heartbeat', await zipped({ data: { sw_version: 'bench' } }));
for (const body of await batches('submitted', () => ({}))) await send('update_workers', body);
const changes = await batches('running', (index) => ({
  nodeID: `node-${index % 500}.example.org`,
  startTime: pandaDatetime(now),
  nativeStatus: 'Running',
}));
const start = performance.now();
for (const body of changes) await send('update_workers', body);
const result: BareLoad = { time: performance.now() - start };
await dispatcher.close();
await report(result);
await sleep(60_000);
