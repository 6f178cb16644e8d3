import type { QueueFileResult } from '../../config/queues/queues.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Problem } from '../../util/located.ts';
import { whyNot } from './queue-reports.ts';

/** Lines for problems of one kind in one file: a file of another's may have any number. */
const mostLines = 100;

/**
 * Logs what was found in the queue file. An incomplete queue is one line with all that is missing, and notices on single
 * queues are for who looks closer: a file of sixty queues would otherwise bury its mistakes.
 */
export function logProblems(log: Log, { problems, verdicts, incomplete }: QueueFileResult): void {
  // Queues have options that do nothing from their template, or from each other: one line says it for all of them.
  const told = new Set<string>();
  const counts = new Map<string, number>();
  for (const problem of problems) {
    const { file, queue, severity, code, message } = problem;
    const missing = severity === 'error' && queue !== undefined && incomplete.includes(queue);
    const key = JSON.stringify([file, code, message]);
    if (missing || (code === 'option-without-effect' && told.has(key))) continue;
    told.add(key);
    const kind = JSON.stringify([file, code]);
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    if (count <= mostLines) logProblem(log, problem);
  }
  for (const [kind, count] of counts) {
    if (count <= mostLines) continue;
    const [file, code] = JSON.parse(kind) as readonly string[];
    log.warn('more of these in the configuration: see `thresher check-config`', {
      file,
      code,
      count: count - mostLines,
    });
  }
  for (const verdict of verdicts) {
    if (verdict.state !== 'incomplete') continue;
    log.error('queue incomplete', {
      queue: verdict.name,
      code: 'queue-incomplete',
      message: whyNot(verdict),
    });
  }
}

export function logProblem(log: Log, problem: Problem): void {
  const { file, pointer, line, severity, code, message, queue } = problem;
  const detail = { file, pointer, line, code, message, ...(queue !== undefined && { queue }) };
  switch (severity) {
    case 'error':
      log.error('configuration error', detail);
      break;
    case 'warning':
      log.warn('configuration warning', detail);
      break;
    case 'notice':
      if (queue === undefined) log.info('configuration notice', detail);
      else log.debug('configuration notice', detail);
      break;
  }
}

/** Tells of a queue file that was read again. */
export function logReload(log: Log, queueFile: QueueFileResult, cause: string): void {
  const { queues, incomplete, refused, readable } = queueFile;
  const facts = { cause, queues: queues.length, incomplete: incomplete.length, refused: refused.length };
  if (!readable) log.error('the queue file cannot be used: all queues go on as they were', facts);
  else if (refused.length > 0 || incomplete.length > 0)
    log.warn('the queue file was read again; some queues have errors', facts);
  else log.info('the queue file was read again', facts);
}

/** Tells that the daemon is at work. */
export function logStart(
  log: Log,
  { queues, incomplete, refused }: QueueFileResult,
  { factory, liveWorkers }: { readonly factory: string; readonly liveWorkers: number },
): void {
  const counts = { queues: queues.length, incomplete: incomplete.length, refused: refused.length };
  log.info('started', { factory, ...counts, liveWorkers });
}
