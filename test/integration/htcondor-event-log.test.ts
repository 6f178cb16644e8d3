import { join } from 'node:path';
import { expect } from 'chai';
import { whereJobs } from '../../src/clients/htcondor/classad.ts';
import { type LogPosition, readLog } from '../../src/clients/htcondor/event-log-file.ts';
import type { JobEvent } from '../../src/clients/htcondor/event-types.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { queueRows } from '../support/condor-jobs.ts';
import { until } from '../support/until.ts';

const { signal } = new AbortController();

async function whole(path: string): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  let position: LogPosition | undefined;
  for (let more = true; more;) {
    const read = await readLog(path, position, Date.now());
    expect(read.garbage).to.deep.equal([]);
    events.push(...read.events);
    ({ position, more } = read);
  }
  return events;
}

/** Without what comes at times of its own, and with what a test can expect. */
function essence(events: readonly JobEvent[], cluster: number): Record<number, unknown[]> {
  const all: Record<number, unknown[]> = {};
  for (const event of events.filter((one) => one.cluster === cluster)) {
    if (event.kind === 'image-size' || event.kind === 'file-transfer' || event.kind === 'other') continue;
    const { proc } = event;
    const rest = Object.fromEntries(
      Object.entries(event).filter(([name]) => !['time', 'proc', 'cluster'].includes(name)),
    );
    expect(event.time).to.be.within(Date.now() - 300_000, Date.now() + 60_000);
    (all[proc] ??= []).push(rest);
  }
  return all;
}

describe('the event logs of a real pool', () => {
  let pool: Pool;
  let space: CondorSpace;
  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
  });
  after(() => clearSpaces(pool, [space]));

  it('tell the same of every end of a job as text, as XML, as JSON and in the log of the factory', async () => {
    const client = clientOf(pool, 'local');
    const text = (xml: boolean) =>
      [
        ...['executable = /bin/sh', `arguments = "-c '$(script)'"`, 'transfer_executable = false'],
        ...['should_transfer_files = YES', `initialdir = ${space.directory}`, 'input = $(in)'],
        ...[`log = ${xml ? 'xml' : 'text'}.log`, ...(xml ? ['log_xml = true'] : [])],
        ...[`dagman_log = ${space.directory}/factory.log`, `+thresherFactory = "${space.factory}"`],
        '',
      ].join('\n');
    const dev = '/dev/null';
    const rows = [
      [dev, 'exit 0'],
      [dev, 'exit 7'],
      [dev, 'kill -9 $$'],
      [dev, 'sleep 600'],
      ['/no/such', 'true'],
    ];
    const clusters: number[] = [];
    for (const xml of [false, true]) {
      const jobs = await client.submit(`${text(xml)}${queueRows(['in', 'script'], rows)}`, {}, signal);
      const cluster = jobs[0]?.cluster ?? 0;
      clusters.push(cluster);
      const statuses = async () => {
        const ads = await client.queue(`ClusterId == ${cluster}`, ['ProcId', 'JobStatus'], signal);
        return ads
          .map(({ ProcId, JobStatus }) => `${String(ProcId)}:${String(JobStatus)}`)
          .sort()
          .join(' ');
      };
      await until('three have ended, one runs, one is held', async () => (await statuses()) === '3:2 4:5');
      await client.act('remove', whereJobs(jobs), 'enough of it', signal);
      await until('all are gone', async () => (await statuses()) === '');
    }
    const [plain = 0, xml = 0] = clusters;
    const file = (name: string) => join(space.directory, name);
    const fromText = essence(await whole(file('text.log')), plain);
    const kinds = (all: Record<number, unknown[]>) =>
      Object.values(all).map((events) => (events as { kind: string }[]).map(({ kind }) => kind));
    const ended = ['submit', 'execute', 'terminated'];
    expect(kinds(fromText).slice(0, 3)).to.deep.equal([ended, ended, ended]);
    expect(kinds(fromText)[3]?.at(-1)).to.equal('aborted');
    expect(kinds(fromText)[4]).to.include.members(['submit', 'held', 'aborted']);
    expect([0, 1, 2].map((proc) => fromText[proc]?.at(-1))).to.deep.equal([
      { kind: 'terminated', end: { exitCode: 0 } },
      { kind: 'terminated', end: { exitCode: 7 } },
      { kind: 'terminated', end: { signal: 9 } },
    ]);
    expect(fromText[3]?.at(-1)).to.include({ kind: 'aborted', reason: 'enough of it (by user pilot)' });
    const held = fromText[4]?.find((one) => (one as JobEvent).kind === 'held') as Record<string, unknown>;
    expect(held).to.deep.include({ kind: 'held', code: 13 });
    expect(held['reason']).to.contain('/no/such');
    expect(essence(await whole(file('factory.log')), plain)).to.deep.equal(fromText);
    await until(
      'the log of the pool has all',
      async () =>
        kinds(essence(await whole(pool.eventLog), plain)).flat().length >= kinds(fromText).flat().length,
    );
    expect(essence(await whole(pool.eventLog), plain)).to.deep.equal(fromText);
    const fromXml = essence(await whole(file('xml.log')), xml);
    expect(kinds(fromXml)).to.deep.equal(kinds(fromText));
    await until(
      'the log of the pool has these, too',
      async () =>
        kinds(essence(await whole(pool.eventLog), xml)).flat().length >= kinds(fromXml).flat().length,
    );
    expect(essence(await whole(pool.eventLog), xml)).to.deep.equal(fromXml);
  });
});
