import { expect } from 'chai';
import { Causes } from '../../../src/sources/htcondor-idle/causes.ts';
import type { Explanation, Looker } from '../../../src/sources/htcondor-idle/look/result.ts';
import { needOf } from '../../support/idle-demand.ts';
import { recordingLog } from '../../support/samples.ts';

const { signal } = new AbortController();
const need = (key: string, count: number) => needOf(key, count, {}, { key });
const because = (condition: string): Explanation => ({
  sentence: 'no shape meets it',
  conditions: [condition],
  of: 'job',
});

describe('the causes of jobs that nothing takes', () => {
  let asked: string[];
  let log: ReturnType<typeof recordingLog>;
  beforeEach(() => {
    asked = [];
    log = recordingLog();
  });

  const causesBy = (answer: (key: string) => Promise<Explanation | undefined>) => {
    const explain: Looker['explain'] = ({ key }) => {
      asked.push(key);
      return answer(key);
    };
    return new Causes({ looker: { explain }, log });
  };

  async function afterLook(causes: Causes, keys: readonly string[]): Promise<Record<string, string>> {
    const needs = keys.map((key, index) => need(key, keys.length - index));
    causes.explain(needs, [], signal);
    await causes.settled();
    return Object.fromEntries(causes.all);
  }

  it('are told for five needs after each look, those with most jobs first', async () => {
    const causes = causesBy(async (key) => because(key));
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    expect(Object.keys(await afterLook(causes, keys))).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    expect(Object.keys(await afterLook(causes, keys))).to.deep.equal(keys);
    expect(asked).to.deep.equal(keys);
  });

  it('go on with the next need after one whose analysis fails, and say so', async () => {
    const causes = causesBy(async (key) => {
      if (key === 'a') throw new Error('condor_q crashed');
      return because(key);
    });
    expect(await afterLook(causes, ['a', 'b'])).to.deep.equal({ b: 'b' });
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      'jobs that nothing takes could not be explained',
    ]);
  });

  it('give the places of needs without an answer to others, and ask about them again after twenty looks', async () => {
    let isSilent = true;
    const causes = causesBy(async (key) => (isSilent && key !== 'f' ? undefined : because(key)));
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    expect(await afterLook(causes, keys)).to.deep.equal({});
    expect(await afterLook(causes, keys)).to.deep.equal({ f: 'f' });
    isSilent = false;
    for (let look = 3; look <= 20; look++) await afterLook(causes, keys);
    expect(asked).to.have.length(6);
    expect(Object.keys(await afterLook(causes, keys))).to.have.members(keys);
  });

  it('hold no look up: while an analysis computes, the next look starts no other', async () => {
    const { promise, resolve } = Promise.withResolvers<Explanation>();
    const causes = causesBy(() => promise);
    const needs = [need('a', 2), need('b', 1)];
    causes.explain(needs, [], signal);
    causes.explain(needs, [], signal);
    expect(asked).to.deep.equal(['a']);
    resolve(because('x'));
    await causes.settled();
    expect(asked).to.deep.equal(['a', 'b']);
  });

  it('are forgotten with the need', async () => {
    const causes = causesBy(async (key) => because(key));
    await afterLook(causes, ['a', 'b']);
    expect(await afterLook(causes, ['b'])).to.deep.equal({ b: 'b' });
  });
});
