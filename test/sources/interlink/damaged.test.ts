import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { PodFiles } from '../../../src/sources/interlink/pods/pod-files.ts';
import { podOf } from '../../support/interlink-client.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { files } from '../../support/operator-files.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('a Pod of interLink whose file is damaged', () => {
  const pod = podOf('pod', randomUUID(), 'true');
  const { uid } = pod.metadata;
  let root: string;
  let file: string;
  let whole: Buffer;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;

  const ask = async (url: string, body: unknown) => {
    const { statusCode, payload } = await app.inject({ method: 'POST', url, payload: JSON.stringify(body) });
    return { status: statusCode, text: payload };
  };
  const jobStatus = () => sidecar.jobs.get(uid)?.status;

  /** The next daemon finds this in the file. */
  async function restartWith(content: Buffer | string): Promise<void> {
    await sidecar.stop();
    writeFileSync(file, content);
    const { jobs } = sidecar;
    sidecar = new SidecarUnderTest(root);
    for (const [of, job] of jobs) sidecar.jobs.set(of, job);
    app = await sidecar.start();
  }

  beforeEach(async () => {
    root = join(temporaryDirectory(), 'root');
    file = join(root, 'pods', `${uid}.json`);
    sidecar = new SidecarUnderTest(root);
    app = await sidecar.start();
    expect((await ask('/create', { pod, container: null, jobConfig: {} })).status).to.equal(200);
    await sidecar.tell(uid, { status: 'running', startTime: 0 });
    whole = readFileSync(file);
    await restartWith('{"version":');
  });
  afterEach(() => sidecar.stop());

  it('keeps its job, and has no state until the file is whole again', async () => {
    await sidecar.tell(uid, { status: 'running' });
    expect(jobStatus()).to.equal('running');
    expect(await ask('/status', [pod])).to.deep.equal({
      status: 500,
      text: `the file of the Pod ${uid} is damaged, and its job is left alone`,
    });
    await restartWith(whole);
    const { status, text } = await ask('/status', [pod]);
    expect(status).to.equal(200);
    expect(JSON.parse(text)).to.have.nested.property('[0].containers[0].state.running');
  });

  it('is named in the log with its file', async () => {
    const log = recordingLog();
    const { damaged } = await new PodFiles(root, log, files.laneOf(root)).load();
    expect(damaged).to.deep.equal([uid]);
    expect(log.lines.map(({ message, facts }) => [message, facts['pod'], facts['file']])).to.deep.equal([
      ['the file of a Pod is damaged, and its job is left alone', uid, file],
    ]);
  });

  it('is deleted with its job and its file, and is an unknown one then', async () => {
    expect((await ask('/delete', pod)).status).to.equal(200);
    expect(jobStatus()).to.equal('cancelled');
    await until('nothing is left of it', () => sidecar.book.get(uid) === undefined);
    expect(await new PodFiles(root, recordingLog(), files.laneOf(root)).load()).to.deep.equal({
      records: [],
      damaged: [],
    });
    const answer = await ask('/status', [
      { ...pod, metadata: { ...pod.metadata, annotations: { JobID: '1.0' } } },
    ]);
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('thresher knows no job of this Pod any more');
  });
});
