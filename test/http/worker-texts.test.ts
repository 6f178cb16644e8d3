import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import { logUrlsBy } from '../../src/daemon/log-urls.ts';
import { makeApp } from '../../src/http/app.ts';
import type { LogRequest } from '../../src/plugins/contracts/index.ts';
import { widths } from '../../src/clients/panda/widths.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { ServedSample } from '../support/served.ts';

describe('the texts of a worker', () => {
  let served: ServedSample;
  let app: FastifyInstance;
  let asked: LogRequest[];

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    asked = [];
    served.logs = {
      async *read(_, request) {
        asked.push(request);
        yield Buffer.from(`the ${request.stream}\n<script>alert(1)</script>\n`);
      },
    };
    app = await makeApp(served, undefined);
  });

  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  const urlsOf = logUrlsBy({ enabled: true, publicUrl: 'https://factory.example.org/thresher/' });
  const pathOf = (url: string) => url.replace('https://factory.example.org/thresher', '');

  it('stand at the addresses that the PanDA server gets, as plain text that no browser runs', async () => {
    served.rendered = async (id) => `# worker ${id}\nexecutable = pilot.sh\n`;
    const urls = urlsOf?.(1);
    if (urls === undefined) throw new Error('no addresses');
    const bodies: Record<string, string> = {};
    for (const [name, url] of Object.entries(urls) as [string, string][]) {
      const answer = await app.inject(pathOf(url));
      expect(answer.statusCode, url).to.equal(200);
      expect(answer.headers['content-type']).to.equal('text/plain; charset=utf-8');
      expect(answer.headers['x-content-type-options']).to.equal('nosniff');
      bodies[name] = answer.body.split('\n')[0] ?? '';
    }
    expect(bodies).to.deep.equal({
      stdOut: 'the stdout',
      stdErr: 'the stderr',
      batchLog: 'the job-log',
      jdl: '# worker 1',
    });
    expect(asked[0]).to.deep.equal({ stream: 'stdout', tail: 10_000, follow: false });
  });

  it('that are missing say so on a page', async () => {
    served.rendered = async () => {
      throw new ThresherError('file-unreadable', 'the template is gone');
    };
    served.logs = {
      async *read() {
        throw new ThresherError('no-log', 'it was never started');
      },
    };
    for (const [path, words] of [
      ['/workers/1/stdout', 'it was never started'],
      ['/workers/1/rendered', 'the job of worker 1 cannot be shown: the template is gone'],
      ['/workers/77/stdout', 'there is no worker 77'],
    ] as const) {
      const { statusCode, headers, body } = await app.inject(path);
      expect(statusCode, path).to.equal(404);
      expect(headers['content-type'], path).to.equal('text/html; charset=utf-8');
      expect(body).to.contain(words);
    }
  });

  it('of no more than two workers are rendered at once', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    served.rendered = () => promise;
    const first = [app.inject('/workers/1/rendered'), app.inject('/workers/2/rendered')];
    await Promise.all(first.map((one) => Promise.race([one, new Promise((next) => setImmediate(next))])));
    let third = await app.inject('/workers/3/rendered');
    for (let tries = 0; third.statusCode !== 503 && tries < 10; tries++)
      third = await app.inject('/workers/3/rendered');
    expect(third.statusCode).to.equal(503);
    resolve('done');
    for (const { statusCode, body } of await Promise.all(first)) {
      expect(statusCode).to.equal(200);
      expect(body).to.equal('done');
    }
  });
});

describe('addresses of logs', () => {
  it('are those of http.publicUrl, and none without it or without the server', () => {
    expect(logUrlsBy({ enabled: true, publicUrl: 'http://h:1' })?.(7)).to.deep.equal({
      stdOut: 'http://h:1/workers/7/stdout',
      stdErr: 'http://h:1/workers/7/stderr',
      batchLog: 'http://h:1/workers/7/job-log',
      jdl: 'http://h:1/workers/7/rendered',
    });
    expect(logUrlsBy({ enabled: true })).to.equal(undefined);
    expect(logUrlsBy({ enabled: false, publicUrl: 'http://h:1' })).to.equal(undefined);
  });

  it('fit the columns of the server: half an address leads nowhere', () => {
    const publicUrl = `https://${'x'.repeat(192)}`;
    const urls = logUrlsBy({ enabled: true, publicUrl })?.(Number.MAX_SAFE_INTEGER);
    for (const [name, url] of Object.entries(urls ?? {}) as [keyof typeof widths.worker, string][])
      expect(url.length).to.be.at.most(widths.worker[name]);
    expect(Object.keys(urls ?? {})).to.have.length(4);
  });
});
