/** A third-party source for tests, which lives as its option `life` says. It asks each queue that names it for one worker. */
import Type from 'typebox';
import { defineSource, type Desk } from '../../../src/plugins/contracts/index.ts';

/** The desks that sources of this process were given, the newest last. */
export const desks: Desk[] = [];

const lives: Readonly<Record<string, (signal: AbortSignal) => Promise<void>>> = {
  well: (signal) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    }),
  throws: () => Promise.reject(new Error('no route to its server')),
  hangs: () => new Promise(() => undefined),
};

export const oddSource = defineSource({
  name: 'odd',
  module: 'odd',
  config: Type.Object({ life: Type.String({ default: 'well' }) }),
  create: ({ life }) => ({
    wanted: async ({ name, own }) => ({
      requests: own ? [{ origin: { uid: name, index: 0 } }] : [],
      groups: [],
      reasons: [],
    }),
    run: (desk, signal) => {
      desks.push(desk);
      return lives[life]?.(signal) ?? Promise.resolve();
    },
  }),
});
