import { hasMoreValues } from '../../util/json.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { hidden } from '../../util/secrets.ts';

/**
 * The outcome of one call of the PanDA server. After a failure with `maybeDone` the server may have carried the call out, and the caller
 * asks again or sends the same again. Every other failure changed nothing at the server.
 */
export type PandaOutcome<Data> = { readonly kind: 'ok'; readonly data: Data } | PandaFailure;

export interface PandaFailure {
  readonly kind: 'failed';
  readonly code: PandaCode;
  /** The server's own words, cut, or those of the connection. */
  readonly message: string;
  /** Whether the server may have carried it out all the same. */
  readonly maybeDone: boolean;
}

export type PandaCode =
  | 'panda-unreachable'
  | 'panda-no-answer'
  | 'panda-no-api'
  | 'panda-credentials'
  | 'panda-certificate'
  | 'panda-role'
  | 'panda-token'
  | 'panda-database'
  | 'panda-busy'
  | 'panda-empty'
  | 'panda-argument'
  | 'panda-worker-id'
  | 'panda-token-key'
  | 'panda-server-error'
  | 'panda-refused';

/** An answer as it came over HTTP. */
export interface PandaAnswer {
  readonly status: number;
  readonly body: string;
}

/** How large an answer may be: while the values of one are read, nothing else runs. */
export interface AnswerBounds {
  readonly bytes: number;
  readonly values: number;
  /** It may have a secret that nobody knows yet, in whatever form: a failure shows nothing of it but the API's own refusal. */
  readonly isSecret?: true;
}
/** The counts of jobs of a large server's sites are some thousands, and all other answers are smaller. */
export const usualBounds: AnswerBounds = { bytes: 1024 * 1024, values: 30_000 };
/** Statistics that the cacher fetches for other programs. */
export const statisticsBounds: AnswerBounds = { bytes: 4 * 1024 * 1024, values: 60_000 };

interface Rule {
  readonly says: RegExp;
  readonly code: PandaCode;
  /** A call that fails in the middle of a batch leaves its first part done. */
  readonly maybeDone?: boolean;
}

/**
 * The meaning of the messages of an answer with `success: false`. Order matters: the first match counts.
 * Source: panda-server 1.0.4, `api/v1/common.py`, `api/v1/*_api.py`.
 */
const refusals: readonly Rule[] = [
  // Both have names of users and clients, which may hold the words of other rules.
  { says: /^denied since .* not authorized with 't' in /i, code: 'panda-token-key' },
  { says: /^token key is missing for /i, code: 'panda-token-key' },
  { says: /SSL secure connection is required/i, code: 'panda-certificate' },
  { says: /production or pilot role required|production role|permission/i, code: 'panda-role' },
  // Updates commit worker by worker, and a first heartbeat is stored although it answers this.
  { says: /database (error|failure)/i, code: 'panda-database', maybeDone: true },
  { says: /locked by another update/i, code: 'panda-busy' },
  { says: /timed ?out/i, code: 'panda-busy', maybeDone: true },
  { says: /^no jobs in panda/i, code: 'panda-empty' },
  { says: /^(argument|type) error|invalid argument|missing/i, code: 'panda-argument' },
];

/** The meaning of an HTTP status whose body is no JSON of the API. Source: panda-server 1.0.4, `server/panda.py`. */
const statuses: readonly (Rule & { readonly status: number })[] = [
  { status: 403, says: /token|vo :|not a member|origin|NoneType/i, code: 'panda-token' },
  { status: 403, says: /is forbidden/i, code: 'panda-no-api' },
  { status: 403, says: /./, code: 'panda-refused' },
  { status: 401, says: /^/, code: 'panda-token' },
  { status: 404, says: /^/, code: 'panda-no-api' },
  { status: 413, says: /^/, code: 'panda-argument' },
];

/** What may be a new key in a refusal. */
const likeKey = /[\da-f-]{16,}/gi;
/** Longest piece of an answer that is shown, characters. */
const excerpt = 200;

/** Reads an answer. Whether `data` has the form that a call promises is for the caller to say. */
export function outcomeOf(
  { status, body }: PandaAnswer,
  { values, isSecret }: Omit<AnswerBounds, 'bytes'> = usualBounds,
): PandaOutcome<unknown> {
  const words = () => (isSecret ? hidden : shown(fromOutside(body)));
  if (hasMoreValues(body, values))
    return failure('panda-no-answer', `an answer with more than ${values} values: ${words()}`, true);
  const said = parsed(body);
  if (status >= 200 && status < 300 && said !== undefined) {
    if (said.success) return { kind: 'ok', data: said.data };
    const begins = beginning(said.message);
    const rule = refusals.find(({ says }) => says.test(begins));
    const message = isSecret ? said.message.replaceAll(likeKey, hidden) : said.message;
    return failure(rule?.code ?? 'panda-refused', message, rule?.maybeDone ?? rule === undefined);
  }
  const text = beginning(body);
  const rule = statuses.find((one) => one.status === status && one.says.test(text));
  if (rule !== undefined) return failure(rule.code, `HTTP ${status}: ${words()}`, false);
  if (status >= 500) return failure('panda-server-error', `HTTP ${status}: ${words()}`, true);
  // A text that begins as an answer and breaks off is one of ours that was cut on its way.
  const cut = status >= 200 && status < 300 && /^\s*\{/.test(text);
  return cut
    ? failure('panda-no-answer', `half an answer: ${words()}`, true)
    : failure('panda-no-api', `HTTP ${status} with no answer of the API: ${words()}`, status < 400);
}

function failure(code: PandaCode, message: string, maybeDone: boolean): PandaFailure {
  return { kind: 'failed', code, message: shown(fromOutside(message)), maybeDone };
}

interface Said {
  readonly success: boolean;
  readonly message: string;
  readonly data: unknown;
}

function parsed(body: string): Said | undefined {
  try {
    const value = JSON.parse(body) as Readonly<Record<string, unknown>> | null;
    if (typeof value !== 'object' || value === null || typeof value['success'] !== 'boolean')
      return undefined;
    const { success, message, data } = value;
    return { success, message: typeof message === 'string' ? message : '', data };
  } catch {
    // The caller reports it.
    return undefined;
  }
}

/** As much of a text as is looked at: an answer may have megabytes. */
function beginning(text: string): string {
  return text.slice(0, 2000);
}

function shown(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > excerpt ? `${line.slice(0, excerpt)}...` : line;
}
