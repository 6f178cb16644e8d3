import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { judgeOne } from '../../../src/agents/credentials/credential-board.ts';
import { CondorTokenCredManager } from '../../../src/plugins/credentials/condor-idtoken/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { fromOutside } from '../../../src/util/own-secrets.ts';
import { inspected, makeManager, mistakes, renewed } from '../../support/credential-manager.ts';
import { anyTimes, makeJwt } from '../../support/credentials.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const signal = new AbortController().signal;
const identity = 'pilot@pool.example.org';

describe('CondorTokenCredManager', () => {
  let directory: string;

  beforeEach(() => {
    directory = temporaryDirectory();
  });

  const manager = (options: object = {}, clock?: Clock) =>
    makeManager(CondorTokenCredManager, { directory, ...options }, clock && { clock });
  const put = (name: string, text: string) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
  };
  const seconds = (ms: number) => Math.floor(ms / 1000);

  it('watches all tokens that HTCondor would read, with the one of a file that ends first', async () => {
    const first = makeJwt({ sub: 'a@pool', iss: 'pool', iat: 1, exp: 2000 });
    put(
      'several',
      `# tokens\n${makeJwt({ sub: 'b@pool' })}\n\n${first}\n${makeJwt({ sub: 'c', exp: 3000 })}`,
    );
    put('endless', makeJwt({ sub: 'd@pool', iss: 'pool' }));
    put('rubbish', 'rubbish');
    put('empty', '# nothing\n');
    for (const name of ['.hidden', 'old~', '#editor#', 'x.rpmsave']) put(name, 'rubbish');
    mkdirSync(join(directory, 'below'));
    const states = await inspected(manager());
    const shown = states.map((state) =>
      state.kind === 'there'
        ? [state.facts.name, state.facts.subject, state.facts.expiresAt]
        : [state.name, state.error.code],
    );
    const at = (name: string) => join(directory, name);
    expect(shown).to.deep.equal([
      [at('below'), 'credential-wrong'],
      [at('empty'), 'credential-wrong'],
      [at('endless'), 'd@pool', undefined],
      [at('rubbish'), 'credential-wrong'],
      [at('several'), 'a@pool', 2_000_000],
    ]);
  });

  it('hole 3: has no token of the directory shown by a server that repeats it', async () => {
    const tokens = Array.from({ length: 3 }, (_, at) =>
      makeJwt({ sub: `own${at}@pool`, iss: 'pool', exp: 4e9 }),
    );
    put('several', tokens.slice(1).join('\n'));
    put('one', tokens[0] ?? '');
    await renewed(manager());
    for (const token of tokens)
      expect(fromOutside(`bad ${Buffer.from(token).toString('base64')}`)).to.equal('bad (hidden)');
  });

  it('names the line that is no token, and the directory that is missing', async () => {
    put('several', `${makeJwt({ sub: 'a' })}\nrubbish\n`);
    const [state] = await inspected(manager());
    expect(state).to.have.nested.property(
      'error.message',
      `${join(directory, 'several')}, line 2, is no JWT (three parts of base64url with dots between them)`,
    );
    const [missing] = await inspected(manager({ directory: '/nowhere' }));
    expect(missing).to.deep.include({ kind: 'broken', name: '/nowhere' });
    expect((await renewed(manager({ directory: '/nowhere' })))[0]).to.contain('credential-missing');
  });

  it('renews none that it did not make, and says so', async () => {
    put('token', makeJwt({ sub: 'a', exp: 4e9 }));
    put('old', makeJwt({ sub: 'a', exp: 4 }));
    expect((await renewed(manager())).map((one) => one.split(':')[0])).to.deep.equal([
      'credential-only-watched',
      'unchanged',
    ]);
    const own = manager();
    const before = await own.fingerprint?.(signal);
    put('another', 'x');
    expect(await own.fingerprint?.(signal)).to.not.equal(before);
  });

  /** A program in place of condor_token_create that prints this. */
  function program(output: string, status = 0): string {
    const path = join(temporaryDirectory(), 'tool');
    writeFileSync(`${path}.out`, output);
    writeFileSync(path, `#!/bin/sh\nprintf "%s\\n" "$@" >"$0.args"\ncat "$0.out"\nexit ${status}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  const create = [{ name: 'pilot', identity, lifetime: 1000, authz: ['READ', 'WRITE'], key: 'POOL' }];

  it('makes a token, and makes it anew at half its life', async () => {
    const clock = new ManualClock();
    const fresh = () =>
      makeJwt({ sub: identity, iat: seconds(clock.now()), exp: seconds(clock.now()) + 1000 });
    const tool = program(`${fresh()}\n`);
    const own = manager({ create, renewCommand: tool }, clock);
    expect((await inspected(own))[0]).to.have.nested.property('error.code', 'credential-missing');
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(readFileSync(join(directory, 'pilot'), 'utf8')).to.equal(`${fresh()}\n`);
    expect(statSync(join(directory, 'pilot')).mode & 0o777).to.equal(0o600);
    const args = [
      '-identity',
      identity,
      '-lifetime',
      '1000',
      '-authz',
      'READ',
      '-authz',
      'WRITE',
      '-key',
      'POOL',
    ];
    expect(readFileSync(`${tool}.args`, 'utf8').trim().split('\n')).to.deep.equal(args);
    await clock.advance(490_000);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(20_000);
    writeFileSync(`${tool}.out`, fresh());
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(await renewed(own, true)).to.deep.equal(['renewed']);
    expect((await inspected(own))[0]).to.have.nested.property('facts.expiresAt', clock.now() + 1_000_000);
  });

  it('keeps the last good token when the program fails or prints something else, which is not shown', async () => {
    const clock = new ManualClock();
    const good = makeJwt({ sub: identity, iat: seconds(clock.now()), exp: seconds(clock.now()) + 1000 });
    put('pilot', good);
    const failing = async (tool: string) =>
      (await renewed(manager({ create, renewCommand: tool }, clock), true))[0] ?? '';
    const other = makeJwt({ sub: 'root@pool', exp: 4e9 });
    expect(await failing('/nowhere/condor_token_create')).to.match(/^credential-tool: .*was not found/);
    const said = await failing(program(`cannot sign\n${other}`, 1));
    expect(said).to.match(/^credential-tool: .* ended with exit status 1: cannot sign; \(hidden\)$/);
    expect(await failing(program(''))).to.contain('is empty');
    expect(await failing(program(good.slice(0, 30)))).to.contain('credential-wrong');
    expect(await failing(program(other))).to.contain(`is of root@pool, and not of ${identity}`);
    expect(await failing(program(makeJwt({ sub: identity })))).to.contain('has no end');
    const short = makeJwt({ sub: identity, exp: seconds(clock.now()) + 90 });
    expect(await failing(program(short))).to.contain('it must last 100 s at least');
    const ahead = seconds(clock.now()) + 86_400;
    const early = makeJwt({ sub: identity, nbf: ahead, exp: ahead + 1000 });
    expect(await failing(program(early))).to.match(
      /^credential-unfit: the new token pilot is not valid before 2/,
    );
    expect(readFileSync(join(directory, 'pilot'), 'utf8')).to.equal(good);
    expect(readdirSync(directory)).to.deep.equal(['pilot']);
  });

  it('hole 7: makes a token anew that queues may not use, whatever times it says', async () => {
    const clock = new ManualClock();
    const own = manager({ create, renewCommand: '/nowhere' }, clock);
    const name = join(directory, 'pilot');
    await fc.assert(
      fc.asyncProperty(anyTimes(seconds(clock.now())), async (times) => {
        put('pilot', makeJwt({ sub: identity, ...times }));
        const [state] = await inspected(own);
        const isBad = state && judgeOne({ name, manager: 'M', state }, 0, clock.now()) !== undefined;
        if (isBad) expect((await renewed(own))[0]).to.match(/^credential-tool/);
      }),
      { numRuns: 300 },
    );
  });

  it('hole 7: makes a token anew at half its life also where it says that it was made far ahead', async () => {
    const clock = new ManualClock();
    const fresh = () => makeJwt({ sub: identity, iat: 9_999_999_999, exp: seconds(clock.now()) + 1000 });
    const tool = program(fresh());
    const own = manager({ create, renewCommand: tool }, clock);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    await clock.advance(490_000);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(20_000);
    writeFileSync(`${tool}.out`, fresh());
    expect(await renewed(own)).to.deep.equal(['renewed']);
  });

  it('finds mistakes in its options', async () => {
    const from = (options: object) => mistakes(CondorTokenCredManager, { directory: '/d', ...options });
    expect(await from({ create })).to.deep.equal([]);
    expect((await from({ create: [...create, ...create] }))[0]).to.contain('/create/1/name: name is "pilot"');
    expect(await from({ create: [{ name: '../x', identity }] })).to.have.length(1);
    expect(await from({ create: [{ name: '.x', identity }] })).to.have.length(1);
    expect(await from({ create: [{ name: 'x~', identity }] })).to.have.length(1);
    expect(await from({ create: [{ name: 'x', identity: 'nobody' }] })).to.have.length(1);
    expect(await from({ create: [{ name: 'x', identity, lifetime: 5 }] })).to.have.length(1);
    expect((await from({ create: [{ name: 'x', identity, life: 5 }] }))[0]).to.contain('not a known setting');
    expect((await mistakes(CondorTokenCredManager, {}))[0]).to.contain('"directory" is missing');
  });
});
