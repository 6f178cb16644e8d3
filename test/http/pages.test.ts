import { expect } from 'chai';
import { rememberSecret } from '../../src/util/own-secrets.ts';
import type { FastifyInstance } from 'fastify';
import { makeApp } from '../../src/http/app.ts';
import { duration } from '../../src/http/page-layout.ts';
import { linkedView, ServedSample } from '../support/served.ts';

describe('the pages', () => {
  let served: ServedSample;
  let app: FastifyInstance;

  beforeEach(async () => {
    served = await ServedSample.make();
    await served.fill();
    app = await makeApp(served, undefined);
  });

  afterEach(async () => {
    await app.close();
    await served.store.close();
  });

  const page = async (url: string, status = 200) => {
    const { statusCode, body, headers } = await app.inject(url);
    expect(statusCode, body).to.equal(status);
    expect(headers['content-type']).to.equal('text/html; charset=utf-8');
    expect(body).to.match(/^<!doctype html>/);
    return body;
  };

  it('need nothing but themselves, fit a phone and load themselves again', async () => {
    for (const url of ['/', '/workers/1']) {
      const body = await page(url);
      expect(body).to.contain('name="viewport" content="width=device-width, initial-scale=1"');
      expect(body).to.contain('http-equiv="refresh" content="10"');
      expect(body).not.to.match(/<script|<img|<link|src=|https?:/);
    }
  });

  it('show of each queue its state, counts, limits, and all its reasons', async () => {
    const body = await page('/');
    expect(body).to.match(/>Q<\/a>[^]*>running</);
    expect(body).to.match(/<b>1<\/b> pending[^]*<b>1<\/b> running[^]*<b>1<\/b> failed/);
    expect(body).to.contain('maxWorkers 2');
    expect(body).to.match(/2 of &lt;maxWorkers&gt; are alive[^]*paused &amp; so on/);
  });

  it('of a standby say who has the factory', async () => {
    expect(await page('/')).not.to.contain('standby');
    served.holder = { holder: 'ce02 pid 812', since: '2026-11-23T10:00:00Z' };
    expect(await page('/')).to.contain(
      'This daemon is a standby: ce02 pid 812 has the factory, since 2026-11-23T10:00:00Z.',
    );
  });

  it('name each service, and say why one fails', async () => {
    const reason = { code: 'source-failed', message: 'no route to <its> server' };
    served.at = [
      { name: 'queues', state: 'up', since: 1 },
      { name: 'source toy', state: 'failing', since: 1, reason },
    ];
    const body = await page('/');
    expect(body).to.contain('queues up · source toy failing');
    expect(body).to.match(/class="bad">\s*source toy: no route to &lt;its&gt; server/);
  });

  it('show the link to the PanDA server and its failures, where there is one', async () => {
    expect(await page('/')).not.to.contain('PanDA');
    served.link = linkedView(served.clock.now());
    const body = await page('/');
    expect(body).to.match(
      /PanDA: cern-1 at panda\.example\.org:25443 · asked for commands [^]*2 min[^]* · 5 changes not reported yet, the oldest [^]*10 min/,
    );
    expect(body).to.match(/class="bad">PanDA server: commands fails: production &lt;role&gt; required/);
  });

  it('escape whatever users, queues and pilots are called or say', async () => {
    served.logs = {
      async *read() {
        yield Buffer.from('</pre><script>alert(2)</script>\u001b[31m&amp; red\u001b[0m \u0007bell\n');
      },
    };
    const front = await page('/');
    expect(front).to.contain('ended with &lt;script&gt;alert(1)&lt;/script&gt;');
    expect(front).to.contain('href="/?queue=OTHER%2F%3Cb%3E%22x%22"');
    expect(front).to.contain('OTHER/&lt;b&gt;&quot;x&quot;');
    const worker = await page('/workers/2');
    expect(worker).to.contain(
      '<pre>&lt;/pre&gt;&lt;script&gt;alert(2)&lt;/script&gt;&amp;amp; red bell\n</pre>',
    );
    for (const body of [front, worker]) expect(body).not.to.contain('<script');
    expect(await page('/?queue=%3Cscript%3E')).not.to.contain('<script');
  });

  it('show no secret of ours that had control codes between its characters', async () => {
    const secret = 'Zx9kQ2mW7vT4pL8sR1bN6yH3cJ5dF0gA';
    rememberSecret(secret);
    served.logs = {
      async *read() {
        for (const code of ['\u0001', '\u001b[0m', '\u0085'])
          yield Buffer.from(`got ${secret.replaceAll(/.{4}/g, (four) => four + code)} back\n`);
      },
    };
    expect(await page('/workers/2')).to.contain(
      '<pre>got (hidden) back\ngot (hidden) back\ngot (hidden) back\n</pre>',
    );
  });

  it('show with a worker the computing element that it was sent to', async () => {
    expect(await page('/')).to.match(/\bat ce\.site\.test:9619/);
    expect(await page('/workers/1')).to.contain('ce.site.test:9619');
    expect(await page('/workers/2')).not.to.contain('ce.site.test');
  });

  it('show the workers of one queue on demand', async () => {
    expect(await page('/?queue=Q')).to.match(/Latest workers of Q[^]*href="\/workers\/3"/);
    expect(await page('/?queue=OTHER')).to.contain('There are none yet.');
  });

  it('show a worker with its error, its history and the ends of its logs, and why one is not there', async () => {
    served.logs = {
      async *read(_, { stream }) {
        if (stream === 'stderr') throw new Error('the cluster is away');
        yield Buffer.from('hello\n');
      },
    };
    const body = await page('/workers/2');
    expect(body).to.contain('<pre>hello\n</pre>');
    expect(body).to.contain(
      'log of worker 2 could not be read: the cluster is away <code>plugin-failed</code>',
    );
    expect(body).to.match(/pending → <span class="state bad"\s*>failed<\/span/);
    expect(body).to.match(/<dt>nativeExitCode<\/dt>\s*<dd>3<\/dd>/);
  });

  it('show the facts while a log hangs, as soon as its time is over', async () => {
    served.logs = {
      async *read() {
        await new Promise(() => undefined);
      },
    };
    const asked = page('/workers/2');
    while (served.clock.sleeping.length < 2) await served.clock.settle();
    await served.clock.advance(5000);
    expect(await asked).to.contain(
      'log of worker 2 did not come back within 5 s <code>plugin-timeout</code>',
    );
  });

  it('a failed page is a page, too', async () => {
    expect(await page('/workers/999', 404)).to.contain('there is no worker 999');
    expect(await page('/workers/<x>', 400)).to.contain('id is &quot;&lt;x&gt;&quot;');
    expect(await page('/?q=1', 400)).to.contain('there is no parameter &quot;q&quot;; known are queue');
  });

  it('say durations in the unit that a person would', () => {
    expect([0, 89_000, 90_000, 5_400_000, 129_600_000, -5].map(duration)).to.deep.equal([
      '0 s',
      '89 s',
      '2 min',
      '2 h',
      '2 d',
      '0 s',
    ]);
  });
});
