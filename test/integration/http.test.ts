import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import type { RequestView } from '../../src/daemon/requests/request-view.ts';
import type { WorkerView } from '../../src/daemon/view.ts';
import { type RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const two = { maxWorkers: 2, nQueueLimitWorker: 2 };

/** What an answer has beside the request itself. */
interface Asked {
  readonly reasons: readonly { readonly code: string }[];
  readonly shownWorkers: readonly WorkerView[];
}

/** Where a daemon says that it listens. */
function urlOf(daemon: RunningDaemon): Promise<string> {
  return until('it listens', () => / listening url=(\S+)/.exec(daemon.output())?.[1]);
}

describe('a daemon over HTTP', () => {
  let site: Site;

  afterEach(async () => {
    await site.clean();
  });

  const serving = (http: Record<string, unknown>) =>
    new Site({
      queues: { Q: two },
      settings: { http: { enabled: true, port: 0, ...http } },
      pilot: 'echo "<script>alert(1)</script>"; echo trouble >&2; exec sleep 1000',
    });

  it('reads logs with the monitor that it has, however often it is asked', async () => {
    site = new Site({ queues: {}, settings: { http: { enabled: true, port: 0 } } });
    writeFileSync(
      site.path('counting.mjs'),
      `import { appendFileSync } from 'node:fs';
      export const Counting = {
        kind: 'monitor', name: 'Counting', module: '', aliases: [], config: {},
        connections: (config, { stateDir }) => ['local:' + stateDir + '/local'],
        check: async () => [], withFiles: async (config) => config,
        backend: {
          name: 'Counting',
          connect: () => {
            appendFileSync(${JSON.stringify(site.path('made'))}, 'a monitor\\n');
            const monitor = {
              observe: async (sink, signal) => {
                sink.begin();
                sink.complete();
                await new Promise((done) => signal.addEventListener('abort', done));
              },
              check: async () => new Map(),
              logs: { async *read() { yield Buffer.from('a log\\n'); } },
            };
            return { monitor };
          },
        },
      };\n`,
    );
    site.writeQueues({ Q: { ...two, monitor: { name: 'Counting', module: './counting.mjs' } } });
    const daemon = site.start();
    const url = await urlOf(daemon);
    const [worker] = await until('one is submitted', async () => {
      const all = await site.workers().catch(() => []);
      return all.length > 0 && all;
    });
    for (let times = 1; times <= 3; times++)
      expect(await (await fetch(`${url}api/workers/${worker!.workerID}/log`)).text()).to.equal('a log\n');
    expect(readFileSync(site.path('made'), 'utf8')).to.equal('a monitor\n');
  });

  it('shows what the command line shows, logs included, until it stops', async () => {
    site = serving({});
    const daemon = site.start();
    const url = await urlOf(daemon);
    const ask = async (path: string) => (await fetch(url + path)).text();
    await until('it is ready', async () => (await fetch(`${url}readyz`)).status === 200);
    // The observation of a worker is written a moment after its submission.
    const workers = await until('both run, and the daemon has written all that it saw of them', async () => {
      const all = JSON.parse(await ask('api/workers?status=running')) as WorkerView[];
      expect(all).to.have.length(2);
      expect(all).to.deep.equal(await site.workers());
      return all;
    });
    expect(JSON.parse(await ask('api/queues'))).to.have.nested.property('[0].name', 'Q');
    const { workerID } = workers[0]!;
    await until('both know the same of it', async () => {
      const { stdout } = await site.run('worker', String(workerID), '--output', 'json');
      const [detail] = JSON.parse(stdout) as object[];
      expect(JSON.parse(await ask(`api/workers/${workerID}`))).to.deep.equal(detail);
      return true;
    });
    // A worker counts as running before its pilot writes anything.
    await until(
      'its pilot has written',
      async () => (await ask(`api/workers/${workerID}/log?stream=stderr`)) === 'trouble\n',
    );
    expect(await ask(`api/workers/${workerID}/log`)).to.equal('<script>alert(1)</script>\n');
    const page = await ask(`workers/${workerID}`);
    expect(page)
      .to.contain('<pre>&lt;script&gt;alert(1)&lt;/script&gt;\n</pre>')
      .and.contain('<pre>trouble\n</pre>');
    expect(await ask('')).to.contain(`/workers/${workerID}`);
    const metrics = await until('the metrics count both', async () => {
      const text = await ask('metrics');
      return text.includes('thresher_workers{queue="Q",status="running"} 2\n') && text;
    });
    expect(metrics).to.contain('thresher_submissions_total{queue="Q",outcome="accepted"} 2\n');
    expect(metrics).to.match(/thresher_observation_to_database_seconds_count [1-9]/);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(await fetch(url).catch((error: unknown) => error instanceof TypeError)).to.equal(true);
  });

  it('ends in time although clients keep their connections open', async () => {
    site = serving({});
    const daemon = site.start();
    const url = await urlOf(daemon);
    await (await fetch(`${url}healthz`)).text();
    // For half a request the server would wait ten seconds.
    const half = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined);
    await once(half, 'connect');
    let answered = '';
    half.on('data', (piece) => (answered += String(piece)));
    half.write('GET /healthz HTTP/1.1\r\n');
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    half.destroy();
    // A server that had waited would have said so: 408.
    expect(answered).to.equal('');
  });

  it('does not start on a port in use, says what to do, and has submitted nothing', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    try {
      site = serving({ port });
      const daemon = site.start();
      expect(await daemon.ended).to.equal(1);
      expect(
        daemon
          .output()
          .split('\n')
          .filter((line) => line.startsWith('thresher:')),
      ).to.deep.equal([
        `thresher: 127.0.0.1:${port} is in use by another program, perhaps another thresher: set http.port in ` +
          `${site.config} to a free one (0: any), or http.enabled to false [http-port-in-use]`,
      ]);
      expect(await site.workers()).to.deep.equal([]);
      expect(site.liveProcesses()).to.equal(0);
      // The way out works, and it left the state directory to the next.
      const next = site.start(['--http-port', '0', '--for', '0.2s']);
      expect(await next.ended, next.output()).to.equal(0);
    } finally {
      other.close();
    }
  });

  it('says rather that a daemon runs already than that its port is in use', async () => {
    site = serving({});
    const first = site.start();
    const port = new URL(await urlOf(first)).port;
    const second = site.start(['--http-port', port]);
    expect(await second.ended).to.equal(1);
    expect(second.output()).to.contain('[already-running]');
  });

  const refused = async (http: Record<string, unknown>, write: () => void = () => undefined) => {
    site = serving(http);
    write();
    const daemon = site.start();
    expect(await daemon.ended).to.equal(1);
    expect(site.liveProcesses()).to.equal(0);
    return daemon.output();
  };

  it('is not opened to other machines without a token', async () => {
    expect(await refused({ host: '0.0.0.0' })).to.equal(
      `thresher: http.host in ${site.config} is 0.0.0.0, which other machines can reach: set http.tokenFile to a file ` +
        'with a token, or http.host to 127.0.0.1 [http-token-missing]\n',
    );
  });

  it('does not start without the token it was told to ask for', async () => {
    const must = 'it must hold the token, in one line [http-token-unreadable]\n';
    expect(await refused({ tokenFile: 'token' })).to.equal(
      `thresher: http.tokenFile ${site.path('token')}: cannot read the file: ENOENT: no such file or directory; ${must}`,
    );
    await site.clean();
    expect(
      await refused({ tokenFile: 'token' }, () => {
        writeFileSync(site.path('token'), '\n');
      }),
    ).to.equal(`thresher: http.tokenFile ${site.path('token')} is empty; ${must}`);
  });

  it('does not start on an address that is not of this machine', async () => {
    const output = await refused({ host: '192.0.2.1', tokenFile: 'token' }, () => {
      writeFileSync(site.path('token'), 'secret');
    });
    expect(output).to.match(
      /thresher: thresher cannot listen on 192\.0\.2\.1:0, .*EADDRNOTAVAIL.* \[http-address\]\n$/,
    );
  });

  it('refuses a port that is none', async () => {
    site = serving({});
    const { status, stderr } = await site.run('run', '--http-port', '70000');
    expect(status).to.equal(2);
    expect(stderr).to.contain('It must be a port: a whole number from 0 to 65535. [usage]');
  });

  it('takes a request by the token that writes, runs its worker, and says why the next one waits', async () => {
    site = new Site({
      queues: { Q: { maxWorkers: 1, demand: 'none' } },
      settings: {
        http: { enabled: true, port: 0, writeTokenFile: 'token' },
        submitter: { sleepTime: 30 },
      },
    });
    writeFileSync(site.path('token'), 'secret\n');
    const url = `${await urlOf(site.start())}api/requests`;
    const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' };
    const body = JSON.stringify({ queue: 'Q', payload: { argv: ['sleep', '1000'] } });
    const post = async () => {
      const answer = await fetch(url, { method: 'POST', headers, body });
      expect(answer.status).to.equal(201);
      return ((await answer.json()) as { id: string }).id;
    };
    interface Shown {
      readonly workers: Readonly<Record<string, number>>;
      readonly reasons: readonly { readonly code: string }[];
    }
    const shown = async (id: string) => (await (await fetch(`${url}/${id}`)).json()) as Shown;
    const first = await post();
    await until('its worker runs', async () => (await shown(first)).workers.running === 1);
    const second = await post();
    await until('it says why it waits', async () => (await shown(second)).reasons[0]?.code === 'max-workers');
    await until('the command line says it, too', async () =>
      (await site.run('requests', '--waiting')).stdout.includes('1 of maxWorkers 1 are alive'),
    );
    const { authorization } = headers;
    const gone = await fetch(`${url}/${first}`, { method: 'DELETE', headers: { authorization } });
    expect(gone.status).to.equal(200);
    await until('the next one runs', async () => (await shown(second)).workers.running === 1);
    expect((await shown(first)).workers).to.deep.equal({ cancelled: 1 });
  });

  it('lets other machines in with the token', async () => {
    site = serving({ host: '0.0.0.0', tokenFile: 'token' });
    writeFileSync(site.path('token'), 'secret\n');
    const url = (await urlOf(site.start())).replace('0.0.0.0', '127.0.0.1');
    const status = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(url + path, { headers })).status;
    expect(await status('api/queues')).to.equal(401);
    expect(await status('healthz')).to.equal(200);
    expect(await status('metrics', { authorization: 'Bearer secret' })).to.equal(200);
  });

  it('takes a request for workers once, runs it to its end, and takes another back', async () => {
    site = new Site({
      queues: { Q: { ...two, maxWorkers: 1, demand: 'none' } },
      settings: { http: { enabled: true, port: 0, tokenFile: 'token', writeTokenFile: 'write-token' } },
    });
    writeFileSync(site.path('token'), 'to-read\n');
    writeFileSync(site.path('write-token'), 'to-write\n');
    const url = await urlOf(site.start());
    await until('the queue runs', async () => (await site.queue('Q')).reasons[0]?.code === 'demand-none');
    const ask = async (method: string, path: string, body?: object, key?: string) => {
      const headers = {
        authorization: `Bearer ${method === 'GET' ? 'to-read' : 'to-write'}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      };
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      const answer = await fetch(`${url}api/requests${path}`, sent);
      return { status: answer.status, request: (await answer.json()) as RequestView & Asked };
    };
    const view = async (id: string) => (await ask('GET', `/${id}`)).request;

    const content = Buffer.from('#!/bin/sh\necho "$1"; exit 3\n').toString('base64');
    const files = [{ name: 'run.sh', mode: 0o755, content }];
    const script = { queue: 'Q', payload: { argv: ['./run.sh', `it's "$HOME"`], files } };
    const first = await ask('POST', '', script, 'nightly');
    expect(first.status).to.equal(201);
    const { id } = first.request;
    const ended = await until('its worker ended', async () => {
      const request = await view(id);
      return request.state === 'ended' && request;
    });
    expect(ended.shownWorkers).to.have.length(1);
    expect(ended.shownWorkers[0]).to.include({ status: 'failed', nativeExitCode: 3 });
    const { stdout } = await site.run('logs', String(ended.shownWorkers[0]?.workerID));
    expect(stdout).to.equal(`it's "$HOME"\n`);
    const again = await ask('POST', '', script, 'nightly');
    expect([again.status, again.request.id]).to.deep.equal([200, id]);

    const sleeper = { queue: 'Q', payload: { argv: ['sleep', '1000'] } };
    const runs = (await ask('POST', '', sleeper)).request.id;
    await until('the second runs', async () => (await view(runs)).workers.running === 1);
    const waits = (await ask('POST', '', sleeper)).request.id;
    await until('the third says why it waits', async () =>
      (await view(waits)).reasons.some(({ code }) => code === 'max-workers'),
    );
    expect(await ask('DELETE', `/${waits}?reason=enough`)).to.have.nested.property(
      'request.state',
      'withdrawn',
    );
    expect(await ask('DELETE', `/${runs}`)).to.have.property('status', 200);
    await until('the worker of the second has ended', async () => (await view(runs)).workers.cancelled === 1);
    // The queue has room again, and the request that was taken back does not use it.
    const last = (await ask('POST', '', sleeper)).request.id;
    await until('the fourth runs', async () => (await view(last)).workers.running === 1);
    expect(await view(waits)).to.deep.include({ workers: {}, withdrawReason: 'enough' });
    expect(await site.workers()).to.have.length(3);
  });
});
