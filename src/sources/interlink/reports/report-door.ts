import type { SourceHttpAnswer, SourceHttpRequest } from '../../../plugins/contracts/index.ts';
import { isPodUid } from '../pod/names.ts';
import { isReportToken } from './report-key.ts';
import { type PodReport, readReport } from '../pod/report.ts';

/** A job sends its report there, below the door of the source: `reports/UID`. */
export const reportsPath = 'reports';

/** Takes the reports that jobs send while they run. A report changes only what is shown of its own Pod. */
export class ReportDoor {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param take hears of a report; returns whether there is such a job */
  answer(request: SourceHttpRequest, take: (uid: string, report: PodReport) => boolean): SourceHttpAnswer {
    const { method, path, headers, body } = request;
    const [directory, uid = '', ...more] = path.split('/');
    if (directory !== reportsPath || more.length > 0 || !isPodUid(uid))
      return failure(404, `nothing is here; reports are sent to .../${reportsPath}/UID`);
    if (method !== 'POST' && method !== 'PUT') return failure(405, 'a report is sent by POST');
    const [, token = ''] = /^Bearer +(\S+)$/i.exec(headers['authorization'] ?? '') ?? [];
    if (!isReportToken(this.#key, uid, token))
      return failure(401, 'the report brings no token of the Pod that it names');
    const report = readReport(Buffer.from(body).toString('utf8'));
    if (typeof report === 'string') return failure(400, report);
    return { status: 200, body: JSON.stringify({ result: take(uid, report) ? 'taken' : 'without effect' }) };
  }
}

function failure(status: number, message: string): SourceHttpAnswer {
  return { status, body: JSON.stringify({ code: 'interlink-report', message }) };
}
