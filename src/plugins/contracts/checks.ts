import type { ErrorCode } from '../../codes/codes.ts';
import { systemClock } from '../../util/clock.ts';
import { withDeadline } from '../../util/deadline.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { DefinitionProblem } from './definition-problem.ts';

type Problems = readonly DefinitionProblem[];

/** How long the check of one section may take, ms: several files of a file system that hangs. */
const longest = 60_000;

/** The mistakes that a check finds. A check that throws or hangs is a mistake of its own section, and stops no other. */
export async function problemsOf(
  name: string,
  check: () => Problems | Promise<Problems> | undefined,
  timeoutMs = longest,
): Promise<Problems> {
  const what = `the check of ${name}`;
  const { signal } = new AbortController();
  try {
    const deadline = { clock: systemClock, what, timeoutMs, signal };
    const found = (await withDeadline(deadline, async () => check())) ?? [];
    const isList: boolean = Array.isArray(found);
    if (!isList) throw new TypeError('it returned no list');
    return found;
  } catch (error) {
    const code: ErrorCode = error instanceof ThresherError ? error.code : 'plugin-failed';
    const isLate = code === 'plugin-timeout';
    return [
      { pointer: '', code, message: isLate ? messageOf(error) : `${what} failed: ${messageOf(error)}` },
    ];
  }
}
