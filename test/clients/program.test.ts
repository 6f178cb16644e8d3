import { expect } from 'chai';
import { runProgram } from '../../src/clients/program.ts';
import { systemClock } from '../../src/util/clock.ts';

describe('a program of others', () => {
  it('hole 8: is killed when it writes more than its bound, also where its output is taken piece by piece', async () => {
    let taken = 0;
    const call = {
      command: '/bin/sh',
      args: ['-c', 'while :; do echo 0123456789; done'],
      environment: {},
      timeLimit: 60_000,
      outputLimit: 100_000,
      clock: systemClock,
      signal: new AbortController().signal,
    };
    const onOutput = (text: string) => {
      taken += text.length;
    };
    expect(await runProgram({ ...call, onOutput })).to.include({ killed: 'output', stdout: '' });
    expect(taken).to.be.at.most(100_000);
    const { killed, stdout } = await runProgram(call);
    expect(killed).to.equal('output');
    expect(stdout.length).to.be.at.most(100_000);
  });
});
