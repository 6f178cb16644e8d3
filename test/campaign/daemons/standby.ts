import { Acts } from './acts.ts';
import type { Division } from './division.ts';
import { leaderNotes } from './leader-notes.ts';
import { leaderStrikes } from './leader-strikes.ts';

/** Two daemons: one leads, and the other one stands by. Workers of `short` end within two seconds, those of `long` live through a take-over. */
export const standby: Division = {
  daemons: 2,
  caps: {
    queues: {
      short: { maxWorkers: 3, nQueueLimitWorker: 2 },
      long: { maxWorkers: 2, nQueueLimitWorker: 1 },
    },
    families: [],
  },
  lives: { short: '1500ms', long: '7s' },
  sharesFiles: false,
  database: () => ({}),
  beginActs: (server, database) => Acts.begin(server, database, leaderNotes),
  moves: 'take-overs',
  strikes: leaderStrikes,
  awaited: 0.75,
  worksAgain: (queues) => queues.size > 0,
};
