/** A third-party throttler for tests that never throttles, and takes its time to say so. */
import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { definePlugin } from '../../../src/plugins/contracts/index.ts';

export const SlowThrottler = definePlugin({
  kind: 'throttler',
  name: 'SlowThrottler',
  module: 'slow',
  config: Type.Object({ seconds: Type.Number() }),
  create: ({ seconds }) => ({
    countsFamily: false,
    async judge() {
      await sleep(seconds * 1000);
      return undefined;
    },
  }),
});
