import { expect } from 'chai';
import { outcomeOf, type PandaCode } from '../../../src/clients/panda/outcome.ts';

const refusal = (message: string) => ({
  status: 200,
  body: JSON.stringify({ success: false, message, data: null }),
});

interface Row {
  readonly title: string;
  readonly answer: { readonly status: number; readonly body: string };
  readonly code: PandaCode;
  readonly maybeDone: boolean;
}

const rows: readonly Row[] = [
  {
    title: 'no certificate',
    answer: refusal('SSL secure connection is required'),
    code: 'panda-certificate',
    maybeDone: false,
  },
  {
    title: 'a missing role',
    answer: refusal('production or pilot role required'),
    code: 'panda-role',
    maybeDone: false,
  },
  {
    title: 'a database that is down',
    answer: refusal('database error in the PanDA server'),
    code: 'panda-database',
    maybeDone: true,
  },
  {
    title: 'rows that another client holds',
    answer: refusal('rows locked by another update'),
    code: 'panda-busy',
    maybeDone: false,
  },
  {
    title: 'a call that took the server too long',
    answer: refusal('Timed out'),
    code: 'panda-busy',
    maybeDone: true,
  },
  { title: 'no job', answer: refusal('No jobs in PanDA'), code: 'panda-empty', maybeDone: false },
  {
    title: 'a wrong argument',
    answer: refusal('Argument error: n_commands'),
    code: 'panda-argument',
    maybeDone: false,
  },
  {
    title: 'a user who may not get keys of tokens, whatever the name',
    answer: refusal("Denied since 'Missing Permission' not authorized with 't' in META.USERS.GRIDPREF"),
    code: 'panda-token-key',
    maybeDone: false,
  },
  {
    title: 'a client without a key of its token',
    answer: refusal("Token key is missing for 'atlas.pilot'"),
    code: 'panda-token-key',
    maybeDone: false,
  },
  {
    title: 'words that are not known',
    answer: refusal('the moon is full'),
    code: 'panda-refused',
    maybeDone: true,
  },
  {
    title: 'a token that is refused',
    answer: {
      status: 403,
      body: 'ERROR : Token authentication failed. Invalid token. Signature has expired',
    },
    code: 'panda-token',
    maybeDone: false,
  },
  {
    title: 'a token without an origin',
    answer: {
      status: 403,
      body: "Traceback ... AttributeError: 'NoneType' object has no attribute 'replace'",
    },
    code: 'panda-token',
    maybeDone: false,
  },
  {
    title: 'a method that the server does not have',
    answer: { status: 403, body: 'ERROR: method isAlive is forbidden' },
    code: 'panda-no-api',
    maybeDone: false,
  },
  {
    title: 'a path that is not there',
    answer: { status: 404, body: 'Not Found' },
    code: 'panda-no-api',
    maybeDone: false,
  },
  {
    title: 'a failure inside',
    answer: { status: 500, body: '<html>' },
    code: 'panda-server-error',
    maybeDone: true,
  },
  {
    title: 'a proxy that has lost its server',
    answer: { status: 502, body: '' },
    code: 'panda-server-error',
    maybeDone: true,
  },
  {
    title: 'half an answer',
    answer: { status: 200, body: '{"success": true, "data": [tr' },
    code: 'panda-no-answer',
    maybeDone: true,
  },
  {
    title: 'a login page',
    answer: { status: 200, body: '<html>Login</html>' },
    code: 'panda-no-api',
    maybeDone: true,
  },
  {
    title: 'JSON of another program',
    answer: { status: 200, body: '[1, 2]' },
    code: 'panda-no-api',
    maybeDone: true,
  },
];

describe("the PanDA server's answers", () => {
  it('an answer with success gives its data', () => {
    const body = JSON.stringify({ success: true, message: '', data: [true, false] });
    expect(outcomeOf({ status: 200, body })).to.deep.equal({ kind: 'ok', data: [true, false] });
  });

  for (const { title, answer, code, maybeDone } of rows) {
    it(`${title} is ${code}`, () => {
      expect(outcomeOf(answer)).to.deep.include({ kind: 'failed', code, maybeDone });
    });
  }

  it('cuts the words of a server that says too much', () => {
    const outcome = outcomeOf({ status: 500, body: 'x'.repeat(10_000) });
    expect(outcome.kind === 'failed' && outcome.message.length).to.be.lessThan(250);
  });
});
