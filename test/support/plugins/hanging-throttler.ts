/** A third-party throttler for tests that hangs in a named pipe which no other process writes, as others do on a dead mount. */
import { open, readFileSync } from 'node:fs';
import Type from 'typebox';
import { definePlugin } from '../../../src/plugins/contracts/index.ts';

/** More than libuv has threads. */
const opens = 8;
let hangs = false;

export const HangingThrottler = definePlugin({
  kind: 'throttler',
  name: 'HangingThrottler',
  module: 'hanging',
  config: Type.Object({
    pipe: Type.String(),
    /** The threads that work on files at once, and the main thread too where a stop begins, or a defect comes. */
    then: Type.Optional(Type.Union([Type.Literal('main-thread'), Type.Literal('defect')])),
  }),
  create: ({ pipe, then }) => ({
    countsFamily: false,
    judge() {
      if (hangs) return Promise.resolve(undefined);
      hangs = true;
      for (let at = 0; at < opens; at++) open(pipe, 'r', () => undefined);
      if (then === 'main-thread') process.on('SIGTERM', () => readFileSync(pipe));
      if (then === 'defect') {
        setImmediate(() => {
          throw new Error('a planted defect');
        });
      }
      process.stderr.write('the threads hang\n');
      return Promise.resolve(undefined);
    },
  }),
});
