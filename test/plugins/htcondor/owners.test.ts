import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { Owners } from '../../../src/plugins/htcondor/owners.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { removeDirectory, temporaryDirectory } from '../../support/temporary.ts';

describe('the owners of jobs with our marks', () => {
  const { signal } = new AbortController();
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let fresh: Map<string, unknown>;
  /** What `condor_ping` says; an error: that it fails. */
  let user: string | undefined | Error;
  let asked: number;
  let owners: Owners;
  let file: string;
  /** The next daemon of this state directory. */
  let restart: () => Owners;

  beforeEach(() => {
    file = join(temporaryDirectory(), 'owners/S.json');
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
    restart = () => new Owners({ client, clock, log, submissionHost: 'S', fresh, file });
    owners = restart();
  });

  const away = () => new HTCondorError({ code: 'condor-unreachable', message: 'away', maybeDone: false });
  const job = (proc: number, owner: string | undefined) => ({ id: { cluster: 7, proc }, owner });
  const ours = async (...names: readonly (string | undefined)[]) => {
    const jobs = names.map((owner, proc) => job(proc, owner));
    return (await owners.part(jobs, signal)).ours.map(({ owner }) => owner);
  };
  const where = async () => (await owners.now(signal)).where;
  const said = () => log.lines.map(({ level, facts }) => [level, facts['owner'] ?? facts['code']]);

  it('are asked for once, as long as no other is met', async () => {
    expect(await ours()).to.deep.equal([]);
    expect(asked).to.equal(0);
    expect(await ours('pilot', 'games', undefined, '')).to.deep.equal(['pilot']);
    await clock.advance(120_000);
    expect(await ours('pilot', 'pilot@pool.test')).to.have.length(2);
    expect(asked).to.equal(1);
    expect(await where()).to.equal('member(splitUserName(Owner)[0], {"pilot"})');
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
    fresh.set('7.1', {});
    expect(await ours('mapped', 'mapped', 'games'), 'whatever job comes first').to.have.length(2);
    fresh.clear();
    expect(await ours('mapped')).to.deep.equal(['mapped']);
    // A job without an owner says nothing of others without one.
    fresh.set('7.0', {});
    expect(await ours(undefined, undefined)).to.deep.equal([]);
  });

  it('hole 8: are not those of jobs of which little was kept, and none are others before the schedd has said who thresher is', async () => {
    expect(owners.isOther(job(0, 'games'))).to.equal(false);
    await ours('pilot');
    fresh.set('7.1', undefined);
    const others = [job(0, 'games'), job(1, 'games'), job(2, 'pilot@pool.test'), job(3, undefined)];
    expect(others.map((one) => owners.isOther(one))).to.deep.equal([true, false, false, false]);
    // Whose job it is has been learned since it was read.
    const kept = { ...job(4, 'pilot'), isStranger: true as const };
    expect(await owners.part([kept, job(5, 'pilot')], signal)).to.deep.equal({
      ours: [job(5, 'pilot')],
      others: [kept],
    });
  });

  it('are known after a restart, also where thresher has become another user', async () => {
    fresh.set('7.1', {});
    expect(await ours('pilot', 'mapped')).to.have.length(2);
    fresh.clear();
    user = 'second@pool.test';
    owners = restart();
    expect(await ours('pilot', 'mapped', 'second', 'games')).to.deep.equal(['pilot', 'mapped', 'second']);
    user = away();
    owners = restart();
    expect(await ours('pilot', 'mapped', 'second', 'games')).to.deep.equal(['pilot', 'mapped', 'second']);
    expect(await where()).to.contain('{"mapped","pilot","second"}');
  });

  it('are not guessed where their file cannot be read: jobs of its own would be those of others', async () => {
    expect(await ours('pilot')).to.have.length(1);
    expect(readFileSync(file, 'utf8')).to.equal('{"users":["pilot"],"authenticates":true}\n');
    const refusal = async () =>
      owners.part([job(0, 'pilot')], signal).then(
        () => undefined,
        (error: unknown) => error as Error,
      );
    const wrong = ['', '{', '{"pilot":1}', 'null', '["pilot"]', '{"users":[1],"authenticates":true}'];
    for (const text of [...wrong, '{"users":["pilot"]}', `"${'x'.repeat(70_000)}"`]) {
      writeFileSync(file, text);
      owners = restart();
      expect(await refusal()).to.have.property('code', 'htcondor-owners-file');
      expect(await where().catch((error: unknown) => error)).to.have.property('code', 'htcondor-owners-file');
      expect(readFileSync(file, 'utf8')).to.equal(text);
    }
    expect((await refusal())?.message)
      .to.contain(`${file} cannot be read`)
      .and.to.contain('{"users":["NAME"]');
    // Operators may mend it while the daemon runs.
    writeFileSync(file, '{ "authenticates": true, "users": ["first"] }');
    expect(await ours('first', 'pilot', 'games')).to.deep.equal(['first', 'pilot']);
    rmSync(file);
    symlinkSync('elsewhere', file);
    owners = restart();
    expect(await refusal()).to.have.property('code', 'htcondor-owners-file');
    removeDirectory(dirname(file));
    writeFileSync(dirname(file), '');
    expect(await refusal()).to.have.property('code', 'htcondor-owners-file');
  });

  it('are none where an operator has removed the last one, and the schedd authenticates them still', async () => {
    mkdirSync(dirname(file), { recursive: true });
    const none = '{"users":[],"authenticates":true}\n';
    writeFileSync(file, none);
    user = away();
    expect(await ours('pilot')).to.deep.equal([]);
    owners = restart();
    expect(await ours('pilot')).to.deep.equal([]);
    expect(readFileSync(file, 'utf8')).to.equal(none);
    writeFileSync(file, '{"users":["pilot@pool.test"],"authenticates":true}');
    owners = restart();
    expect(await ours('pilot'), 'a name with its domain is that user, too').to.deep.equal(['pilot']);
  });

  it('are kept once the disk takes them, which is tried once a minute and told once', async () => {
    mkdirSync(dirname(dirname(file)), { recursive: true });
    expect(await where()).to.contain('pilot');
    // In the way of the file that it is written to before it gets its name.
    mkdirSync(dirname(file));
    const full = dirname(file);
    chmodSync(full, 0o500);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) mkdirSync(file);
    for (let at = 0; at < 3; at++) expect(await ours('pilot')).to.deep.equal(['pilot']);
    await clock.advance(60_000);
    expect(await ours('pilot')).to.deep.equal(['pilot']);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      'the users that thresher is on a schedd are not kept',
    ]);
    chmodSync(full, 0o700);
    if (isRoot) removeDirectory(file);
    expect(await ours('pilot')).to.deep.equal(['pilot']);
    expect(existsSync(file), 'before the minute is over').to.equal(false);
    await clock.advance(60_000);
    await Promise.all([ours('pilot'), ours('pilot')]);
    expect(readFileSync(file, 'utf8')).to.contain('"pilot"');
  });

  it('are not told apart on a schedd that authenticates nobody, as long as it does so', async () => {
    user = undefined;
    expect(await ours('games', undefined)).to.deep.equal(['games', undefined]);
    expect(await where()).to.equal('true');
    expect(said()).to.deep.equal([['warn', undefined]]);
    user = 'pilot@pool.test';
    await clock.advance(60_000);
    expect(await ours('games', 'pilot')).to.deep.equal(['pilot']);
    expect(await where()).to.contain('{"pilot"}');
  });

  it('are not all users for a login that fails after a restart: a schedd that named one authenticates its users', async () => {
    expect(await ours('pilot')).to.have.length(1);
    user = undefined;
    owners = restart();
    expect(await ours('pilot', 'games')).to.deep.equal(['pilot']);
    expect(await where()).to.contain('{"pilot"}');
    expect(String(owners.unanswered)).to.contain('authenticates nobody').and.to.contain(`remove ${file}`);
    user = 'second@pool.test';
    await clock.advance(5000);
    expect(await ours('pilot', 'games', 'second')).to.deep.equal(['pilot', 'second']);
    expect(owners.unanswered).to.equal(undefined);
    // A schedd that never named a user still authenticates nobody after a restart.
    rmSync(file);
    [user, owners] = [undefined, restart()];
    fresh.set('7.0', {});
    expect(await ours('mapped', 'games')).to.have.length(2);
    owners = restart();
    expect(await ours('mapped', 'games')).to.have.length(2);
    expect(await where()).to.equal('true');
  });

  it('are waited for no longer than a caller has time', async () => {
    const begun = Promise.withResolvers<undefined>();
    const whoAmI = () => {
      begun.resolve(undefined);
      return new Promise<string>(() => undefined);
    };
    owners = new Owners({ client: { whoAmI }, clock, log, submissionHost: 'S', fresh, file });
    owners.part([job(0, 'pilot')], signal).catch(() => undefined);
    await begun.promise;
    const stop = new AbortController();
    const waiting = owners.part([job(0, 'pilot')], stop.signal).catch((error: unknown) => error);
    stop.abort(new Error('no time'));
    expect(await waiting).to.have.property('message', 'no time');
  });

  it('are asked for once by many callers at once, and again where the one that asks gives up', async () => {
    const first = new AbortController();
    const answer = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<undefined>();
    const asking: AbortSignal[] = [];
    const client = {
      whoAmI: async (by: AbortSignal) => {
        asking.push(by);
        begun.resolve(undefined);
        if (by === first.signal) throw await answer.promise.then(() => new Error('given up'));
        return 'pilot@pool.test';
      },
    };
    owners = new Owners({ client, clock, log, submissionHost: 'S', fresh, file });
    const given = owners.part([job(0, 'pilot')], first.signal).catch((error: unknown) => error);
    // Each reads a file before it asks, and the file of another one may come first.
    await begun.promise;
    const others = [1, 2].map((proc) => owners.part([job(proc, 'pilot')], signal));
    first.abort();
    answer.resolve('');
    expect(await given).to.have.property('message', 'given up');
    for (const { ours } of await Promise.all(others)) expect(ours).to.have.length(1);
    expect(asking).to.deep.equal([first.signal, signal]);
  });

  it('are those that are known while the schedd does not say who thresher is, and it is asked again soon', async () => {
    user = away();
    expect(await ours('pilot', 'games')).to.deep.equal([]);
    expect(await where()).to.equal('member(splitUserName(Owner)[0], {})');
    expect(owners.unanswered).to.equal(user);
    expect(asked).to.equal(1);
    await clock.advance(5000);
    expect(await ours('pilot')).to.deep.equal([]);
    user = 'pilot@pool.test';
    await clock.advance(5000);
    expect(await ours('pilot', 'games')).to.deep.equal(['pilot']);
    expect(owners.unanswered).to.equal(undefined);
    // What is known stays known.
    user = away();
    await clock.advance(60_000);
    expect(await ours('pilot', 'games')).to.deep.equal(['pilot']);
    expect([owners.unanswered, asked]).to.deep.equal([undefined, 4]);
    expect(said()).to.deep.equal([
      ['warn', 'condor-unreachable'],
      ['warn', 'games'],
    ]);
  });
});
