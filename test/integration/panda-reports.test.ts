import { expect } from 'chai';
import { PandaApi, type ReportedWorker } from '../../src/clients/panda/api.ts';
import { type PandaCall, PandaClient } from '../../src/clients/panda/client.ts';
import { PandaLogin } from '../../src/clients/panda/login.ts';
import { Dialogs } from '../../src/sources/panda/dialogs.ts';
import { Reporter } from '../../src/sources/panda/reporter.ts';
import type { LoggedTrouble } from '../../src/plugins/contracts/index.ts';
import { systemClock } from '../../src/util/clock.ts';
import { files } from '../support/operator-files.ts';
import { newPandaId, sharedPanda } from '../support/panda.ts';
import { PandaSite } from '../support/panda-site.ts';
import { workerNews } from '../support/panda-table.ts';
import { recordingLog } from '../support/samples.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

const signal = new AbortController().signal;

/** A row of the server's table of workers, by the names of its columns. */
type Row = Readonly<Record<string, string | number | null>>;
const rowsOf = (id: string): Promise<readonly Row[]> =>
  sharedPanda.rows<Row>(`SELECT * FROM harvester_workers WHERE harvesterid = '${id}' ORDER BY workerid`);

describe('reports to a real PanDA server', () => {
  let client: PandaClient;
  let id: string;
  /** Changes a body on its way, behind all that cuts texts. */
  let spoil: (workers: ReportedWorker[]) => void;

  before(async () => {
    const { url, ca, production } = sharedPanda.server();
    const { cert: certFile, key: keyFile } = production;
    const login = new PandaLogin({ kind: 'x509', certFile, keyFile }, ca, { files, clock: systemClock });
    client = new PandaClient({ url, login, clock: systemClock, timeout: 60_000 });
    id = newPandaId('pr');
    const api = new PandaApi(client, id);
    await until('the heartbeat is taken', async () => (await beat(api)).kind === 'ok');
  });

  after(() => client.close());

  beforeEach(() => {
    spoil = () => undefined;
  });

  const beat = (api: PandaApi) => api.heartbeat({ startTime: 0, version: '1', commit: '' }, signal);

  function reporter(): Reporter {
    const call: PandaClient['call'] = (asked: PandaCall, end) => {
      const workers = asked.body?.['workers'];
      if (Array.isArray(workers)) spoil(workers as ReportedWorker[]);
      return client.call(asked, end);
    };
    const api = new PandaApi({ call }, id);
    const probe = () => beat(api);
    return new Reporter({
      api,
      probe,
      note: () => undefined,
      clock: systemClock,
      log: recordingLog(),
      batch: 100,
      repeatAfter: 1_800_000,
      host: 'factory.example.org',
    });
  }

  it('fill its columns, whatever backends say, in as many bytes as these have', async () => {
    const anything = `größer ${'🌾'.repeat(400)}\u0000 end`;
    const facts = {
      status: 'failed' as const,
      errorCode: 'exit-status',
      diagMessage: anything,
      nativeStatus: anything,
      node: anything,
      batchId: anything,
      computingElement: anything,
      placement: 'htcondor:schedd.example.org,pool.example.org:9618',
      exitCode: 2 ** 40,
      startTime: Date.UTC(2026, 10, 21, 8, 40, 5, 7),
      endTime: Date.UTC(2026, 10, 21, 9),
    };
    await reporter().report([workerNews(1, 1, facts)], signal);
    const [row] = await rowsOf(id);
    expect(row).to.deep.include({
      workerid: 1,
      status: 'failed',
      queuename: 'SITE',
      errorcode: 3831,
      nativeexitcode: 2 ** 31 - 1,
      submissionhost: 'schedd.example.org,pool.example.org:9618',
      harvesterhost: 'factory.example.org',
      starttime: '2026-11-21T08:40:05.007',
      endtime: '2026-11-21T09:00:00',
    });
    expect(row?.['diagmessage']).to.match(/^exit-status: größer 🌾+\.\.\.$/u);
  });

  it('go on beside a worker whose text it refuses, and tell that one without it', async () => {
    spoil = (workers) => {
      for (const [at, worker] of workers.entries())
        if (worker.workerID === 142 && worker.diagMessage !== undefined)
          workers[at] = { ...worker, diagMessage: 'x'.repeat(600) };
    };
    const news = Array.from({ length: 100 }, (_, at) =>
      workerNews(101 + at, at, { status: 'finished', diagMessage: 'well', errorCode: null }),
    );
    const one = reporter();
    await one.report(news, signal);
    const rows = (await rowsOf(id)).filter(({ workerid }) => Number(workerid) > 100);
    expect(rows).to.have.length(100);
    expect(rows.every(({ status }) => status === 'finished')).to.equal(true);
    expect(rows.filter(({ diagmessage }) => diagmessage === 'well')).to.have.length(99);
    expect(one.facts.refused).to.deep.equal([]);
  });

  it('go on beside a worker that it never takes, and name it', async () => {
    spoil = (workers) => {
      for (const [at, worker] of workers.entries())
        if (worker.workerID === 302) workers[at] = { ...worker, diagMessage: 'y'.repeat(600) };
    };
    const one = reporter();
    await one.report([workerNews(301, 1), workerNews(302, 2), workerNews(303, 3)], signal);
    expect(one.facts.refused).to.deep.equal([302]);
    const ids = (await rowsOf(id)).map(({ workerid }) => workerid);
    expect(ids).to.include.members([301, 303]).and.not.to.include(302);
  });
});

describe('warnings for a real PanDA server', () => {
  it('stand in its table, cut to its columns', async () => {
    const { url, ca, production } = sharedPanda.server();
    const { cert: certFile, key: keyFile } = production;
    const login = new PandaLogin({ kind: 'x509', certFile, keyFile }, ca, { files, clock: systemClock });
    await using client = Object.assign(new PandaClient({ url, login, clock: systemClock, timeout: 60_000 }), {
      [Symbol.asyncDispose]: () => client.close(),
    });
    const id = newPandaId('pr');
    const trouble = { about: 'Q', facts: `why=${'ß'.repeat(900)}`, count: 3, at: Date.UTC(2026, 10, 21) };
    const waiting: LoggedTrouble[] = [
      { level: 'warn', message: 'submission refused', ...trouble },
      { level: 'error', message: 'pass failed', ...trouble },
    ];
    const outcomes: string[] = [];
    const dialogs = new Dialogs({
      api: new PandaApi(client, id),
      clock: systemClock,
      take: (most) => waiting.splice(0, most),
      level: 'WARNING',
      most: 50,
      note: ({ kind }) => outcomes.push(kind),
    });
    await dialogs.turn(signal);
    expect(outcomes).to.deep.equal(['ok']);
    const rows = await sharedPanda.rows<Row>(
      `SELECT * FROM harvester_dialogs WHERE harvester_id = '${id}' ORDER BY diagid`,
    );
    expect(rows.map(({ messagelevel, identifier }) => [messagelevel, identifier])).to.deep.equal([
      ['WARNING', 'Q'],
      ['ERROR', 'Q'],
    ]);
    expect(rows[0]?.['diagmessage']).to.match(/^submission refused \(3 times\): why=ß+\.\.\.$/);
    expect(rows[0]?.['creationtime']).to.equal('2026-11-21T00:00:00');
  });
});

describe('a daemon that a real PanDA server hears of', () => {
  let panda: PandaSite;
  let daemon: RunningDaemon;

  before(async () => {
    const publicUrl = 'https://factory.example.org/thresher';
    panda = await PandaSite.start({ settings: { http: { enabled: true, port: 0, publicUrl } } });
    daemon = panda.site.start();
  });

  after(() => panda.clean());

  it('gives it addresses at which it shows the output and the job of each worker', async () => {
    panda.order({ SCORE: 1 });
    await panda.untilServerHas(1, 'running');
    panda.letEnd();
    await panda.untilServerHas(1, 'finished');
    const [row] = await rowsOf(panda.id);
    const at = `https://factory.example.org/thresher/workers/${String(row?.['workerid'])}`;
    expect(row).to.deep.include({
      stdout: `${at}/stdout`,
      stderr: `${at}/stderr`,
      batchlog: `${at}/job-log`,
      jdl: `${at}/rendered`,
      nativeexitcode: 0,
    });
    const own = /http:\/\/127\.0\.0\.1:\d+/.exec(daemon.output())?.[0] ?? '';
    const read = async (path: string) => {
      const answer = await fetch(`${own}/workers/${String(row?.['workerid'])}/${path}`);
      return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
    };
    expect(await read('stdout')).to.deep.include({ status: 200, type: 'text/plain; charset=utf-8' });
    const rendered = await read('rendered');
    expect(rendered.status, rendered.text).to.equal(200);
    expect(rendered.text).to.match(/^# worker \d+ of /);
  });

  it('tells it how its process does', async () => {
    const metrics = await until('metrics of this instance', async () => {
      const [row] = await sharedPanda.rows<{ metrics: string }>(
        `SELECT metrics FROM harvester_metrics WHERE harvester_id = '${panda.id}'`,
      );
      return row && (JSON.parse(row.metrics) as Record<string, unknown>);
    });
    expect(metrics['rss_mib']).to.be.above(20);
    expect(metrics).to.include.keys('memory_pc', 'volume_state_pc', 'cert_lifetime');
  });
});
