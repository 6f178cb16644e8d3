import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { readStarter } from '../../../../src/plugins/kubernetes/starter/pilots-starter.ts';
import { deedFor, type StarterMap } from '../../../../src/plugins/kubernetes/starter/standing.ts';

const own = { script: 'ours', version: 2, user: 'starter.thresher/factory-a' };
const label = { 'thresher/pilots-starter': 'pilots-starter' };

function there(version: string, script: string, users: readonly string[] = [own.user]): StarterMap {
  const annotations = {
    'thresher/starter-version': version,
    ...Object.fromEntries(users.map((user) => [user, 'uses it'])),
  };
  return {
    metadata: { resourceVersion: '7', labels: label, annotations },
    data: { 'pilots_starter.py': script },
  };
}

describe('the ConfigMap that pilots start from', () => {
  for (const [what, found, expected] of [
    ['is created where there is none', undefined, { kind: 'create' }],
    ['stays as it is where it is ours and up to date', there('2', 'ours'), { kind: 'nothing' }],
    ['stays as it is where a newer thresher made it', there('3', 'newer'), { kind: 'nothing' }],
    [
      'stays as it is where Harvester made it',
      { data: { 'pilots_starter.py': 'of Harvester' } },
      { kind: 'nothing' },
    ],
    ['is refused where a stranger made one without a starter', { data: {} }, { kind: 'refuse' }],
  ] as const) {
    it(what, () => {
      expect(deedFor(found, own)).to.deep.equal(expected);
    });
  }

  for (const [what, found] of [
    ['an older thresher made it', there('1', 'older')],
    ['a person edited it', there('2', 'edited')],
  ] as const) {
    it(`gets this version's script, and no other in between, where ${what}`, () => {
      expect(deedFor(found, own)).to.deep.equal({
        kind: 'change',
        patch: {
          metadata: {
            resourceVersion: '7',
            annotations: { [own.user]: 'uses it', 'thresher/starter-version': '2' },
          },
          data: { 'pilots_starter.py': 'ours' },
        },
      });
    });
  }

  it('gets the name of a factory that begins to use it, and keeps the newer script', () => {
    const found = there('3', 'newer', ['starter.thresher/factory-b']);
    expect(deedFor(found, own)).to.deep.equal({
      kind: 'change',
      patch: { metadata: { resourceVersion: '7', annotations: { [own.user]: 'uses it' } } },
    });
  });

  it('has another version whenever its script changes', () => {
    const { script, version } = readStarter();
    const digest = createHash('sha256').update(script).digest('hex').slice(0, 16);
    // Who changes the script counts VERSION up in it, and writes both here.
    expect({ version, digest }).to.deep.equal({ version: 1, digest: '880494365ae9d39e' });
  });
});
