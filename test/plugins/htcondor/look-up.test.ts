import { expect } from 'chai';
import { whereJobs } from '../../../src/clients/htcondor/classad.ts';
import { lookUp, portions, whereWorkers } from '../../../src/plugins/htcondor/look-up.ts';
import { marks } from '../../../src/plugins/htcondor/marks.ts';
import { find } from '../../../src/plugins/htcondor/submitting/fence.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { workerOf } from '../../support/samples.ts';

/** bytes, with its end. Source: MAX_ARG_STRLEN of Linux. */
const longestArgument = 128 * 1024;

describe('questions about many jobs', () => {
  it('are portions of which each is one argument, whatever is asked for', () => {
    const all = Array.from({ length: 1234 }, (_, at) => at);
    const some = portions(all);
    expect(some.flat()).to.deep.equal(all);
    for (const portion of some) {
      const jobs = whereJobs(portion.map((at) => ({ cluster: 2_000_000_000 + 2 * at, proc: 1_000_000 })));
      const workers = whereWorkers(portion.map((at) => 999_999_999_990_000 + at));
      expect(Math.max(jobs.length, workers.length)).to.be.lessThan(longestArgument - 10_000);
    }
    expect(portions([])).to.deep.equal([]);
  });
});

describe('jobs whose mark is an expression', () => {
  const { signal } = new AbortController();
  const expression = '/Expr(strcat("1","2"))/';
  /** A mark as its ad shows it, and its value when HTCondor is asked for that. */
  interface Marked {
    readonly cluster: number;
    readonly mark: string;
    /** Undefined: another one at each look; a question is then always answered with the job. */
    readonly value?: string;
  }
  let asked: string[];

  /** A schedd that answers a question about workers as HTCondor does: by values, and with the ads as they are. */
  function scheddOf({ queued = [], ended = [] }: { queued?: readonly Marked[]; ended?: readonly Marked[] }) {
    const among = (jobs: readonly Marked[], constraint: string) =>
      jobs.filter(({ value, cluster }) => {
        const ofWorker = value === undefined || constraint.includes(`"${value}"`);
        return (
          ofWorker && (!constraint.includes('ClusterId') || constraint.includes(`ClusterId == ${cluster} `))
        );
      });
    const adOf = ({ cluster, mark }: Marked) => ({
      ClusterId: cluster,
      ProcId: 0,
      JobStatus: 4,
      [marks.worker]: mark,
    });
    const ask = (what: string) => {
      asked.push(what);
      if (asked.length > 100) throw new Error('asked again and again');
    };
    const client = {
      queueAs: async (read: (ad: object) => unknown, constraint: string) => {
        ask('queue');
        return among(queued, constraint).map(adOf).map(read);
      },
      history: async (constraint: string, _: unknown, limit: number) => {
        ask('history');
        return among(ended, constraint).slice(0, limit).map(adOf);
      },
      evaluated: async (where: string, constraint: string, _: unknown, limit: number) => {
        ask(`values of the ${where}`);
        const jobs = among(where === 'queue' ? queued : ended, constraint).slice(0, limit);
        return jobs.map(({ cluster, value = '0.5' }) => [`${cluster}`, '0', `"${value}"`]);
      },
    };
    return {
      client,
      mine: 'true',
      submissionHost: 'S',
      fenced: new Map(),
      refused: new Map(),
      submits: { end: async () => new Map() },
      bundles: { dropAll: async () => undefined },
    } as never;
  }
  const found = (schedd: never, ...workerIds: number[]) =>
    find(
      schedd,
      workerIds.map((workerId) => workerOf(workerId)),
      systemClock,
      signal,
    );

  beforeEach(() => {
    asked = [];
  });

  it('hole 8: are found in the history with few questions, and hide no other job', async () => {
    const ended = [
      { cluster: 5, mark: expression, value: '12' },
      { cluster: 4, mark: expression, value: '12' },
      { cluster: 3, mark: '13', value: '13' },
    ];
    const outcomes = await found(scheddOf({ ended }), 12, 13, 14);
    expect(outcomes.get(12))
      .to.include({ kind: 'found' })
      .and.to.have.nested.property('handle.batchID', '5.0');
    expect(outcomes.get(13))
      .to.include({ kind: 'found' })
      .and.to.have.nested.property('handle.batchID', '3.0');
    expect(outcomes.get(14)).to.deep.equal({ kind: 'absent' });
    expect(asked).to.deep.equal(['queue', 'history', 'values of the history', 'history']);
  });

  it('hole 8: are found in the queue: a second job for their workers must not be made', async () => {
    const outcomes = await found(scheddOf({ queued: [{ cluster: 5, mark: expression, value: '12' }] }), 12);
    expect(outcomes.get(12)).to.include({ kind: 'found' });
    expect(asked).to.deep.equal(['queue', 'values of the queue']);
  });

  it('hole 8: leave a worker unknown if they have another value at each look and fill the answer, and no other', async () => {
    const ended = [{ cluster: 5, mark: '/Expr(string(random()))/' }];
    const queued = [{ cluster: 3, mark: '13', value: '13' }];
    const { jobs, unsaid } = await lookUp(scheddOf({ ended, queued }), [12, 13], signal, { history: true });
    expect([...jobs.keys()]).to.deep.equal([13]);
    expect([...unsaid.keys()]).to.deep.equal([12]);
    expect(unsaid.get(12)?.message).to.contain('5.0').and.to.contain(marks.worker);
    expect(asked).to.deep.equal(['queue', 'history', 'values of the history']);
    const outcomes = await found(scheddOf({ ended, queued }), 12, 13);
    expect(outcomes.get(12)).to.deep.include({ kind: 'unknown', error: unsaid.get(12) });
    expect(outcomes.get(13)).to.include({ kind: 'found' });
  });

  it('hole 8: end the questions also where no ad of an answer can be read', async () => {
    const schedd = scheddOf({});
    Object.assign((schedd as { client: object }).client, {
      history: async () => {
        asked.push('history');
        return asked.length > 100 ? [] : [{ [marks.worker]: expression }, {}];
      },
    });
    const { unsaid } = await lookUp(schedd, [12, 13], signal, { history: true });
    expect([...unsaid.keys()]).to.deep.equal([12, 13]);
    expect(asked).to.deep.equal(['queue', 'history']);
  });
});
