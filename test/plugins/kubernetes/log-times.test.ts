import { expect } from 'chai';
import { LogTimes } from '../../../src/plugins/kubernetes/log-times.ts';

describe('LogTimes', () => {
  const line = (nanoseconds: number, text: string, zone = 'Z') =>
    `2026-01-02T03:04:05.${`${nanoseconds}`.padStart(9, '0')}${zone} ${text}\n`;

  /** What is shown of these streams of one log, each cut into pieces of this length. */
  function shown(length: number, ...streams: readonly string[]): string {
    const times = new LogTimes();
    return streams
      .map((stream) => {
        times.begin();
        let text = '';
        for (let at = 0; at < stream.length; at += length) text += times.take(stream.slice(at, at + length));
        return text;
      })
      .join('');
  }

  const cases: readonly {
    readonly title: string;
    readonly streams: readonly string[];
    readonly is: string;
  }[] = [
    { title: 'one stream, without its times', streams: [line(1, 'a b') + line(2, '')], is: 'a b\n\n' },
    {
      title: 'a stream that repeats all',
      streams: [line(1, 'a'), line(1, 'a') + line(2, 'b')],
      is: 'a\nb\n',
    },
    {
      title: 'lines of one nanosecond, of which the second was not shown',
      streams: [line(1, 'a'), line(1, 'a') + line(1, 'b'), line(1, 'a') + line(1, 'b') + line(1, 'c')],
      is: 'a\nb\nc\n',
    },
    {
      title: 'a line cut in its middle',
      streams: [line(1, 'abc').slice(0, -3), line(1, 'abc')],
      is: 'abc\n',
    },
    { title: 'a stream cut in a time', streams: [line(1, 'a') + '2026-01', line(2, 'b')], is: 'a\nb\n' },
    {
      title: 'zones other than UTC, in the order of time',
      streams: [line(5, 'a', '+01:00'), line(5, 'a', '+01:00') + line(4, 'b', '+00:00')],
      is: 'a\nb\n',
    },
    {
      title: 'words of the node, which have no time',
      streams: ['unable to retrieve the container log of this Pod\nagain\n\n' + line(1, 'a')],
      is: 'unable to retrieve the container log of this Pod\nagain\n\na\n',
    },
  ];

  for (const { title, streams, is } of cases)
    for (const length of [1, 7, 1000])
      it(`${title}, in pieces of ${length}`, () => {
        expect(shown(length, ...streams)).to.equal(is);
      });

  it('goes on from the second of its newest line', () => {
    const times = new LogTimes();
    expect(times.since).to.equal(undefined);
    times.take(line(7, 'a') + line(8, 'b').slice(0, 20));
    expect(times.since).to.equal(Date.UTC(2026, 0, 2, 3, 4, 5));
  });
});
