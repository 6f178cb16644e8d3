import { expect } from 'chai';
import { readCreate, readLogRequest, readPod, readPods } from '../../../src/clients/interlink/schemas.ts';
import { recordedBody } from '../../support/pods.ts';

describe("interLink's bodies", () => {
  it('are read as a real virtual kubelet sent them', () => {
    const bodies = [
      readCreate(recordedBody('POST-create.json')),
      readPod(recordedBody('POST-delete.json')),
      readPods(recordedBody('GET-status.json')),
      readPods(recordedBody('GET-status-ping.json')),
      readLogRequest(recordedBody('GET-getLogs0.json')),
    ];
    for (const body of bodies) expect(body.ok, JSON.stringify(body)).to.equal(true);
  });

  it('keep what thresher does not know, and may have null in the place of lists', () => {
    const pod = {
      metadata: { name: 'a', new: 1 },
      spec: { containers: [{ name: 'a', command: null }], volumes: null },
    };
    expect(readCreate({ pod, container: null })).to.deep.equal({ ok: true, value: { pod, container: null } });
  });

  for (const [what, body, sentence] of [
    ['a list', [], 'the body is a list; /create takes one object'],
    ['no Pod', {}, 'the body: "pod" is missing here'],
    [
      'a name that is a number',
      { pod: { metadata: { name: 3 }, spec: { containers: [{ name: 'a' }] } } },
      '/pod/metadata/name: name is 3; it must be a string',
    ],
    [
      'a command that is a text',
      { pod: { metadata: {}, spec: { containers: [{ name: 'a', command: 'x' }] } } },
      '/pod/spec/containers/0/command: command is "x"; it must be a list [ ... ]',
    ],
    [
      'more containers than any Pod has',
      { pod: { metadata: {}, spec: { containers: Array.from({ length: 1001 }, () => ({ name: 'a' })) } } },
      `/pod/spec/containers: containers is [${'{"name":"a"},'.repeat(5)}{"name":"a"...: must NOT have more than 1000 items`,
    ],
  ] as const)
    it(`are refused in a sentence: ${what}`, () => {
      expect(readCreate(body)).to.deep.equal({ ok: false, problems: [sentence] });
    });
});
