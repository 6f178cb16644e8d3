import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { EventServer } from '../../support/event-server.ts';
import { htcJob, payloadOf } from '../../support/htc-jobs.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const run = promisify(execFile);
const needed = ['sh', 'cat', 'date', 'dirname', 'head', 'mktemp', 'rm', 'sed', 'sleep', 'tail'];

describe('the sender of CloudEvents', () => {
  let directory: string;
  let server: EventServer;
  /** The processes of the machine when an event arrived: anyone can read their arguments. */
  let processes: string;

  beforeEach(async () => {
    directory = temporaryDirectory();
    server = await EventServer.start();
    server.arrived = async () => {
      processes = (await run('ps', ['-eo', 'args'])).stdout;
    };
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
  });

  /** Sends from the files of a job on a machine that has these programs alone. */
  async function send(tool: string, { name = 'zero', tries = '3' } = {}) {
    const { files = [], env = {} } = payloadOf(htcJob({}, name, 'uid-1'), 4, { events: server });
    for (const { name: file, mode, content } of files) {
      writeFileSync(join(directory, file), Buffer.from(content, 'base64'));
      chmodSync(join(directory, file), mode);
    }
    const bin = join(directory, 'bin');
    mkdirSync(bin, { recursive: true });
    for (const one of [...needed, tool]) {
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
        expect(server.taken).to.deep.equal([report]);
        const [{ body } = { body: '' }] = server.seen;
        const { token, ...rest } = JSON.parse(body) as Record<string, unknown>;
        expect(rest).to.deep.equal({
          name,
          namespace: 'default',
          uid: 'uid-1',
          index: 4,
          jobid: '17.4',
          retcode: '3',
        });
        expect(processes).to.contain(tool);
        expect(processes).to.not.contain(String(token));
      });

      it('sends the same event again while the daemon is away or busy', async () => {
        server.first = [503, 0];
        expect(await send(tool)).to.equal('');
        expect(server.taken).to.deep.equal([report]);
        expect(new Set(server.seen.map(({ id }) => id)).size).to.equal(1);
        expect(server.seen).to.have.length(3);
      });

      it('gives up an event that is refused, and does not fail', async () => {
        server.first = [401];
        expect(await send(tool)).to.match(/not told to the daemon \(HTTP 401\)/);
        expect(server.seen).to.have.length(1);
      });

      it('gives up after some tries, and does not fail', async () => {
        server.first = [500, 500, 500];
        expect(await send(tool, { tries: '2' })).to.match(/HTTP 500/);
        expect(server.seen).to.have.length(2);
      });
    });

  it('says so where a machine has no program for it', async () => {
    expect(await send('true')).to.contain('no curl, wget or python3');
    expect(server.seen).to.deep.equal([]);
  });
});
