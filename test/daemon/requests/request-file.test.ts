import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { WaitingBoard } from '../../../src/agents/sources/waiting-board.ts';
import { readRequestReasons, RequestFile } from '../../../src/daemon/requests/request-file.ts';
import { stateDirAt } from '../../../src/daemon/state-dir.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the file of waiting requests', () => {
  const full = { code: 'max-workers', message: '2 of 2 are alive' };
  const refused = { code: 'payload-unsupported', message: 'no files here' };
  const requests = (uid: string, ...indexes: number[]) =>
    indexes.map((index) => ({ origin: { uid, index } }));

  function setUp() {
    const dir = stateDirAt(temporaryDirectory());
    const clock = new ManualClock();
    const board = new WaitingBoard();
    const file = new RequestFile(dir, { clock, log: recordingLog(), waiting: () => board.allOf('request') });
    const text = () => readFileSync(dir.requests, 'utf8');
    return { dir, clock, board, file, text };
  }

  it('has the reasons of each request, and those of no other source', async () => {
    const { dir, board, file } = setUp();
    const why = [
      { kind: 'request', requests: requests('a', 0, 1), reason: full },
      // A later look tells how it is now.
      { kind: 'request', requests: requests('a', 1), reason: refused },
      { kind: 'request', requests: requests('b', 0, 1), reason: full },
      { kind: 'toy', requests: requests('c', 0), reason: refused },
    ];
    board.set('Q', { why, counts: new Map([['request', 4]]) });
    board.set('TOY', { why: [], counts: new Map([['toy', 1]]), failure: full });
    file.changed();
    await file.stop();
    const read = readRequestReasons(dir);
    expect(read({ queue: 'Q', id: 'a' })).to.deep.equal([full, refused]);
    expect(read({ queue: 'Q', id: 'b' })).to.deep.equal([full]);
    expect(read({ queue: 'Q', id: 'c' })).to.deep.equal([]);
    expect(read({ queue: 'TOY', id: 'x' })).to.deep.equal([]);
  });

  it('has the failure of a pass for all requests of its queue', async () => {
    const { dir, board, file } = setUp();
    board.set('Q', { why: [], counts: new Map([['request', 1]]) });
    board.failed('Q', refused);
    file.changed();
    await file.stop();
    expect(readRequestReasons(dir)({ queue: 'Q', id: 'any' })).to.deep.equal([refused]);
  });

  it('is written only when it changed, and at most once a second', async () => {
    const { dir, clock, board, file, text } = setUp();
    file.changed();
    await until('it is written', () => text() === '[]\n');
    await clock.pass(1000);
    writeFileSync(dir.requests, 'touched');
    file.changed();
    await clock.advance(0);
    expect(text()).to.equal('touched');
    board.set('Q', {
      why: [{ kind: 'request', requests: requests('a', 0), reason: full }],
      counts: new Map([['request', 1]]),
    });
    file.changed();
    await until('it is written again', () => text().includes('2 of 2 are alive'));
    board.set('Q', { why: [], counts: new Map() });
    file.changed();
    await until('it pauses', () => clock.sleeping.length > 0);
    await clock.advance(500);
    expect(text()).to.contain('2 of 2 are alive');
    await clock.advance(500);
    await until('it is empty', () => text() === '[]\n');
    await file.stop();
  });

  it('says nothing where it is missing or damaged', () => {
    const { dir } = setUp();
    expect(readRequestReasons(dir)({ queue: 'Q', id: 'a' })).to.deep.equal([]);
    writeFileSync(dir.requests, '[{"queue":');
    expect(readRequestReasons(dir)({ queue: 'Q', id: 'a' })).to.deep.equal([]);
  });
});
