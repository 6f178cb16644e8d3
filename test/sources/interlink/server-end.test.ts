import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { bounds } from '../../../src/sources/interlink/bounds.ts';
import { InterlinkClient, podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { goJson, headOf, RawConnection } from '../../support/raw-http.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the server of the sidecar at the end of the daemon', () => {
  let root: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  let port: number;
  let client: InterlinkClient;

  beforeEach(async () => {
    root = temporaryDirectory();
    sidecar = new SidecarUnderTest(root);
    app = await sidecar.start();
    await app.listen({ host: '127.0.0.1', port: 0 });
    ({ port } = app.server.address() as AddressInfo);
    client = new InterlinkClient({ port });
  });
  afterEach(() => sidecar.stop());

  it('answers a /create whose job the submitter has just submitted, and refuses one that gets none', async () => {
    sidecar.submits = false;
    const [good, bad] = [podOf('good', randomUUID(), 'true'), podOf('bad', randomUUID(), 'true')];
    const answers = Promise.all([client.create(good), client.create(bad)]);
    await until('both are accepted', () => sidecar.book.all.length === 2);
    const stopped = sidecar.stop();
    // The last pass of the submitter ends, and no news of it are brought any more.
    sidecar.jobs.set(good.metadata.uid, { workerId: 7, status: 'submitted', batchId: '7.0' });
    const [first, second] = await answers;
    expect(first.status, first.text).to.equal(200);
    expect(JSON.parse(first.text)).to.deep.equal({ PodUID: good.metadata.uid, PodJID: '7.0' });
    expect(second).to.deep.equal({
      status: 500,
      text: 'thresher stopped before the job of the Pod was submitted',
    });
    await stopped;

    sidecar = sidecar.next();
    app = await sidecar.start();
    await until(
      'the next daemon removes what is left of the refused Pod',
      () => !existsSync(join(root, 'pods', `${bad.metadata.uid}.json`)),
    );
    expect(sidecar.jobs.get(bad.metadata.uid)?.status).to.equal('withdrawn');
    expect(readdirSync(join(root, 'pods')).filter((name) => name.includes(good.metadata.uid))).to.have.length(
      1,
    );
  });

  it('ends logs that are followed without the look of a whole log', async () => {
    const pod = podOf('followed', randomUUID(), 'true');
    await client.created(pod);
    await sidecar.tell(pod.metadata.uid, { status: 'running', startTime: 1000 });
    const body = goJson(followed(pod.metadata.uid));
    const connection = await RawConnection.to({ port });
    const length = String(Buffer.byteLength(body));
    connection.send(headOf('GET', '/getLogs', { Host: 'unix', 'Content-Length': length }) + body);
    await until('its head has come', () => connection.received.startsWith('HTTP/1.1 200'));
    await sidecar.stop();
    await until('the connection is closed', () => connection.isClosed);
    expect(connection.received).not.to.include('\r\n0\r\n\r\n');
  });

  it(`refuses a log that is followed beside ${bounds.followedLogs} others, and answers all else`, async () => {
    const pod = podOf('crowd', randomUUID(), 'true');
    await client.created(pod);
    const { uid } = pod.metadata;
    await sidecar.tell(uid, { status: 'running', startTime: 1000 });
    const follow = () =>
      app.inject({ method: 'GET', url: '/getLogs', payload: JSON.stringify(followed(uid)) });
    const answers = Array.from({ length: bounds.followedLogs + 1 }, () => follow().catch(() => undefined));
    // All others have no end yet.
    const refused = await Promise.race(answers);
    expect(refused?.statusCode).to.equal(503);
    expect(refused?.payload).to.match(/^1000 logs are followed already/);
    expect((await client.ask('GET', '/status', [])).status).to.equal(200);
    await sidecar.stop();
    const codes = (await Promise.all(answers)).map((one) => one?.statusCode);
    expect(codes.filter((code) => code === 503)).to.have.length(1);
  });
});

/** The body of /getLogs for a log that has no end yet. */
function followed(uid: string) {
  const Opts = {
    Tail: 0,
    Bytes: 0,
    Timestamps: false,
    Follow: true,
    Previous: false,
    SinceSeconds: 0,
    SinceTime: '',
  };
  return { Namespace: 'default', PodUID: uid, PodName: 'pod', ContainerName: 'main', Opts };
}
