import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { Owners } from '../../../src/plugins/htcondor/owners.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

describe('the owners of jobs with our marks', () => {
  const { signal } = new AbortController();
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let fresh: Map<string, unknown>;
  /** What `condor_ping` says; an error: that it fails. */
  let user: string | undefined | Error;
  let asked: number;
  let owners: Owners;

  beforeEach(() => {
    clock = new ManualClock();
    log = recordingLog();
    fresh = new Map();
    [user, asked] = ['pilot@pool.test', 0];
    const client = {
      whoAmI: async () => {
        asked++;
        if (user instanceof Error) throw user;
        return user;
      },
    };
    owners = new Owners({ client, clock, log, submissionHost: 'S', fresh });
  });

  const job = (proc: number, owner: string | undefined) => ({ id: { cluster: 7, proc }, owner });
  const ours = async (...names: readonly (string | undefined)[]) => {
    const jobs = names.map((owner, proc) => job(proc, owner));
    return (await owners.part(jobs, signal)).ours.map(({ owner }) => owner);
  };
  const said = () => log.lines.map(({ level, facts }) => [level, facts['owner'] ?? facts['code']]);

  it('are asked for once, as long as no other is met', async () => {
    expect(await ours()).to.deep.equal([]);
    expect(asked).to.equal(0);
    expect(await ours('pilot', 'games', undefined, '')).to.deep.equal(['pilot']);
    await clock.advance(120_000);
    expect(await ours('pilot', 'pilot@pool.test')).to.have.length(2);
    expect(asked).to.equal(1);
    expect(await owners.where(signal)).to.equal('member(Owner, {"pilot"})');
  });

  it('are asked for anew where another is met, once a minute: thresher may be another user by now', async () => {
    expect(await ours('pilot', 'second')).to.deep.equal(['pilot']);
    user = 'second@pool.test';
    expect(await ours('pilot', 'second')).to.deep.equal(['pilot']);
    await clock.advance(60_000);
    expect(await ours('pilot', 'second')).to.deep.equal(['pilot', 'second']);
    expect(asked).to.equal(2);
    // An answer that it has no name any more takes none away.
    user = undefined;
    await clock.advance(60_000);
    expect(await ours('pilot', 'games')).to.deep.equal(['pilot']);
    expect(said()).to.deep.equal([
      ['warn', 'second'],
      ['warn', 'games'],
    ]);
  });

  it('are also those of jobs that were just submitted: a superuser may name another owner', async () => {
    fresh.set('7.0', {});
    expect(await ours('mapped', 'games')).to.deep.equal(['mapped']);
    fresh.clear();
    expect(await ours('mapped')).to.deep.equal(['mapped']);
  });

  it('are not told apart on a schedd that authenticates nobody', async () => {
    user = undefined;
    expect(await ours('games', undefined)).to.deep.equal(['games', undefined]);
    expect(await owners.where(signal)).to.equal('true');
    expect(said()).to.deep.equal([['warn', undefined]]);
  });

  it('are asked for once by many callers at once, and again where the one that asks gives up', async () => {
    const first = new AbortController();
    const answer = Promise.withResolvers<string>();
    const asking: AbortSignal[] = [];
    const client = {
      whoAmI: async (by: AbortSignal) => {
        asking.push(by);
        if (by === first.signal) throw await answer.promise.then(() => new Error('given up'));
        return 'pilot@pool.test';
      },
    };
    owners = new Owners({ client, clock, log, submissionHost: 'S', fresh });
    const given = owners.part([job(0, 'pilot')], first.signal).catch((error: unknown) => error);
    const others = [1, 2].map((proc) => owners.part([job(proc, 'pilot')], signal));
    first.abort();
    answer.resolve('');
    expect(await given).to.have.property('message', 'given up');
    for (const { ours } of await Promise.all(others)) expect(ours).to.have.length(1);
    expect(asking).to.deep.equal([first.signal, signal]);
  });

  it('count for nothing while the schedd does not say who thresher is', async () => {
    user = new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
    expect(await ours('pilot', 'games')).to.deep.equal([]);
    expect(await owners.where(signal)).to.equal('member(Owner, {})');
    expect(asked).to.equal(1);
    user = 'pilot@pool.test';
    await clock.advance(60_000);
    expect(await ours('pilot', 'games')).to.deep.equal(['pilot']);
    expect(said()).to.deep.equal([
      ['warn', 'condor-unreachable'],
      ['warn', 'games'],
    ]);
  });
});
