import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { askIdleJobs, whereAmong } from '../../../src/sources/htcondor-idle/look/idle-jobs.ts';

const { signal } = new AbortController();
const cycle = 1000;

/** A schedd that answers with these lines. */
const answering = (...lines: readonly (readonly string[])[]) => ({
  queueLines: (
    _constraint: string,
    _attributes: readonly string[],
    onJob: (values: readonly string[] | undefined) => void,
  ): Promise<void> => {
    for (const line of lines) onJob(line);
    return Promise.resolve();
  },
});

/** @param since when it became idle @param matched when it was matched last */
const job = (
  proc: number,
  autocluster: string,
  since = 900,
  matched = 'undefined',
  ...more: readonly string[]
) => [...['7', `${proc}`, autocluster, `${since}`, matched, '"a \\"b\\""'], ...more];

const ask = (client: ReturnType<typeof answering>, signature?: readonly string[]) =>
  askIdleJobs(client, { cycle, extra: [], signature, known: () => undefined }, signal);

describe('idle jobs of a schedd', () => {
  it('a job counts that was idle before the last cycle began, and in no other second', async () => {
    const { groups, fresh } = await ask(answering(job(0, '1', 999), job(1, '1', 1000), job(2, '1', 1001)));
    expect([groups.get('1')?.count, fresh]).to.deep.equal([1, 2]);
  });

  it('a job that the last cycle has matched is about to run', async () => {
    const { groups, fresh } = await ask(answering(job(0, '1', 900, '1000'), job(1, '1', 900, '999')));
    expect([groups.get('1')?.count, fresh]).to.deep.equal([1, 1]);
  });

  it('a job without a time does not count', async () => {
    const { groups, fresh } = await ask(answering(['7', '0', '1', 'undefined', 'undefined', '"a"']));
    expect([groups.size, fresh]).to.deep.equal([0, 1]);
  });

  it('an owner may have quotes and blanks in the name', async () => {
    const { groups } = await ask(answering(job(0, '1')));
    expect([...(groups.get('1')?.owners ?? [])].map(([owner, { count }]) => [owner, count])).to.deep.equal([
      ['a "b"', 1],
    ]);
  });

  it('the last job of an autocluster stands for it', async () => {
    const { groups } = await ask(answering(job(0, '1'), job(1, '1'), job(2, '2')));
    const [owned] = groups.get('1')?.owners.values() ?? [];
    expect(owned).to.deep.equal({ count: 2, first: { cluster: 7, proc: 0 }, last: { cluster: 7, proc: 1 } });
  });

  it('jobs without an autocluster are told apart by their attributes', async () => {
    const lines = [job(0, 'undefined', 900, 'undefined', '1'), job(1, 'undefined', 900, 'undefined', '2')];
    expect((await ask(answering(...lines))).groups.size).to.equal(0);
    const { groups, loose } = await ask(answering(...lines), ['RequestCpus']);
    expect([groups.size, loose]).to.deep.equal([2, 2]);
  });

  it('jobs of too many kinds are dropped, and counted', async () => {
    const lines = Array.from({ length: 5003 }, (_, index) => job(index, `${index}`));
    const { groups, dropped } = await ask(answering(...lines));
    expect([groups.size, dropped]).to.deep.equal([5000, 3]);
  });

  it('hole 8: of owners without end a hundred thousand are kept, and none whose name is no name; jobs of others are dropped, and counted', async () => {
    const owned = (owner: string, at: number) => [...job(at, '1').slice(0, 5), `"${owner}"`];
    const lines = Array.from({ length: 100_003 }, (_, at) => owned(`o${at}`, at));
    const { groups, dropped } = await ask(
      answering(owned('x'.repeat(1001), 0), ...lines, owned('o7', 100_004)),
    );
    const owners = groups.get('1')?.owners;
    expect([owners?.size, dropped, owners?.get('o7')?.count]).to.deep.equal([100_000, 4, 2]);
  });

  /** A job of an owner, of a kind of its own. */
  const jobOf = (owner: string, autocluster: number) => [
    ...job(autocluster, `${autocluster}`).slice(0, 5),
    `"${owner}"`,
  ];

  it('hole 8: no owner with very many kinds of jobs takes the place of another', async () => {
    const evil = Array.from({ length: 9000 }, (_, index) => jobOf('eve', index));
    const honest = Array.from({ length: 300 }, (_, index) =>
      jobOf(index < 200 ? 'ana' : 'ben', 10_000 + index),
    );
    const kindsOf = async (lines: readonly (readonly string[])[]) => {
      const { groups, dropped } = await ask(answering(...lines));
      const counts: Record<string, number> = {};
      for (const { owners } of groups.values())
        for (const owner of owners.keys()) counts[owner] = (counts[owner] ?? 0) + 1;
      return { ...counts, dropped };
    };
    const expected = { eve: 4700, ana: 200, ben: 100, dropped: 4300 };
    expect(await kindsOf([...evil, ...honest])).to.deep.equal(expected);
    expect(await kindsOf([...honest, ...evil])).to.deep.equal(expected);
    // Kinds that another owner has as well are not hers to lose.
    const shared = Array.from({ length: 4900 }, (_, index) => jobOf('ana', index));
    expect(await kindsOf([...evil.slice(0, 5000), ...shared, ...honest])).to.deep.equal({
      eve: 4933,
      ana: 4934,
      ben: 33,
      dropped: 300,
    });
  });

  it('a job whose values cannot be read is dropped, and counted', async () => {
    const client = {
      queueLines: async (_: string, __: unknown, onJob: (values: readonly string[] | undefined) => void) => {
        for (const line of [job(0, '1'), undefined, job(1, '1')]) onJob(line);
      },
    };
    const { groups, dropped } = await ask(client);
    expect([groups.get('1')?.count, dropped]).to.deep.equal([2, 1]);
  });

  it('values of megabytes are no key', async () => {
    const long = 'a'.repeat(1_000_000);
    const lines = ['1', '2', '1'].map((end, at) => job(at, 'undefined', 900, 'undefined', `"${long}${end}"`));
    const { groups } = await ask(answering(...lines), ['Requirements']);
    expect([...groups.values()].map(({ key, count }) => [key.length < 100, count])).to.deep.equal([
      [true, 2],
      [true, 1],
    ]);
  });

  it('hole 8: a job with which HTCondor fails is left out, and each of the others counts once', async () => {
    const constraints: string[] = [];
    const failing = (code: 'condor-failed' | 'condor-answer' | 'condor-unreachable') => ({
      queueLines: (constraint: string, _: unknown, onJob: (values: readonly string[]) => void) => {
        constraints.push(constraint);
        onJob(job(0, '1'));
        if (!constraint.includes('size(unparse(Owner)) > '))
          return Promise.reject(new HTCondorError({ code, message: 'too long', maybeDone: false }));
        onJob(job(1, '1'));
        return Promise.resolve();
      },
    });
    for (const code of ['condor-failed', 'condor-answer'] as const)
      expect((await ask(failing(code))).groups.get('1')?.count).to.equal(2);
    expect(await rejection(ask(failing('condor-unreachable')))).to.have.property(
      'code',
      'condor-unreachable',
    );
    expect(constraints).to.have.length(5);
  });

  it('a question for as many ads as one has is shorter than an argument may be', () => {
    const jobs = Array.from({ length: 500 }, (_, index) => ({ cluster: 999_999_000 + index, proc: 999_999 }));
    expect(whereAmong(jobs).length).to.be.below(128 * 1024 - 1);
  });
});
