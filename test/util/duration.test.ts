import { expect } from 'chai';
import { parseDuration } from '../../src/util/duration.ts';

describe('a duration', () => {
  for (const [text, ms] of [
    ['90', 90_000],
    ['0', 0],
    ['0.5', 500],
    ['20s', 20_000],
    ['5m', 300_000],
    ['500ms', 500],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
    ['1m500ms', 60_500],
  ] as const) {
    it(`"${text}" is a duration of ${ms} ms`, () => {
      expect(parseDuration(text)).to.equal(ms);
    });
  }

  for (const text of ['', 's', '-5s', '5 s', '1m30', '5w', '1e3', 'NaN', '.5s', '5S']) {
    it(`"${text}" is no duration`, () => {
      expect(parseDuration(text)).to.equal(undefined);
    });
  }
});
