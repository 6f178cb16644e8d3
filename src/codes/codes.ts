import type { commandLineErrors } from './command-line.ts';
import type { configurationErrors } from './configuration.ts';
import type { daemonErrors } from './daemon.ts';
import type { Explanation } from './explanation.ts';
import type { httpErrors } from './http.ts';
import type { poolErrors } from './pool.ts';
import type { reasons } from './reasons.ts';
import type { serviceErrors } from './services.ts';
import type { storeErrors } from './store.ts';
import type { workerErrors } from './workers.ts';

/**
 * Every code that this program shows, by its explanation. Codes are never renamed or reused. A backend or a client keeps its
 * codes in a `codes.ts` of its own folder and adds them here by declaration merging, so that no file below names a backend.
 * `daemon/every-code.ts` lists the tables for those that look codes up.
 */
export interface Codes
  extends
    Table<typeof configurationErrors>,
    Table<typeof storeErrors>,
    Table<typeof daemonErrors>,
    Table<typeof httpErrors>,
    Table<typeof commandLineErrors>,
    Table<typeof poolErrors>,
    Table<typeof reasons>,
    Table<typeof serviceErrors>,
    Table<typeof workerErrors> {}

/** One folder's codes, as `Codes` takes them up. */
export type Table<Explanations> = Readonly<Record<keyof Explanations, Explanation>>;

export type ErrorCode = keyof Codes;
