import type { SourceHttpAnswer, SourceHttpRequest } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { withDeadline } from '../util/deadline.ts';
import type { RunningSource } from './source-set.ts';

/** How long a source may take for an answer, ms: the HTTP server waits little longer. */
const patience = 10_000;

/**
 * The answer of a source at its door; undefined where no such source has one.
 * @throws ThresherError `plugin-timeout`, `shutting-down`, and anything that the source throws
 */
export async function answerOfSource(
  sources: readonly RunningSource[],
  kind: string,
  request: SourceHttpRequest,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<SourceHttpAnswer | undefined> {
  const source = sources.find((one) => one.kind === kind)?.source;
  if (source?.answer === undefined) return undefined;
  const deadline = { clock, what: `the answer of source ${kind}`, timeoutMs: patience, signal };
  return await withDeadline(deadline, async (signal) => source.answer?.(request, signal));
}
