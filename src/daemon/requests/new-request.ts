import type { AskedBy, NewRequest } from '../../store/requests.ts';
import { isConfigured, type QueueReport } from '../../store/queues.ts';
import { similar } from '../../util/nearest.ts';
import { ThresherError } from '../../worker/errors.ts';
import { mostWorkers } from '../../worker/operator-request.ts';
import { requirePayload } from '../../worker/payload-check.ts';
import { partsOf } from '../../worker/payload.ts';
import type { Requirements } from '../../worker/worker.ts';

/** A request as somebody typed or sent it. */
export interface RequestInput {
  readonly queue: string;
  readonly count: number;
  readonly requirements?: Partial<Requirements>;
  readonly payload?: unknown;
  /** The asker's own name for it. */
  readonly key?: string;
}

type Report = Pick<QueueReport, 'queue' | 'queueStatus' | 'reasons'>;

/**
 * A request with an id of its own, checked. The reports are those of the last daemon where none is running.
 * @throws ThresherError `no-such-queue`, `request-wrong`, `payload-wrong`, `payload-too-large`
 */
export function newRequest(
  input: RequestInput,
  by: AskedBy,
  reports: readonly Report[],
  random: () => number,
  isRunning = true,
): NewRequest {
  const { queue, count, requirements = {}, payload = {}, key } = input;
  requireQueueToAsk(queue, reports, isRunning);
  if (!Number.isInteger(count) || count < 1 || count > mostWorkers) {
    const message = `the count is ${count}; it must be a whole number from 1 to ${mostWorkers}`;
    throw new ThresherError('request-wrong', message);
  }
  if (key !== undefined && !/^[\x21-\x7e]{1,200}$/.test(key)) {
    const message = 'the key must be 1 to 200 characters of plain ASCII without spaces';
    throw new ThresherError('request-wrong', message);
  }
  requirePayload(payload);
  const request = { id: newRequestId(random), queue, count, requirements, by };
  const filled = partsOf(payload).length === 0 ? request : { ...request, payload };
  return key === undefined ? filled : { ...filled, key };
}

function requireQueueToAsk(queue: string, reports: readonly Report[], isRunning: boolean): void {
  const asOf = isRunning ? '' : ', as far as the last daemon knew';
  const names = reports.map((report) => report.queue);
  const report = reports.find((one) => one.queue === queue);
  if (report === undefined) {
    const near = similar(queue, names);
    const hint =
      near.length > 0 ? `did you mean ${near.join(', ')}?` : `there are ${names.join(', ') || 'none'}`;
    throw new ThresherError('no-such-queue', `there is no queue ${queue}${asOf}; ${hint}`);
  }
  const { queueStatus, reasons } = report;
  if (isConfigured(report)) return;
  const why = reasons[0] === undefined ? '' : `: ${reasons[0].message}`;
  throw new ThresherError('request-wrong', `the queue ${queue} is ${queueStatus}${asOf}${why}`);
}

/** Unique for good, since no origin gets two workers: 60 bits of chance. */
function newRequestId(random: () => number): string {
  return Array.from({ length: 12 }, () => '0123456789abcdefghjkmnpqrstvwxyz'[Math.floor(random() * 32)]).join(
    '',
  );
}
