import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { type EventsRead, readEvents } from '../../../src/clients/htcondor/event-log.ts';
import type { JobEvent } from '../../../src/clients/htcondor/event-types.ts';

const now = Date.UTC(2026, 10, 21, 20);
const read = (text: string): EventsRead => readEvents(Buffer.from(text), now);

/** An event that is left out of `expected` may have any time. */
function only(text: string): Record<string, unknown> {
  const { events, garbage, consumed } = read(text);
  expect(garbage).to.deep.equal([]);
  expect(consumed).to.equal(Buffer.byteLength(text));
  expect(events).to.have.length(1);
  return Object.fromEntries(Object.entries(events[0] ?? {}).filter(([name]) => name !== 'time'));
}

const classic = (number: string, title: string, ...lines: string[]) =>
  [`${number} (012.003.000) 2026-11-21 19:40:42 ${title}`, ...lines, '...', ''].join('\n');
const json = (type: number, more: object) =>
  `${JSON.stringify({ EventTypeNumber: type, Cluster: 12, Proc: 3, Subproc: 0, EventTime: '2026-11-21T19:40:42Z', ...more }, undefined, 2)}\n`;
const xml = (type: number, more: Record<string, string | number | boolean>) => {
  const escaped = (text: string) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const value = (one: string | number | boolean) => {
    if (typeof one === 'boolean') return `<b v="${one ? 't' : 'f'}"/>`;
    return typeof one === 'number' ? `<i>${one}</i>` : `<s>${escaped(one)}</s>`;
  };
  const all = { EventTypeNumber: type, Cluster: 12, Proc: 3, EventTime: '2026-11-21T19:40:42', ...more };
  return `<c>\n${Object.entries(all)
    .map(([name, one]) => `    <a n="${name}">${value(one)}</a>\n`)
    .join('')}</c>\n`;
};

const job = { cluster: 12, proc: 3 };
const usage = '\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage';

/** The same event in each of the formats. */
const samples: readonly (readonly [event: Record<string, unknown>, ...texts: readonly string[]])[] = [
  [
    { ...job, kind: 'submit', host: '<1.2.3.4:9618?addrs=1-2>' },
    classic('000', 'Job submitted from host: <1.2.3.4:9618?addrs=1-2>'),
    json(0, { SubmitHost: '<1.2.3.4:9618?addrs=1-2>' }),
    xml(0, { SubmitHost: '<1.2.3.4:9618?addrs=1-2>' }),
  ],
  [
    { ...job, kind: 'execute', host: '<1.2.3.4:9618>', slot: 'slot1_1@node' },
    classic('001', 'Job executing on host: <1.2.3.4:9618>', '\tSlotName: slot1_1@node', '\tCpus = 1'),
    json(1, { ExecuteHost: '<1.2.3.4:9618>', SlotName: 'slot1_1@node', ExecuteProps: { Cpus: 1 } }),
    xml(1, { ExecuteHost: '<1.2.3.4:9618>', SlotName: 'slot1_1@node' }),
  ],
  [
    { ...job, kind: 'evicted', requeued: false, reason: 'User requested the job to vacate' },
    classic(
      '004',
      'Job was evicted.',
      '\t(0) CPU times',
      usage,
      '\t0  -  Run Bytes Sent By Job',
      '\tUser requested the job to vacate',
      '\tPartitionable Resources :    Usage  Request Allocated ',
      '\t   Cpus                 :     0.01        1         1 ',
    ),
    json(4, {
      TerminatedAndRequeued: false,
      TerminatedNormally: false,
      Reason: 'User requested the job to vacate',
    }),
    xml(4, { TerminatedAndRequeued: false, Reason: 'User requested the job to vacate' }),
  ],
  [
    { ...job, kind: 'terminated', end: { exitCode: 7 } },
    classic('005', 'Job terminated.', '\t(1) Normal termination (return value 7)', usage),
    json(5, { TerminatedNormally: true, ReturnValue: 7, ToE: { ExitCode: 7 } }),
    xml(5, { TerminatedNormally: true, ReturnValue: 7 }),
  ],
  [
    { ...job, kind: 'terminated', end: { signal: 9 } },
    classic('005', 'Job terminated.', '\t(0) Abnormal termination (signal 9)', '\t(0) No core file', usage),
    json(5, { TerminatedNormally: false, TerminatedBySignal: 9 }),
    xml(5, { TerminatedNormally: false, TerminatedBySignal: 9, ReturnValue: 0 }),
  ],
  // No way to know how it ended: by no means a success.
  [
    { ...job, kind: 'terminated', end: undefined },
    classic('005', 'Job terminated.'),
    json(5, {}),
    xml(5, {}),
  ],
  [
    { ...job, kind: 'image-size', size: 5092, memory: 3, resident: 2964 },
    classic(
      '006',
      'Image size of job updated: 5092',
      '\t3  -  MemoryUsage of job (MB)',
      '\t2964  -  ResidentSetSize of job (KB)',
    ),
    json(6, { Size: 5092, MemoryUsage: 3, ResidentSetSize: 2964 }),
    xml(6, { Size: 5092, MemoryUsage: 3, ResidentSetSize: 2964 }),
  ],
  [
    { ...job, kind: 'shadow-exception', message: 'Error from slot1: no such file' },
    classic('007', 'Shadow exception!', '\tError from slot1: no such file', '\t0  -  Run Bytes Sent By Job'),
    json(7, { Message: 'Error from slot1: no such file' }),
    xml(7, { Message: 'Error from slot1: no such file' }),
  ],
  [
    { ...job, kind: 'aborted', reason: 'via condor_rm (by user pilot)' },
    classic('009', 'Job was aborted.', '\tvia condor_rm (by user pilot)'),
    json(9, { Reason: 'via condor_rm (by user pilot)' }),
    xml(9, { Reason: 'via condor_rm (by user pilot)' }),
  ],
  [
    { ...job, kind: 'suspended', processes: 2 },
    classic('010', 'Job was suspended.', '\tNumber of processes actually suspended: 2'),
    json(10, { NumberOfPIDs: 2 }),
    xml(10, { NumberOfPIDs: 2 }),
  ],
  [{ ...job, kind: 'unsuspended' }, classic('011', 'Job was unsuspended.'), json(11, {}), xml(11, {})],
  [
    { ...job, kind: 'held', reason: 'cannot open <a> & "b"', code: 13, subcode: 2 },
    classic('012', 'Job was held.', '\tcannot open <a> & "b"', '\tCode 13 Subcode 2'),
    json(12, { HoldReason: 'cannot open <a> & "b"', HoldReasonCode: 13, HoldReasonSubCode: 2 }),
    xml(12, { HoldReason: 'cannot open <a> & "b"', HoldReasonCode: 13, HoldReasonSubCode: 2 }),
  ],
  [
    { ...job, kind: 'released', reason: 'go' },
    classic('013', 'Job was released.', '\tgo'),
    json(13, { Reason: 'go' }),
    xml(13, { Reason: 'go' }),
  ],
  [
    { ...job, kind: 'disconnected', reason: 'Socket closed unexpectedly', slot: 'slot1@node' },
    classic(
      '022',
      'Job disconnected, attempting to reconnect',
      '    Socket closed unexpectedly',
      '    Trying to reconnect to slot1@node <1.2.3.4:9618>',
    ),
    json(22, { DisconnectReason: 'Socket closed unexpectedly', StartdName: 'slot1@node' }),
  ],
  [
    { ...job, kind: 'reconnected', slot: 'slot1@node' },
    classic(
      '023',
      'Job reconnected to slot1@node',
      '    startd address: <1.2.3.4>',
      '    starter address: <1.2.3.4>',
    ),
    json(23, { StartdName: 'slot1@node' }),
  ],
  [
    { ...job, kind: 'reconnect-failed', reason: 'Job not found at execution machine', slot: 'slot1@node' },
    classic(
      '024',
      'Job reconnection failed',
      '    Job not found at execution machine',
      '    Can not reconnect to slot1@node, rescheduling job',
    ),
    json(24, { Reason: 'Job not found at execution machine', StartdName: 'slot1@node' }),
  ],
  [
    { ...job, kind: 'grid-submit', resource: 'condor ce.test ce.test:9619', gridJob: 'condor ce.test 4.0' },
    classic(
      '027',
      'Job submitted to grid resource',
      '    GridResource: condor ce.test ce.test:9619',
      '    GridJobId: condor ce.test 4.0',
    ),
    json(27, { GridResource: 'condor ce.test ce.test:9619', GridJobId: 'condor ce.test 4.0' }),
  ],
  [
    { ...job, kind: 'other', number: 28 },
    classic('028', 'Job ad information event triggered.', 'A = 1'),
    json(28, { A: 1 }),
  ],
];

describe('event logs of HTCondor', () => {
  for (const [event, ...texts] of samples) {
    const { kind, end } = event as { kind: string; end?: object };
    it(`say the same in every format: ${kind}${end ? ` ${JSON.stringify(end)}` : ''}`, () => {
      for (const text of texts) expect(only(text), text).to.deep.equal(event);
    });
  }

  it('are read whole as HTCondor 23.9 wrote one', () => {
    const text = readFileSync(join(import.meta.dirname, '../../fixtures/htcondor/job.log'), 'utf8');
    const { events, garbage, consumed } = read(text);
    expect(garbage).to.deep.equal([]);
    expect(consumed).to.equal(text.length);
    const ofLast = events.filter(({ proc }) => proc === 2).map(({ kind }) => kind);
    expect(ofLast.filter((kind) => kind !== 'file-transfer' && kind !== 'image-size')).to.deep.equal([
      ...[
        'submit',
        'execute',
        'evicted',
        'held',
        'released',
        'execute',
        'suspended',
        'unsuspended',
        'evicted',
        'aborted',
      ],
    ]);
    const ends = events.flatMap((one) => (one.kind === 'terminated' ? [one.end] : []));
    expect(ends).to.deep.equal([{ exitCode: 0 }, { exitCode: 7 }]);
  });

  it('have times in UTC, in local time, and without a year', () => {
    const time = (text: string) => read(text).events[0]?.time;
    const head = (when: string) => `011 (1.0.0) ${when} Job was unsuspended.\n...\n`;
    expect(time(head('2026-11-21 19:40:42Z'))).to.equal(Date.UTC(2026, 10, 21, 19, 40, 42));
    expect(time(head('2026-11-21 19:40:42.125Z'))).to.equal(Date.UTC(2026, 10, 21, 19, 40, 42, 125));
    expect(time(head('2026-11-21 19:40:42'))).to.equal(new Date(2026, 10, 21, 19, 40, 42).getTime());
    expect(time(head('11/20 19:40:42'))).to.equal(new Date(2026, 10, 20, 19, 40, 42).getTime());
    // On New Year's Day, December is the last one.
    expect(time(head('12/31 23:00:00'))).to.equal(new Date(2025, 11, 31, 23).getTime());
    expect(time(json(11, { EventTime: 'soon' }))).to.equal(undefined);
  });

  const piece = fc.constantFrom(...samples.flatMap(([, ...texts]) => texts));

  it('are read the same wherever the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        (pieces, cuts) => {
          const all = Buffer.from(pieces.join(''));
          const whole = readEvents(all, now);
          expect(whole.events).to.have.length(pieces.length);
          const events: JobEvent[] = [];
          let offset = 0;
          const ends = [...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
          for (const end of ends) {
            if (end < offset) continue;
            const part = readEvents(all.subarray(offset, end), now);
            expect(part.garbage).to.deep.equal([]);
            events.push(...part.events);
            offset += part.consumed;
          }
          expect(events).to.deep.equal(whole.events);
          expect(all.subarray(offset).toString().trim()).to.equal('');
        },
      ),
      { numRuns: 500 },
    );
  });

  it('lose a torn record, at most the one behind it, and no other, wherever it was torn, and say so', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(0, 1, 2).chain((format) => {
          const texts = samples.flatMap(([, ...formats]) => formats[format] ?? []);
          return fc.array(fc.constantFrom(...texts), { minLength: 3, maxLength: 3 });
        }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        ([before = '', torn = '', after = ''], share) => {
          const half = torn.slice(0, Math.max(1, Math.floor((torn.trimEnd().length - 4) * share)));
          const { events, garbage, consumed } = read(`${before}${half}${after}`);
          // In text, one that begins in the middle of a line may be what a user wrote into the torn one.
          const isBehind = /^\d{3} /.test(after) && !half.endsWith('\n');
          const wanted = [before, isBehind ? '' : after].flatMap((one) => read(one).events);
          expect(events).to.deep.equal(wanted);
          expect(consumed).to.equal(Buffer.byteLength(`${before}${half}${after}`));
          expect(garbage).to.not.be.empty;
        },
      ),
      { numRuns: 500 },
    );
  });

  describe('hole 1: take no text of a user for an event of another job', () => {
    const forged = '005 (777.000.000) 2026-11-21 20:00:00 Job terminated.';
    const twoForged = `x 009 (777.0.0) 11/21 20:00:00 y ${forged}`;
    for (const [where, record] of [
      ['the reason of a hold', classic('012', 'Job was held.', `\tx ${forged}`, '\tCode 3 Subcode 0')],
      ['two in one reason', classic('012', 'Job was held.', `\t${twoForged}`, '\tCode 3 Subcode 0')],
      ['the reason of a removal', classic('009', 'Job was aborted.', `\t${forged}`)],
      ['notes', classic('000', 'Job submitted from host: <1.2.3.4:9618>', `    ${forged}`)],
      ['an event that the job wrote', classic('008', `y ${forged}`)],
      [
        'the name of a file',
        classic('007', 'Shadow exception!', `\treading from file /x ${forged}: no such file`),
      ],
      [
        'what is behind a carriage return',
        classic('012', 'Job was held.', `\tx\r${forged}`, '\tCode 3 Subcode 0'),
      ],
      ['what is behind a torn record', `005 (7.0\n\tx ${forged}\n\tCode 3 Subcode 0\n...\n`],
    ] as const)
      it(`in ${where}`, () => {
        const after = classic('011', 'Job was unsuspended.');
        const { events, garbage } = read(`${after}${record}${after}`);
        expect(events).to.deep.equal([after, after].flatMap((one) => read(one).events));
        expect(garbage).to.have.length(1);
      });

    it('in JSON and XML, where it changes nothing', () => {
      const held = { ...job, kind: 'held', reason: `x ${forged}`, code: 3, subcode: 0 };
      const ad = { HoldReason: `x ${forged}`, HoldReasonCode: 3, HoldReasonSubCode: 0 };
      for (const text of [json(12, ad), xml(12, ad)]) expect(only(text)).to.deep.equal(held);
    });

    it('in a record of another format, which is a part of the reason', () => {
      const reason = `x\r${json(9, {}).replaceAll('\n', '\r').trimEnd()}`;
      const text = classic('012', 'Job was held.', `\t${reason}`, '\tCode 3 Subcode 0');
      expect(only(text)).to.deep.equal({ ...job, kind: 'held', reason, code: 3, subcode: 0 });
    });

    it('where a reading begins in the middle of a line', () => {
      const after = classic('011', 'Job was unsuspended.');
      const text = `${forged}\n\tCode 3 Subcode 0\n...\n${after}`;
      const { events, garbage, consumed } = readEvents(Buffer.from(text), now, true);
      expect(events).to.deep.equal(read(after).events);
      expect({ garbage: garbage.length, consumed }).to.deep.equal({ garbage: 1, consumed: text.length });
    });
  });

  it('lose no JSON record that follows a torn key', () => {
    const { events, garbage } = read(`{\n    "MyType": "SubmitEvent",\n    "Cluster": ${json(11, {})}`);
    expect(events).to.deep.equal(read(json(11, {})).events);
    expect(garbage).to.have.length(1);
  });

  const unsuspended = (inside: string) =>
    `<c>\n    <a n="EventTypeNumber"><i>11</i></a>\n    <a n="Cluster"><i>12</i></a>\n    <a n="Proc"><i>3</i></a>\n${inside}</c>\n`;
  const nested =
    '    <a n="A"><c>\n        <a n="B"><c>\n        <a n="C"><i>1</i></a>\n        </c></a>\n    </c></a>\n';
  for (const [where, torn] of [
    ['a torn key', '    <a n="Cluster">'],
    ['a whole ad in a torn one', `${nested}    <a n=`],
    ['a torn ad in a torn one', nested.slice(0, 30)],
  ] as const) {
    it(`lose no XML record that follows ${where}`, () => {
      const after = unsuspended(nested);
      const { events, garbage } = read(`${unsuspended('').slice(0, -5)}${torn}${after}`);
      expect(events).to.deep.equal(read(after).events);
      expect(events).to.have.length(1);
      expect(garbage).to.have.length(1);
    });
  }

  it('lose nothing to garbage between records, and never fail by it', () => {
    const junk = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('...\n', '\n\n', '</c>', '}', '\0\0\0'),
    );
    fc.assert(
      fc.property(piece, junk, piece, (before, rubbish, after) => {
        fc.pre(!/^(\{|<c>|\d{3} \()/m.test(rubbish));
        const { events, garbage } = read(`${before}${rubbish}\n${after}`);
        expect(events).to.deep.equal([before, after].flatMap((one) => read(one).events));
        expect(garbage.length > 0).to.equal(rubbish.trim() !== '');
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(readEvents(Buffer.from(bytes), now).consumed).to.be.at.most(bytes.length);
      }),
    );
  });

  it('hole 8: of a hundred thousand torn records are one garbage, and what follows is read', () => {
    for (const torn of ['{\n', '<c>\n<a n=""><c>\n', '000 (012.003.000) x\n']) {
      const { events, garbage } = read(`${torn.repeat(100_000)}${json(11, {})}`);
      expect(events, torn).to.deep.equal(read(json(11, {})).events);
      expect(garbage.map(({ bytes }) => bytes)).to.deep.equal([torn.length * 100_000]);
    }
  });

  it('hole 8: before a line of a megabyte that has no end are read without a look through that line for each', () => {
    const torn = 'x\n{\n}\n'.repeat(2000);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the text, and put back
    const { lastIndexOf } = String.prototype;
    let looks = 0;
    String.prototype.lastIndexOf = function (...given) {
      looks += given[0] === '\n' ? 1 : 0;
      return lastIndexOf.apply(this, given);
    };
    try {
      const { garbage, consumed, events } = read(torn + 'x'.repeat(1024 * 1024));
      expect([garbage.length, consumed, events.length]).to.deep.equal([1, torn.length, 0]);
    } finally {
      String.prototype.lastIndexOf = lastIndexOf;
    }
    expect(looks).to.be.at.most(5);
  });

  it('hole 8: parse a torn record from its braces within a bound', () => {
    // The fault stands at the end, so that each attempt reads all.
    const evil = `{\n${'  "x": {\n'.repeat(64)}${'"a": 1234567,'.repeat(75_000)}oops\n}\n`;
    const { parse } = JSON;
    let parsed = 0;
    JSON.parse = ((text: string) => {
      parsed += text.length;
      return parse(text) as unknown;
    }) as typeof parse;
    try {
      const { events, garbage } = read(evil.repeat(2));
      expect({ events: events.length, garbage: garbage.length }).to.deep.equal({ events: 0, garbage: 1 });
    } finally {
      JSON.parse = parse;
    }
    expect(parsed / evil.length, 'times that a record was parsed').to.be.within(2, 8);
  });

  it('hole 8: count each attempt at a torn record, so that one reading makes some thousands', () => {
    const evil = '{\n"EventTypeNumber":1,"a":[[[[[[{\n}\n';
    const { parse } = JSON;
    let attempts = 0;
    JSON.parse = ((text: string) => {
      attempts++;
      return parse(text) as unknown;
    }) as typeof parse;
    try {
      const { more, events } = readEvents(Buffer.from(evil.repeat(20_000)), now);
      expect({ more, events: events.length }).to.deep.equal({ more: true, events: 0 });
    } finally {
      JSON.parse = parse;
    }
    expect(attempts).to.be.within(1000, 5000);
  });

  it('tell where garbage stands and how it begins', () => {
    const { garbage } = read(`${json(11, {})}what is this\n${json(11, {})}`);
    expect(garbage).to.deep.equal([{ at: json(11, {}).length, bytes: 13, excerpt: 'what is this' }]);
  });

  it('hole 8: is read in parts where it has very many records', () => {
    const event = '000 (1.0.0) 2026-01-01 00:00:00 x\n...\n';
    for (const [one, isEvent] of [
      ['{\n}\n', false],
      ['<c>\n</c>\n', false],
      [event, true],
    ] as const) {
      const all = Buffer.from(one.repeat(25_000));
      const parts: EventsRead[] = [];
      for (let at = 0; at < all.length; at += parts.at(-1)?.consumed ?? all.length)
        parts.push(readEvents(all.subarray(at), now));
      expect(parts.map(({ more, consumed }) => [more, consumed / one.length])).to.deep.equal([
        [true, 10_000],
        [true, 10_000],
        [false, 5000],
      ]);
      expect(parts.flatMap(({ events }) => events)).to.have.length(isEvent ? 25_000 : 0);
    }
  });

  it('wait for the end of a record, but not for ever', () => {
    const open = json(11, {}).trimEnd().slice(0, -1);
    expect(read(open)).to.deep.equal({ events: [], garbage: [], consumed: 0, more: false });
    const endless = `${open}${' '.repeat(1024 * 1024)}`;
    expect(read(endless)).to.include({ consumed: endless.length });
  });
});
