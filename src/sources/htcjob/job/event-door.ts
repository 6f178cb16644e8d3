import type { SourceHttpAnswer, SourceHttpRequest } from '../../../plugins/contracts/index.ts';
import type { JobReport } from '../../../clients/htcjob/resource.ts';
import { readCloudEvent } from './cloud-event.ts';
import type { JobKey } from '../../job-key.ts';
import { isTokenOf } from './token.ts';

/** The event that htc-operator's jobs send when they end. */
const eventType = 'htcjob.cloudevent';
/** Where it is sent to, below the door of the source. */
const eventPath = 'cloudevents';

/**
 * Takes the events of jobs. An event proves with its token which job it is of, and changes nothing but what is shown of this job: a
 * forged or a foreign one is refused before anything is looked up, and a repeated or a late one has no effect.
 */
export class EventDoor {
  readonly #key: JobKey;
  readonly #take: (report: JobReport) => boolean;

  /** @param take hears of a job's end; returns whether this told it anything */
  constructor(key: JobKey, take: (report: JobReport) => boolean) {
    this.#key = key;
    this.#take = take;
  }

  answer(request: SourceHttpRequest): SourceHttpAnswer {
    const { method, path, headers } = request;
    if (path !== eventPath) return failure(404, `nothing is here; events are sent to .../${eventPath}`);
    if (method !== 'POST')
      return { ...failure(405, `${method} is not answered here; only POST is`), headers: { allow: 'POST' } };
    const read = readCloudEvent(request);
    if (!read.ok) return failure(read.status, read.message);
    const { type, data } = read.event;
    if (type !== eventType) return failure(400, `the event has another type than ${eventType}`);
    const told = toldBy(data, headers['authorization']);
    if (typeof told === 'string') return failure(400, told);
    const { token, report } = told;
    if (!isTokenOf(this.#key, report, token))
      return failure(401, 'the event brings no token of the job that it names');
    return done(this.#take(report) ? 'taken' : 'without effect');
  }
}

interface Told {
  readonly report: JobReport;
  readonly token: string;
}

/** The report in an event's data, or what is wrong in it. */
function toldBy(data: unknown, authorization: string | undefined): Told | string {
  if (typeof data !== 'object' || data === null) return 'the event has no data; it must be a JSON object';
  const { uid, index, retcode, token: inData } = data as Readonly<Record<string, unknown>>;
  if (typeof uid !== 'string' || uid === '' || uid.length > 100)
    return 'uid must be the UID of the HTCJob, a text';
  if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0)
    return 'index must be the number of the job, a whole number';
  const code = typeof retcode === 'number' ? String(retcode) : retcode;
  if (typeof code !== 'string' || !/^-?\d{1,5}$/.test(code))
    return 'retcode must be an exit status, such as "0"';
  const [, bearer] = /^Bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
  const token = typeof inData === 'string' ? inData : (bearer ?? '');
  return { report: { uid, index, returnCode: Number(code) }, token };
}

function done(result: string): SourceHttpAnswer {
  return { status: 200, body: JSON.stringify({ result }) };
}

function failure(status: number, message: string): SourceHttpAnswer {
  return { status, body: JSON.stringify({ code: 'htcjob-event', message }) };
}

/** Where jobs send no events. */
export const noEvents = failure(
  404,
  'thresher takes no events: set eventsUrl in sources.htcjob of its settings',
);
