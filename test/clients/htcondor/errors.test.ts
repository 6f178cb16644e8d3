import { expect } from 'chai';
import { type Called, failureOf } from '../../../src/clients/htcondor/errors.ts';
import { maskedCharacters } from '../../support/masked-characters.ts';
import { classAdString, parseJobId, whereIs, whereJobs } from '../../../src/clients/htcondor/classad.ts';

const called = (command: string, submitted?: string): Called => ({
  command,
  place: 'schedd a of pool b',
  changes: command !== 'condor_q',
  ...(submitted !== undefined && { submitted }),
});
const failure = (command: string, stderr: string) => {
  const { code, maybeDone, message } = failureOf(called(command, 'queue\n'), stderr, 'exit status 1');
  return { code, maybeDone, message };
};

describe('errors of the commands of HTCondor', () => {
  it('a full disk is recognized in the words of any command of HTCondor', () => {
    const said = 'ERROR: Failed to write to the spool: No space left on device';
    expect(failure('condor_submit', said)).to.include({ code: 'condor-disk-full', maybeDone: false });
  });

  it('a file that is not to be written or read is no refusal of ours by the schedd', () => {
    const [place, denied] = ['<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap>', '(errno 13) Permission denied'];
    const said = [
      `AUTHENTICATE:1003:no\nSCHEDD at 10.0.0.1 failed to send file(s) to ${place}`,
      `DCSchedd::receiveJobSandbox: TOOL failed to receive file(s) from ${place}; TOOL at 10.0.0.1 failed to write to file /logs/1.out: ${denied}`,
      `TOOL at 10.0.0.1 failed to create directory /logs/x: Permission denied (errno 13)`,
      `TOOL failed to write to file /logs/1.out: (errno 28) No space left on device`,
    ];
    const codes = said.map((one) => failure('condor_transfer_data', one).code);
    expect(codes).to.deep.equal(['condor-auth', 'condor-failed', 'condor-failed', 'condor-disk-full']);
  });

  it('may have been done, where files were on their way already', () => {
    for (const why of ['No space left on device', 'Connection refused', 'Failed to connect to schedd']) {
      const said = `ERROR: ${why}\nERROR: Failed to spool job files.`;
      expect(failure('condor_submit', said), why).to.include({ maybeDone: true });
    }
  });

  it('a limit of any kind is recognized in the words of condor_submit', () => {
    for (const name of ['MAX_JOBS_SUBMITTED', 'MAX_JOBS_PER_OWNER', 'MAX_JOBS_PER_SUBMISSION']) {
      const said = `ERROR: Failed to create proc\nNumber of submitted jobs would exceed ${name}`;
      expect(failure('condor_submit', said)).to.include({ code: 'condor-limit', maybeDone: false });
    }
  });

  it('a submission may be refused since the identity is no user of the schedd', () => {
    const said = 'ERROR: Cannot allocate a cluster id';
    expect(failure('condor_submit', said)).to.include({ code: 'condor-auth', maybeDone: false });
  });

  it('may be refused by the tool itself, which has neither a token nor a key to log in with', () => {
    const said =
      'SECMAN: ERROR: The security policy is invalid.; DCSchedd::actOnJobs: Failed to send command (ACT_ON_JOBS) to the schedd';
    expect(failure('condor_rm', said)).to.include({ code: 'condor-auth', maybeDone: false });
  });

  it('may be a lost answer: then the jobs may be there', () => {
    for (const said of ['ERROR: Failed to commit job submission into the queue.', 'Segmentation fault', '']) {
      expect(failure('condor_submit', said), said).to.include({ maybeDone: true });
      expect(failure('condor_q', said), said).to.include({ maybeDone: false });
    }
  });

  describe('hole 1: words of a user in a submit text decide nothing', () => {
    const words = [
      'requested but not authorized to be sent',
      'Number of jobs would exceed MAX_JOBS_PER_OWNER',
      'No space left on device',
      'failed to write to file x (errno 13)',
      'AUTHENTICATE:1003',
      'not authorized',
      'Connection refused',
      'No such schedd',
      'Failed to connect',
      'Failed to commit job submission into the queue.',
      'Failed to spool job files.',
      'CEDAR:6001 timed out',
      'could not parse',
      'Parse error in constraint',
      'No such job',
    ];
    for (const word of words)
      it(word, () => {
        const expression = `rank = "${word}" +`;
        const shown = `ERROR: Parse error in expression: \n\tRank = "${word}" +\n\tERROR at Queue statement on Line 3: \n`;
        const text = (line: string) => called('condor_submit', `${line}\nqueue\n`);
        expect(failureOf(text(expression), shown, '')).to.include({
          code: 'condor-submit-wrong',
          maybeDone: false,
        });
        // A part of a list is shown, and long ones are cut.
        const file = `${word}/${'x'.repeat(5000)}`;
        const missing = `ERROR: Can't open "${file}"  with flags 00 (No such file or directory)\nSubmitting job(s)\n`;
        expect(failureOf(text(`transfer_input_files = a,${file}, b`), missing, '')).to.include({
          code: 'condor-submit-wrong',
          maybeDone: false,
        });
        // The cause counts all the same.
        expect(
          failureOf(text(expression), `${shown}ERROR: Failed to connect to queue manager`, '').code,
        ).to.equal('condor-submit-wrong');
      });

    for (const [title, value, shown] of [
      ['in small letters', 'ok:1, Not Authorized.b.C', 'not authorized.b.c'],
      ['with what a macro of ours stands for', '"$(DOLLAR) not authorized"', '"$ not authorized"'],
      [
        'with the number of the job',
        '"$(ProcId) MAX_JOBS_PER_OWNER exceeded"',
        '"0 MAX_JOBS_PER_OWNER exceeded"',
      ],
    ] as const)
      it(`also where condor_submit shows them ${title}`, () => {
        const said = `ERROR: Invalid value '${shown}'\n`;
        expect(failureOf(called('condor_submit', `x = ${value}\nqueue\n`), said, '').code).to.equal(
          'condor-submit-wrong',
        );
      });

    it('but words of HTCondor itself count, also where a value has the same', () => {
      const text = (word: string) => called('condor_submit', `+Note = "${word}"\nqueue\n`);
      for (const said of [
        'ERROR: Failed to commit job submission into the queue.',
        'ERROR: Failed to connect to queue manager\nERROR: Failed to spool job files.',
        '11/21/26 19:42:39 (D_ALWAYS) CEDAR:6001:timed out',
      ])
        for (const word of [
          'Failed to commit',
          'Failed to spool',
          'timed out',
          'CEDAR:6001',
          'ERROR: Failed to',
        ])
          expect(failureOf(text(word), said, ''), `${said} with ${word}`).to.include({ maybeDone: true });
    });

    it('hole 8: however long they are', () => {
      const long = 'failed to write '.repeat(20_000);
      const { code } = failureOf(called('condor_submit', `x = ${long}\nqueue\n`), `ERROR: ${long}`, '');
      expect(code).to.equal('condor-submit-wrong');
    });

    it('hole 8: however many parts they have, and however many lines are said', () => {
      const parts = Array.from({ length: 6000 }, (_, at) => `timed out ${10_000 + at}`);
      const said = `${parts.join('\n')}\nERROR: Invalid value '${parts.join(',').toUpperCase()}'`;
      const found = failureOf(called('condor_submit', `x = ${parts.join(',')}\nqueue\n`), said, '');
      expect(found).to.include({ code: 'condor-submit-wrong', maybeDone: false });
      expect(found.message.length).to.be.lessThan(1000);
    });
  });

  it('a rule of the administrators of a schedd refuses jobs, and none of them is there', () => {
    const committed = 'ERROR: Failed to commit job submission into the queue.';
    const refused = `${committed}\nERROR: Jobs need a project.`;
    expect(failure('condor_submit', refused)).to.include({ code: 'condor-refused', maybeDone: false });
    for (const lost of ['CEDAR:6001:Failed to read', 'AUTHENTICATE:1003:no', 'SECMAN:2007:no'])
      expect(failure('condor_submit', `${committed}\nERROR: ${lost}`), lost).to.include({ maybeDone: true });
  });

  it('is told from what the commands say besides, where `_CONDOR_TOOL_DEBUG` asks for it', () => {
    const stderr = [
      '11/21/26 19:42:39 (D_SECURITY) AUTHENTICATE: no authorization for FS',
      '11/21/26 19:42:39 (D_ALWAYS:2) Trying to query collector',
      '11/21/26 19:42:39 (D_ALWAYS) ERROR: No such schedd',
    ].join('\n');
    expect(failure('condor_q', stderr)).to.deep.equal({
      code: 'condor-schedd-unknown',
      maybeDone: false,
      message: 'condor_q for schedd a of pool b: ERROR: No such schedd (exit status 1)',
    });
  });

  it('hole 8: is masked as far as it is shown, and shows no key of which lines are left out', async () => {
    const stderr = 'ERROR: secret=$(\n'.repeat(4000);
    const work = () => expect(failure('condor_q', stderr).message).to.include('secret=$(');
    expect(await maskedCharacters(work)).to.be.within(1, 5000);
    const begin = '11/21/26 19:42:39 (D_NETWORK) -----BEGIN PRIVATE KEY-----';
    const key = `${begin}\nMIIEhunter7\n-----END PRIVATE KEY-----\nERROR: --password\nhunter7`;
    expect(failure('condor_q', key).message).to.not.include('hunter7');
  });

  it('shows no password behind thousands of blanks', () => {
    for (const blanks of [1975, 5000]) {
      const said = `${' '.repeat(blanks)}https://user:S3cr3tV4lue9@host/ refuses`;
      const { message } = failureOf(
        { command: 'condor_q', place: 'the schedd', changes: false },
        said,
        'status 1',
      );
      expect(message).to.include('https://user:(hidden)@host/');
    }
  });

  it('is shown with advice that never ends, and without each that does', () => {
    const advice = 'Extra Info: see the\nTroubleshooting section of the manual.';
    const said = `${advice}\nERROR: no\n${advice}\nExtra Info: that is all`;
    expect(failure('condor_q', `ERROR: a\n${said}`).message).to.include('ERROR: a; ERROR: no (');
    expect(failure('condor_q', `Troubleshooting section of the manual.\n${said}`).message).to.include(
      'section',
    );
  });

  it('is shown without advice, dates and repetitions, and not at any length', () => {
    const stderr = [
      '11/21/26 19:42:39 ERROR: AUTHENTICATE:1003:Failed to authenticate with any method',
      '11/21/26 19:42:40 ERROR: AUTHENTICATE:1003:Failed to authenticate with any method',
      "Error: Couldn't contact the condor_collector on b. ",
      '',
      'Extra Info: the condor_collector is a process that runs on the central ',
      'responding. Also see the Troubleshooting section of the manual. ',
    ].join('\n');
    expect(failure('condor_q', stderr)).to.deep.equal({
      code: 'condor-auth',
      maybeDone: false,
      message:
        "condor_q for schedd a of pool b: ERROR: AUTHENTICATE:1003:Failed to authenticate with any method; Error: Couldn't contact the condor_collector on b. (exit status 1)",
    });
    expect(failure('condor_q', 'x'.repeat(10_000)).message).to.have.length.below(600);
    expect(failure('condor_q', '').message).to.contain('without a word');
    expect(failure('condor_q', 'AUTHENTICATE:1003\nAUTHENTICATE:1003').message).to.contain(
      ': AUTHENTICATE:1003 (',
    );
  });

  it('hole 8: of a line without end its beginning counts', () => {
    const long = 'Failed to set attribute '.repeat(1000);
    expect(failure('condor_qedit', `${long}by constraint`)).to.include({ code: 'condor-failed' });
    expect(failure('condor_qedit', `${long}\nPERMISSION DENIED`)).to.include({ code: 'condor-auth' });
  });
});

describe('texts that thresher writes for HTCondor', () => {
  it('cannot be changed by what stands in it', () => {
    expect(classAdString('a" || true || "')).to.equal('"a\\" || true || \\""');
    expect(() => classAdString('a\nqueue')).to.throw(RangeError);
    expect(() => classAdString('a\0')).to.throw(RangeError);
    expect(() => whereIs('a || b', 1)).to.throw(RangeError);
    expect(whereIs('thresherFactory', 'x')).to.equal('thresherFactory =?= "x"');
  });

  it('names jobs in one term for each cluster', () => {
    const jobs = [0, 1, 2].map((proc) => ({ cluster: 5, proc }));
    expect(whereJobs(jobs)).to.equal('(ClusterId == 5 && ProcId >= 0 && ProcId <= 2)');
    expect(whereJobs([...jobs, { cluster: 5, proc: 9 }, { cluster: 6, proc: 1 }])).to.equal(
      '(ClusterId == 5 && member(ProcId, {0,1,2,9})) || (ClusterId == 6 && ProcId >= 1 && ProcId <= 1)',
    );
    expect(whereJobs([])).to.equal('false');
    expect(parseJobId('12.3')).to.deep.equal({ cluster: 12, proc: 3 });
    for (const text of ['', '12', '12.', '12.3 || true', '-1.0'])
      expect(parseJobId(text)).to.equal(undefined);
  });
});
