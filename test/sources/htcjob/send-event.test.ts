import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { EventDoor } from '../../../src/sources/htcjob/job/event-door.ts';
import { htcJob, payloadOf } from '../../support/htc-jobs.ts';
import type { JobReport } from '../../../src/sources/htcjob/resource.ts';

const run = promisify(execFile);
const key = Buffer.from('k'.repeat(32));
const needed = ['sh', 'cat', 'date', 'dirname', 'head', 'mktemp', 'rm', 'sed', 'sleep', 'tail'];

describe('the sender of CloudEvents', () => {
  let directory: string;
  let server: Server;
  let url: string;
  let taken: JobReport[];
  /** Statuses before the door answers; 0 hangs up. */
  let first: number[];
  let seen: { readonly id: string | undefined; readonly body: string; readonly words: string }[];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'htcjob-event-'));
    taken = [];
    first = [];
    seen = [];
    const door = new EventDoor(key, (report) => taken.push(report) > 0);
    server = createServer((request, response) => {
      const answer = async () => {
        const body = await buffer(request);
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        );
        const { stdout: words } = await run('ps', ['-eo', 'args']);
        seen.push({ id: headers['ce-id'], body: String(body), words });
        const status = first.shift();
        if (status === 0) {
          request.socket.destroy();
          return;
        }
        const path = (request.url ?? '').slice(1);
        const given = door.answer({ method: request.method ?? '', path, headers, body });
        response.writeHead(status ?? given.status).end(given.body);
      };
      void answer();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/cloudevents`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true, force: true });
  });

  /** Sends from the files of a job on a machine that has these programs alone. */
  async function send(tool: string, { name = 'zero', tries = '3' } = {}) {
    const { files = [], env = {} } = payloadOf(htcJob({}, name, 'uid-1'), 4, { events: { url, key } });
    for (const { name: file, mode, content } of files) {
      writeFileSync(join(directory, file), Buffer.from(content, 'base64'));
      chmodSync(join(directory, file), mode);
    }
    const bin = join(directory, 'bin');
    mkdirSync(bin, { recursive: true });
    const tools = tool === 'python3' ? ['python3'] : [tool];
    for (const one of [...needed, ...tools]) {
      const place = ['/usr/bin', '/bin'].map((at) => join(at, one));
      const { stdout } = await run('sh', ['-c', 'command -v -- "$1" || true', 'sh', one]);
      symlinkSync(place.includes(stdout.trim()) ? stdout.trim() : (place[0] ?? ''), join(bin, one));
    }
    writeFileSync(join(directory, 'job.ad'), 'Arguments = "ClusterId = 9"\nClusterId = 17\nProcId = 4\n');
    const temporary = join(directory, 'tmp');
    mkdirSync(temporary, { recursive: true });
    const { stderr } = await run('/bin/sh', [join(directory, 'send-event.sh'), '3'], {
      env: {
        ...env,
        PATH: bin,
        TMPDIR: temporary,
        _CONDOR_JOB_AD: join(directory, 'job.ad'),
        HTCJOB_EVENT_TRIES: tries,
        HTCJOB_EVENT_PAUSE: '0',
      },
    });
    expect(readdirSync(temporary)).to.deep.equal([]);
    return stderr;
  }
  const report = { uid: 'uid-1', index: 4, returnCode: 3 };

  for (const tool of ['curl', 'wget', 'python3'])
    describe(`by ${tool}`, () => {
      it('tells of the end of a job, with its number on HTCondor, and shows its token to no one', async () => {
        const name = 'a "b" \\ $(id) %s';
        expect(await send(tool, { name })).to.equal('');
        expect(taken).to.deep.equal([report]);
        const [{ body, words } = { body: '', words: '' }] = seen;
        const { token, ...rest } = JSON.parse(body) as Record<string, unknown>;
        expect(rest).to.deep.equal({
          ...{ name, namespace: 'default', uid: 'uid-1', index: 4 },
          ...{ jobid: '17.4', retcode: '3' },
        });
        expect(words).to.contain(tool);
        expect(words).to.not.contain(String(token));
      });

      it('sends the same event again while the daemon is away or busy', async () => {
        first = [503, 0];
        expect(await send(tool)).to.equal('');
        expect(taken).to.deep.equal([report, report]);
        expect(new Set(seen.map(({ id }) => id)).size).to.equal(1);
        expect(seen).to.have.length(3);
      });

      it('gives up an event that is refused, and does not fail', async () => {
        first = [401];
        expect(await send(tool)).to.match(/not told to the daemon \(HTTP 401\)/);
        expect(seen).to.have.length(1);
      });

      it('gives up after some tries, and does not fail', async () => {
        first = [500, 500, 500];
        expect(await send(tool, { tries: '2' })).to.match(/HTTP 500/);
        expect(seen).to.have.length(2);
      });
    });

  it('says so where a machine has no program for it', async () => {
    expect(await send('true')).to.contain('no curl, wget or python3');
    expect(seen).to.deep.equal([]);
  });
});
