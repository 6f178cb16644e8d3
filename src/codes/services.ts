import type { Explanation } from './explanation.ts';

/** Why a service of a running daemon does not do its work. */
export const serviceErrors = {
  'loop-stuck': {
    meaning: 'A loop of the daemon makes no progress: a call does not come back, although its time is over.',
    remedy:
      'systemd starts the daemon again where its watchdog is on; otherwise do it by hand. Report the loop that the message names.',
  },
  'cache-old': {
    meaning:
      'Data of the cacher, such as the queues of CRIC, could not be fetched anew for longer than `cacher.warnAge`. thresher goes on with the last ones.',
    remedy: 'See with `thresher cacher` why they cannot be fetched.',
    note: true,
  },
  'news-dropped': {
    meaning:
      'A source did not take the news of its workers for longer than `sweeper.keepNews`, or more than `sweeper.mostNews` waited. thresher dropped the oldest.',
    remedy:
      'Find out in the log why the source failed, and let it compare its own records with `thresher workers`.',
    note: true,
  },
} as const satisfies Record<string, Explanation>;
