import { systemClock } from '../../src/util/clock.ts';
import { OperatorFiles } from '../../src/util/operator-files.ts';

/** Reads files as the daemon does. */
export const files = new OperatorFiles({ clock: systemClock });
