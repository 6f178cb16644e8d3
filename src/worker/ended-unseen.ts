import type { ErrorCode } from '../codes/codes.ts';

/**
 * Why a worker is `missed` that the backend did not know any more when this daemon first looked. When it ended is unknown: while
 * no daemon ran, or after the backup that the database was restored from. It tells nothing of the resource as it is now, so
 * whatever counts missed workers to hold a queue back leaves it out.
 */
export const endedUnseen = { code: 'ended-unseen' } as const satisfies { code: ErrorCode };
