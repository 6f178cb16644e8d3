import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { onSecretFile } from '../../../src/clients/credentials/files.ts';
import { HTCondorClient } from '../../../src/clients/htcondor/client.ts';
import type { ScheddPlace } from '../../../src/clients/htcondor/tools.ts';
import { condorVariables } from '../../../src/daemon/interlink/condor-flags.ts';
import { makeJwt } from '../../support/credentials.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('hole 3: what HTCondor says shows no login of its commands', () => {
  let directory: string;
  let client: HTCondorClient;
  let clock: ManualClock;

  beforeEach(() => {
    directory = temporaryDirectory();
    clock = new ManualClock();
  });

  const connect = (place: ScheddPlace, environment: Readonly<Record<string, string | undefined>> = {}) => {
    client = new HTCondorClient({
      place: { toolDirectory: directory, name: 's', pool: 'p', ...place },
      clock,
      environment: { ...process.env, ...environment },
    });
  };
  const write = (script: string) => {
    const tool = join(directory, 'condor_q');
    writeFileSync(tool, `#!/bin/sh\n${script}\n`);
    chmodSync(tool, 0o755);
  };
  const asked = async (script: string, signal = new AbortController().signal): Promise<string> => {
    write(script);
    return String(await rejection(client.queue('true', ['ClusterId'], signal)));
  };
  const answerTo = (words: string) =>
    asked(`cat >&2 <<'END'\nERROR: AUTHENTICATE:1003: got ${words}\nEND\nexit 1`);
  const base64 = (token: string) => Buffer.from(token).toString('base64');
  const tokenDirectory = () => {
    const tokens = join(directory, 'tokens.d');
    mkdirSync(tokens);
    return tokens;
  };
  const newToken = () => `eyJ${randomBytes(24).toString('hex')}`;
  const expectHidden = async (token: string) => {
    const cut = token.includes('.') ? token.slice(token.indexOf('.') + 1) : token.slice(9);
    for (const form of [
      cut,
      Buffer.from(token).toString('base64'),
      Buffer.from(`Bearer ${token}`).toString('base64'),
    ])
      expect(await answerTo(form)).to.match(
        /AUTHENTICATE:1003: got (QmVhcmVyI\w)?\(hidden\) \(exit status 1\)/,
      );
  };

  it('a SciToken of the sidecar, the first one and one that another program renewed', async () => {
    const file = join(directory, 'token');
    connect({}, condorVariables({ authMethod: 'SCITOKENS', proxy: file }));
    expect(await answerTo('nothing')).to.contain('got nothing');
    for (const token of [makeJwt({ sub: 'a', exp: 4e9 }), `gho_k7Jp2Lq9Xv4Bn8Wz3Rt6Yd${Date.now()}`]) {
      writeFileSync(file, `${token}\n`, { mode: 0o600 });
      await clock.advance(1000);
      await expectHidden(token);
    }
  });

  it('tokens of a directory, and a token that the environment names', async () => {
    const tokens = tokenDirectory();
    const [first, second] = [makeJwt({ sub: 'b', exp: 4e9 }), makeJwt({ sub: 'c', exp: 4e9 })];
    writeFileSync(join(tokens, 'pool'), first);
    writeFileSync(join(directory, 'bearer'), second);
    connect({ tokenDirectory: tokens }, { BEARER_TOKEN_FILE: join(directory, 'bearer') });
    for (const token of [first, second]) await expectHidden(token);
  });

  it('a token that the first command repeats while it still writes', async () => {
    const tokens = tokenDirectory();
    const token = newToken();
    writeFileSync(join(tokens, 'pool'), token);
    connect({ tokenDirectory: tokens });
    write(`echo '${base64(token)}'; exec sleep 600`);
    const { signal } = new AbortController();
    const lines = client.queueLines('true', ['ClusterId'], () => undefined, signal);
    expect(String(await rejection(lines)))
      .to.contain('(hidden)')
      .and.not.contain(base64(token).slice(0, 20));
  });

  it('all clients share one look at a directory, which counts for a second', async () => {
    const tokens = tokenDirectory();
    const [first, second] = [newToken(), newToken()];
    writeFileSync(join(tokens, 'first'), first);
    connect({ tokenDirectory: tokens });
    expect(await answerTo(base64(first))).to.contain('got (hidden)');
    writeFileSync(join(tokens, 'second'), second);
    connect({ tokenDirectory: tokens, name: 'another' });
    expect(await answerTo(base64(second))).to.contain(base64(second).slice(-20));
    await clock.advance(1000);
    expect(await answerTo(base64(second))).to.contain('got (hidden)');
  });

  it('of a directory the first hundred files count, and in them no word that is no token', async () => {
    const tokens = tokenDirectory();
    const all = Array.from({ length: 101 }, newToken);
    for (const [at, token] of all.entries()) writeFileSync(join(tokens, String(at + 100)), token);
    const word = 'Site7Word8Of9NoToken0Here';
    writeFileSync(join(tokens, '0'), word);
    connect({ tokenDirectory: tokens });
    expect(await answerTo(word)).to.contain(word);
    expect(await answerTo(base64(all[98] ?? ''))).to.contain('got (hidden)');
    expect(await answerTo(base64(all[99] ?? ''))).to.contain(base64(all[99] ?? '').slice(-20));
  });

  it('a file system that does not answer holds up one command for two seconds, and none that is given up', async () => {
    const tokens = tokenDirectory();
    const token = newToken();
    writeFileSync(join(tokens, 'pool'), token);
    const answers = Promise.withResolvers<undefined>();
    const hung = [1, 2].map(() => onSecretFile(tokens, 'a test of', () => answers.promise));
    connect({ tokenDirectory: tokens });
    const given = new AbortController();
    const first = asked('exit 1', given.signal);
    await until('it waits', () => clock.sleeping.includes(2000));
    given.abort();
    expect(await first).to.contain('was not started, because the daemon gave it up');
    const second = answerTo('nothing');
    await clock.pass(2000);
    expect(await second).to.contain('got nothing');
    // Time stands still: it does not wait.
    expect(await answerTo('nothing')).to.contain('got nothing');
    answers.resolve(undefined);
    await Promise.all(hung);
    await until('the look is over', async () => (await answerTo(base64(token))).includes('got (hidden)'));
  });
});
