import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { isPlan, planOf } from '../../../src/sources/interlink/pod/plan.ts';
import type { Planner } from '../../../src/sources/interlink/planner.ts';
import { Dice } from '../../campaign/dice.ts';
import { podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { recordedBody, strictContext } from '../../support/pods.ts';
import { headOf, RawConnection } from '../../support/raw-http.ts';
import { ownedPrefix, removeDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const seed = 20_261_123;
const injected = 9000;
const together = 300;
const overSockets = 1000;
const atOnce = 100;
/** Thousands of files are made durable: a disk would take most of the time. */
const memory = '/dev/shm';

/** The planner of the daemon, with nothing allowed. */
const planner: Planner = (data) => {
  const plan = planOf(data, strictContext);
  return isPlan(plan) ? plan : plan.map(({ at, message }) => `${at}: ${message}`);
};

const scraps: readonly unknown[] = [
  ...[null, true, -1, 1e308, 0.5, '', 'x', [], {}, [[]], 'a'.repeat(5000), 'ü\u2028\n', '\ud800', 'a\0b'],
  ...[
    '../x',
    '..',
    '/etc/passwd',
    '.',
    'a/b',
    '$(touch x)',
    '`touch x`',
    '; touch x',
    '%2e%2e%2fx',
    'x'.repeat(300),
  ],
  ...[
    JSON.parse('{"__proto__":{"polluted":1}}') as unknown,
    JSON.parse('{"constructor":{"prototype":{"polluted":1}}}') as unknown,
  ],
];
const keys = [
  'uid',
  'name',
  'namespace',
  '__proto__',
  'constructor',
  'prototype',
  'spec',
  'toString',
  'Opts',
  'JobID',
];
const urls = [
  '/create',
  '/delete',
  '/status',
  '/getLogs',
  '/system-info',
  '/',
  '/create/../x',
  '/%2e%2e/x',
  '/status/?a=1',
  '/%zz',
  '/__proto__',
];
const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'] as const;
const types = ['application/json', 'text/plain', 'x', 'application/json; charset=x', 'multipart/form-data'];
/** Each answer that a wrong request may get; 500 would be a fault of the sidecar. */
const allowed = [200, 400, 403, 404, 413, 414, 415, 417, 431];

const records = ['POST-create.json', 'POST-delete.json', 'GET-status.json'].map((name) =>
  JSON.stringify(recordedBody(name)),
);
const recordedUid = 'd6795d3f-d7a0-42b6-8932-68ea81c8af0f';

const dice = new Dice(seed);
const pick = <T>(list: readonly T[]): T => dice.pick(list) as T;
const chance = (of: number) => dice.throw() < of;

function damaged(value: unknown, rate: number): unknown {
  if (chance(rate)) return pick(scraps);
  if (Array.isArray(value)) return value.map((one) => damaged(one, rate));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, one]) => [key, damaged(one, rate)] as const);
  if (chance(rate)) entries.push([pick(keys), pick(scraps)]);
  // Not an assignment: "__proto__" is a key like others.
  return Object.fromEntries(entries.filter(() => !chance(rate / 2)));
}

function wholeBody(url: string): unknown {
  // A UID is never used again.
  if (chance(0.03)) {
    return JSON.parse(pick(records).replaceAll(recordedUid, randomUUID())) as unknown;
  }
  const pod = podOf('fuzz', randomUUID(), 'true');
  const SinceTime = pick(['0001-01-01T00:00:00Z', 'x', '9999-99-99T99:99:99Z']);
  const Opts = {
    Tail: 3,
    Bytes: 0,
    Timestamps: true,
    Follow: false,
    Previous: chance(0.1),
    SinceSeconds: 0,
    SinceTime,
  };
  const asked = {
    Namespace: 'default',
    PodUID: pod.metadata.uid,
    PodName: 'fuzz',
    ContainerName: 'main',
    Opts,
  };
  return (
    new Map<string, unknown>([
      ['/create', { pod, container: null, jobConfig: {} }],
      ['/status', [pod]],
      ['/getLogs', asked],
    ]).get(url) ?? pod
  );
}

/** Bytes of a body: damaged, cut, torn or noise. */
function bodyOf(url: string): Buffer {
  if (chance(0.05))
    return Buffer.from(Array.from({ length: dice.between(0, 300) }, () => dice.between(0, 255)));
  if (chance(0.02)) return Buffer.from('['.repeat(dice.between(1, 50_000)));
  if (chance(0.02)) return Buffer.from(`{"pod":${'{"a":['.repeat(3000)}1${']}'.repeat(3000)}}`);
  const bytes = Buffer.from(JSON.stringify(damaged(wholeBody(url), pick([0, 0.003, 0.05]))));
  if (chance(0.1)) return bytes.subarray(0, dice.between(0, bytes.length));
  if (chance(0.1))
    for (let count = 0; count < 5; count++) bytes[dice.between(0, bytes.length - 1)] = dice.between(0, 255);
  return bytes;
}

describe('random requests to the sidecar for interLink', () => {
  let top: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;

  before(async () => {
    top = mkdtempSync(ownedPrefix(existsSync(memory) ? memory : tmpdir()));
    sidecar = new SidecarUnderTest(join(top, 'root'), planner);
    app = await sidecar.start();
    await app.listen({ host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await sidecar.stop();
    removeDirectory(top);
  });

  async function requireNothingOutside(): Promise<void> {
    await sidecar.book.marked();
    expect(readdirSync(top)).to.deep.equal(['root']);
    for (const name of readdirSync(join(top, 'root'), { recursive: true }).map(String))
      expect(name).to.match(/^(output|pods)(\/[A-Za-z0-9-]+(\.json)?)?$/);
    for (const name of ['x', '../x', '..%2fx']) expect(existsSync(name), name).to.equal(false);
    expect(Object.keys(Object.prototype)).to.deep.equal([]);
    expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
  }

  it(`${injected} of them crash nothing, get a sentence each, and write nothing outside`, async () => {
    const counts = new Map<number, number>();
    const random = () => {
      const url = chance(0.8) ? pick(urls.slice(0, 4)) : pick(urls);
      const usual = url === '/create' || url === '/delete' ? 'POST' : 'GET';
      const headers: Record<string, string> = { 'content-type': pick(types) };
      if (chance(0.05))
        headers[pick(['interlink-http-session', 'traceparent', 'x-y'])] = 'ÿ\t"'.repeat(
          dice.between(1, 3000),
        );
      return { method: chance(0.8) ? usual : pick(methods), url, payload: bodyOf(url), headers } as const;
    };
    // Pods that come together share a batch: one after the other would wait for a batch each.
    for (let count = 0; count < injected; count += together)
      await Promise.all(
        Array.from({ length: together }, random).map(async (request) => {
          const { method, url, payload } = request;
          const { statusCode, payload: answer } = await app.inject(request);
          const what = `${method} ${url} ${payload.subarray(0, 500).toString()}: ${statusCode} ${answer}`;
          expect(statusCode, what).to.be.oneOf(allowed);
          if (statusCode !== 200 && method !== 'HEAD') expect(answer, what).to.match(/^[^\n]{1,2000}$/);
          counts.set(statusCode, (counts.get(statusCode) ?? 0) + 1);
        }),
      );
    await requireNothingOutside();
    for (const status of [200, 400, 404])
      expect(counts.get(status), String(status)).to.be.greaterThan(injected / 50);
    expect(sidecar.jobs.size, 'Pods that were good after all').to.be.greaterThan(50);
  }).timeout(120_000);

  it(`${overSockets} of them, whose bytes come torn, cut and late, leave the server as it was`, async () => {
    const { port } = app.server.address() as AddressInfo;
    const one = async () => {
      const url = pick(urls);
      const body = bodyOf(url);
      const wrong = chance(0.2) ? dice.between(-20, 20) : 0;
      const length = { 'Content-Length': String(Math.max(0, body.length + wrong)) };
      const head = headOf(pick(['GET', 'POST', 'PUT']), url, {
        Host: 'unix',
        ...length,
        ...(chance(0.05) && { X: 'x'.repeat(20_000) }),
      });
      const bytes = Buffer.concat([Buffer.from(head), body]);
      if (chance(0.2)) bytes[dice.between(0, bytes.length - 1)] = dice.between(0, 255);
      const connection = await RawConnection.to({ port });
      const middle = dice.between(0, bytes.length);
      connection.send(bytes.subarray(0, middle));
      const isCut = chance(0.2);
      if (!isCut) connection.send(bytes.subarray(middle));
      connection.finish();
      const answer = await connection.answer();
      connection.close();
      if (answer === undefined) return;
      const what = `${bytes.subarray(0, 600).toString('latin1')}: ${answer.status} ${answer.body}`;
      expect(answer.status, what).to.be.oneOf([...allowed, 408, 505]);
      if (answer.status !== 200 && answer.body !== '') expect(answer.body, what).to.match(/^[^\n]{1,2000}$/);
    };
    for (let count = 0; count < overSockets; count += atOnce)
      await Promise.all(Array.from({ length: atOnce }, one));
    await requireNothingOutside();
    const open = await until('all connections are closed', async () => {
      const left = await new Promise<number>((resolve) => {
        app.server.getConnections((_error, found) => {
          resolve(found);
        });
      });
      return left === 0;
    });
    expect(open).to.equal(true);
    const ping = await app.inject({ method: 'GET', url: '/status', payload: '[]' });
    expect(ping.statusCode).to.equal(200);
  }).timeout(60_000);
});
