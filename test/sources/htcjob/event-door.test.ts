import { expect } from 'chai';
import fc from 'fast-check';
import type { SourceHttpRequest } from '../../../src/plugins/contracts/index.ts';
import { EventDoor } from '../../../src/sources/htcjob/job/event-door.ts';
import { tokenOf } from '../../../src/sources/htcjob/job/token.ts';
import type { JobReport } from '../../../src/clients/htcjob/resource.ts';

const key = Buffer.from('k'.repeat(32));
const job = { uid: 'f3a2', index: 4 };
const token = tokenOf(key, job);
const data = { name: 'zero', jobid: '7.4', retcode: '3', ...job, token };
const attributes = { specversion: '1.0', type: 'htcjob.cloudevent', source: 'cern.ch', id: 'a' };
const binaryHeaders = {
  ...Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value])),
  'content-type': 'application/json',
};

function request(
  body: unknown,
  headers: Readonly<Record<string, string>> = binaryHeaders,
  changes: Partial<SourceHttpRequest> = {},
): SourceHttpRequest {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
  return { method: 'POST', path: 'cloudevents', headers, body: bytes, ...changes };
}
const structured = (body: object) =>
  request({ ...attributes, ...body }, { 'content-type': 'application/cloudevents+json; charset=utf-8' });

describe('the receiver of CloudEvents', () => {
  let taken: JobReport[];
  let isNew: boolean;
  let door: EventDoor;
  beforeEach(() => {
    taken = [];
    isNew = true;
    door = new EventDoor(key, (report) => {
      taken.push(report);
      return isNew;
    });
  });
  const status = (of: SourceHttpRequest) => door.answer(of).status;
  const report = { uid: 'f3a2', index: 4, returnCode: 3 };

  it('takes the event of htc-operator in binary mode', () => {
    expect(door.answer(request(data))).to.deep.equal({ status: 200, body: '{"result":"taken"}' });
    expect(taken).to.deep.equal([report]);
  });

  it('takes it in structured mode, also with data as base64', () => {
    expect(status(structured({ data }))).to.equal(200);
    const data_base64 = Buffer.from(JSON.stringify(data)).toString('base64');
    expect(status(structured({ data_base64 }))).to.equal(200);
    expect(taken).to.deep.equal([report, report]);
  });

  it('hole 8: refuses an event that is too deep to be written again, without its text', () => {
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    const asked = { 'content-type': 'application/cloudevents+json' };
    for (const text of [`{"specversion":${deep}}`, `{"specversion":"1.0","type":${deep}}`]) {
      const { status, body } = door.answer(request(Buffer.from(text), asked));
      expect(status).to.equal(400);
      expect(body).to.contain('a list');
    }
    const inHeaders = request(Buffer.from(`{"uid":${deep}}`));
    expect(door.answer(inHeaders).status).to.equal(400);
  });

  it('takes the token also as a bearer, and a number as the exit status', () => {
    const headers = { ...binaryHeaders, authorization: `Bearer ${token}` };
    expect(status(request({ ...data, token: undefined, retcode: -1 }, headers))).to.equal(200);
    expect(taken).to.deep.equal([{ ...report, returnCode: -1 }]);
  });

  it('says so when an event told nothing', () => {
    isNew = false;
    expect(door.answer(request(data))).to.deep.equal({ status: 200, body: '{"result":"without effect"}' });
  });

  const forged: Readonly<Record<string, object>> = {
    'without a token': { token: undefined },
    'with an empty token': { token: '' },
    'with another token': { token: tokenOf(Buffer.from('x'.repeat(32)), job) },
    'with the token of another job of the resource': { index: 5 },
    'with the token of another resource': { uid: 'f3a3' },
    'with a token that is too long': { token: `${token}A` },
    'with a token that is no text': { token: [token] },
  };
  for (const [how, changes] of Object.entries(forged))
    it(`refuses an event ${how}`, () => {
      expect(status(request({ ...data, ...changes }))).to.equal(401);
      expect(status(structured({ data: { ...data, ...changes } }))).to.equal(401);
      expect(taken).to.deep.equal([]);
    });

  const wrong: Readonly<Record<string, readonly [SourceHttpRequest, number]>> = {
    'no CloudEvent': [request(data, { 'content-type': 'application/json' }), 415],
    'a batch of events': [request([data], { 'content-type': 'application/cloudevents-batch+json' }), 415],
    'an event as XML': [request(data, { 'content-type': 'application/cloudevents+xml' }), 415],
    'data that are no JSON by their type': [
      request(data, { ...binaryHeaders, 'content-type': 'text/plain' }),
      415,
    ],
    'a body that is no JSON': [request(Buffer.from('{')), 400],
    'a body that is no UTF-8': [request(Buffer.from([0x22, 0xff, 0x22])), 400],
    'an empty body': [request(Buffer.alloc(0)), 400],
    'a structured event that is no object': [
      request([], { 'content-type': 'application/cloudevents+json' }),
      400,
    ],
    'data in broken base64': [structured({ data_base64: 'x' }), 400],
    'another version': [request(data, { ...binaryHeaders, 'ce-specversion': '0.3' }), 400],
    'no id': [request(data, { ...binaryHeaders, 'ce-id': '' }), 400],
    'another type': [request(data, { ...binaryHeaders, 'ce-type': 'other' }), 400],
    'no data': [structured({}), 400],
    'null as data': [request(null), 400],
    'a UID that is no text': [request({ ...data, uid: 7 }), 400],
    'a UID that is too long': [request({ ...data, uid: 'x'.repeat(101) }), 400],
    'an index that is no number': [request({ ...data, index: '4' }), 400],
    'an index below 0': [request({ ...data, index: -1 }), 400],
    'an exit status that is none': [request({ ...data, retcode: 'zero' }), 400],
    'another method': [request(data, binaryHeaders, { method: 'GET' }), 405],
    'another path': [request(data, binaryHeaders, { path: 'cloudevents/x' }), 404],
  };
  for (const [what, [sent, expected]] of Object.entries(wrong))
    it(`refuses ${what} with ${expected} and a reason`, () => {
      const { status, body } = door.answer(sent);
      expect(status).to.equal(expected);
      const { code, message } = JSON.parse(body) as { code: string; message: string };
      expect(code).to.equal('htcjob-event');
      expect(message.length).to.be.greaterThan(10);
      expect(taken).to.deep.equal([]);
    });

  it('answers any rubbish with 4xx, and takes none of it', () => {
    const types = fc.constantFrom('application/json', 'application/cloudevents+json', 'x', '');
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc.json().map((text) => Buffer.from(text)),
          fc.record({ uid: fc.string(), index: fc.nat(), retcode: fc.string(), token: fc.string() }),
        ),
        types,
        fc.boolean(),
        (body, type, isBinary) => {
          const headers = { ...(isBinary ? binaryHeaders : {}), 'content-type': type };
          const answer = door.answer(request(body, headers));
          expect(answer.status).to.be.within(400, 499);
        },
      ),
      { numRuns: 3000 },
    );
    expect(taken).to.deep.equal([]);
  });
});
