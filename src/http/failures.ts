import type { FastifyError } from 'fastify';
import type { ErrorCode } from '../codes/codes.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';

export interface Answer {
  readonly status: number;
  readonly reason: Reason;
}

/** HTTP's status for our codes; the database's and unforeseen ones are 500. */
const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  'http-request-wrong': 400,
  'request-wrong': 400,
  'no-such-queue': 400,
  'payload-wrong': 400,
  'payload-too-large': 413,
  'request-key-taken': 409,
  'requests-full': 429,
  'no-such-request': 404,
  'no-such-htcjob': 404,
  'http-write-refused': 403,
  'http-foreign-page': 403,
  'http-token-refused': 401,
  'http-host-refused': 403,
  'http-not-found': 404,
  'no-such-worker': 404,
  'no-log': 404,
  'no-render': 404,
  'http-method': 405,
  'plugin-failed': 502,
  'http-token-unreadable': 503,
  'http-tokens-same': 503,
  'log-busy': 503,
  'plugin-timeout': 504,
};

/** The answer to a failed request. */
export function answerTo(error: unknown): Answer {
  if (error instanceof ThresherError) {
    return {
      status: statuses[error.code] ?? 500,
      reason: { code: error.code, message: error.message },
    };
  }
  const wrong = wrongRequest(error);
  if (wrong !== undefined) return wrong;
  const message = `this could not be answered: ${messageOf(error)}`;
  return { status: 500, reason: { code: 'http-failed', message } };
}

/** Fastify refused the request before a handler saw it. */
function wrongRequest(error: unknown): Answer | undefined {
  if (!(error instanceof Error)) return undefined;
  const { validation, statusCode = 500, message } = error as FastifyError;
  // The last one sums up: a choice reports each of its branches first.
  const mistake = validation?.at(-1);
  if (mistake !== undefined) {
    const reason = { code: 'http-request-wrong', message: describe(mistake) };
    return { status: 400, reason };
  }
  if (statusCode === 413) {
    const tooLong = 'the body is longer than the 2 MiB that a request for workers may have';
    return { status: statusCode, reason: { code: 'http-body-too-long', message: tooLong } };
  }
  if (statusCode === 415) {
    const noJson = 'the body must be JSON, with the header "Content-Type: application/json"';
    return { status: statusCode, reason: { code: 'http-body-no-json', message: noJson } };
  }
  if (statusCode < 400 || statusCode > 499) return undefined;
  return { status: statusCode, reason: { code: 'http-request-wrong', message } };
}

/** As ajv says it with `verbose`. */
interface Mistake {
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly parentSchema?: {
    readonly description?: string;
    readonly properties?: Readonly<Record<string, unknown>>;
  };
  readonly data?: unknown;
}

function describe(mistake: Mistake): string {
  const { instancePath, params, parentSchema = {}, data } = mistake;
  const unknown = params.additionalProperty;
  if (typeof unknown === 'string') {
    const known = Object.keys(parentSchema.properties ?? {});
    const choice = known.length === 0 ? 'there are none here' : `known are ${known.join(', ')}`;
    return `there is no parameter ${JSON.stringify(unknown)}; ${choice}`;
  }
  const name = instancePath.slice(1);
  const { missingProperty } = params;
  if (typeof missingProperty === 'string')
    return `"${missingProperty}" is missing${name === '' ? '' : ` in ${name}`}`;
  if (name === '') return `the body is ${kindOf(data)}; it must be a JSON object`;
  return `${name} is ${JSON.stringify(data)}; it must be ${parentSchema.description ?? 'something else'}`;
}

function kindOf(data: unknown): string {
  if (data === null || data === undefined) return 'empty';
  return Array.isArray(data) ? 'a list' : `a ${typeof data}`;
}
