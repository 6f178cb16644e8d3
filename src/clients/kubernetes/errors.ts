import { isObject } from '../../util/json.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import type { ErrorCode } from '../../codes/codes.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { kubernetesErrors } from './codes.ts';
import type { ApiStatus } from './objects.ts';

export type KubernetesCode = Extract<keyof typeof kubernetesErrors, `kubernetes-${string}`> & ErrorCode;

export interface Failure {
  readonly code: KubernetesCode;
  readonly message: string;
  /** Whether the server may have carried it out: a lost answer must not be taken for a request that never came. */
  readonly maybeDone: boolean;
  /** HTTP status; undefined without an answer. */
  readonly status?: number;
  /** `reason` of the API's Status: "AlreadyExists", "Expired". */
  readonly reason?: string;
  /** How long the server asks to wait, ms. */
  readonly retryAfter?: number;
}

/** Why a request to an API server had no success. */
export class KubernetesError extends ThresherError {
  declare readonly code: KubernetesCode;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfter: number | undefined;
  readonly maybeDone: boolean;

  constructor(failure: Failure, facts: Record<string, unknown> = {}, options?: ErrorOptions) {
    const { code, message, status, retryAfter, maybeDone } = failure;
    const reason = failure.reason === undefined ? undefined : fromOutside(failure.reason);
    const words = fromOutside(message);
    super(code, words, { ...facts, ...(status && { status }), ...(reason && { reason }) }, options);
    this.name = 'KubernetesError';
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter;
    this.maybeDone = maybeDone;
  }
}

/** Whether something thrown is an API server's word, or a failure to get it, of one of these codes. */
export function isKubernetesError(error: unknown, ...codes: KubernetesCode[]): error is KubernetesError {
  return error instanceof KubernetesError && (codes.length === 0 || codes.includes(error.code));
}

interface Rule {
  readonly status: number | readonly [from: number, to: number];
  readonly when?: (status: ApiStatus) => boolean;
  readonly code: KubernetesCode;
}

const says = (pattern: RegExp) => (status: ApiStatus) => pattern.test(status.message ?? '');

/** `jobs.batch "a" is forbidden: User "u" cannot delete resource "jobs" in API group "batch" in the namespace "n"` */
const missingRight =
  /User "([^"]*)" cannot (\S+) (?:resource "([^"]*)" in API group "([^"]*)"|path "([^"]*)")(?: in the namespace "([^"]*)")?/;

/**
 * Meanings of an API server's refusals. The first match counts. Sources: apimachinery `api/errors`, the ResourceQuota
 * and NamespaceLifecycle admission plugins, apiserver `admission/plugin/webhook`; Kubernetes 1.36.
 */
const rules: readonly Rule[] = [
  { status: 401, code: 'kubernetes-unauthorized' },
  { status: 403, when: says(/(exceeded|insufficient|failed) quota/), code: 'kubernetes-quota' },
  { status: [403, 404], when: aboutNamespace, code: 'kubernetes-namespace' },
  { status: 403, when: says(missingRight), code: 'kubernetes-forbidden' },
  {
    status: [400, 422],
    when: says(/admission webhook .* denied|denied request/),
    code: 'kubernetes-admission',
  },
  { status: 403, code: 'kubernetes-admission' },
  // Without a name it is the kind of object that the server does not know: that says nothing about any one of them.
  { status: 404, when: ({ details }) => Boolean(details?.name), code: 'kubernetes-not-found' },
  { status: 404, code: 'kubernetes-no-api' },
  { status: 409, when: ({ reason }) => reason === 'AlreadyExists', code: 'kubernetes-already-exists' },
  { status: 409, code: 'kubernetes-conflict' },
  { status: 410, code: 'kubernetes-gone' },
  { status: 422, code: 'kubernetes-invalid' },
  { status: 429, code: 'kubernetes-too-many-requests' },
  { status: [400, 499], code: 'kubernetes-refused' },
  { status: [500, 599], code: 'kubernetes-server-error' },
];

/** "namespaces "x" not found" and "unable to create new content in namespace x because it is being terminated". */
function aboutNamespace({ message = '', details }: ApiStatus): boolean {
  const causes = details?.causes ?? [];
  if (causes.some(({ reason }) => reason === 'NamespaceTerminating')) return true;
  return /^namespaces? ".*" not found$/.test(message);
}

/** Requests whose answers may have the contents of a Secret: a server, a webhook or a proxy may repeat them when it refuses, too. */
const ofSecrets = /^\/api\/v1\/(?:namespaces\/[^/]+\/)?secrets(?:\/|$)/;

/** Whether an answer is shown by the forms of `ordinary` alone: its values may be anybody's, so that nothing else tells them from words. */
export function mayTellSecrets({ path }: Asked): boolean {
  return ofSecrets.test(path);
}

/** One Secret that is immutable, as those that thresher makes are, and was to be changed. */
const frozen = String.raw`(?:data|immutable): Forbidden: field is immutable when \`immutable\` is set`;
const named = String.raw`"[a-z0-9][a-z0-9.:-]{0,252}"`;
/** Who set fields that an apply wants otherwise, and which: their names are no contents. Source: apiserver, `fieldmanager/internal/conflict.go`. */
const manager = String.raw`"[\w.:/-]{1,128}"(?: with subresource "[a-z]{1,30}")?(?: using [a-z0-9./]{1,60}(?: at [0-9TZ:-]{1,30})?)?`;
const field = String.raw`\.[\w.-]{1,300}`;
const conflicts = String.raw`Apply failed with \d{1,4} conflicts?:(?: conflict with ${manager}: ${field}|(?:\s{0,2}conflicts with ${manager}:(?:\n- ${field}){1,100}){1,20})`;
/**
 * What an API server says itself of a request about Secrets, up to where it may repeat their contents: rights, names and quotas. Sources: as of the
 * rules, and apimachinery `util/validation`.
 */
const ordinary = [
  String.raw`secrets(?: ${named})? is forbidden: User "[^"\n]{1,256}" cannot [a-z]{1,30} resource "secrets" in API group ""(?: in the namespace ${named}| at the cluster scope)`,
  String.raw`secrets ${named} is forbidden: exceeded quota: [a-z0-9.-]{1,253}`,
  String.raw`secrets ${named} is forbidden: unable to create new content in namespace [a-z0-9-]{1,63} because it is being terminated`,
  String.raw`(?:secrets ${named} is forbidden: )?admission webhook ${named} denied the request`,
  String.raw`secrets ${named} (?:not found|already exists)`,
  String.raw`namespaces ${named} not found`,
  conflicts,
  String.raw`Operation cannot be fulfilled on secrets ${named}: the object has been modified`,
  String.raw`Secret ${named} is invalid: (?:${frozen}|\[${frozen}(?:, ${frozen})?\])`,
  String.raw`Secret ${named} is invalid(?:: data: Too long(?:: [a-z ]{1,40}\d{1,10}(?: bytes)?)?)?`,
  'Unauthorized',
  'the server could not find the requested resource',
].map((form) => new RegExp(`^${form}(?![^\\s:,;])`));

/** Source: `StatusReason` of apimachinery `meta/v1`. */
const reasons: ReadonlySet<unknown> = new Set([
  ...[
    'Unauthorized',
    'Forbidden',
    'NotFound',
    'AlreadyExists',
    'Conflict',
    'Gone',
    'Invalid',
    'ServerTimeout',
  ],
  ...['StoreReadError', 'Timeout', 'TooManyRequests', 'BadRequest', 'MethodNotAllowed', 'NotAcceptable'],
  ...['RequestEntityTooLarge', 'UnsupportedMediaType', 'InternalError', 'Expired', 'ServiceUnavailable'],
]);

/** A Status with nothing but what has the form of an API server's own words. */
function withoutContents({ message = '', reason, ...others }: ApiStatus, http: number): ApiStatus {
  const told = ordinary.map((form) => form.exec(message)?.[0]).find((text) => text !== undefined);
  const known = reasons.has(reason) ? reason : undefined;
  const because = 'not shown, as it may have contents of a Secret';
  const own = `HTTP ${http}${known === undefined ? '' : ` (${known})`}${message === '' ? '' : `; what it says is ${because}`}`;
  const whole = told === message ? told : told && `${told} (the rest is ${because})`;
  return { ...others, message: whole ?? own, ...(known !== undefined && { reason: known }) };
}

/** The request that failed, for the message. */
export interface Asked {
  /** "https://10.0.0.1:6443" */
  readonly server: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

/**
 * The failure that an answer reports. An answer that is no Status is not the API's: a proxy's 404 must not pass for "no
 * such Job".
 * @param headerRetryAfter of the header `Retry-After`, ms.
 */
export function failureOf(
  asked: Asked,
  http: number,
  body: string,
  headerRetryAfter?: number,
): KubernetesError {
  const status = parseStatus(body);
  if (status === undefined) return foreign(asked, http, body, headerRetryAfter);
  return statusFailure(asked, { ...status, code: http }, headerRetryAfter);
}

/** The failure that a Status object reports; an ERROR event of a watch holds one, too. */
export function statusFailure(asked: Asked, said: unknown, headerRetryAfter?: number): KubernetesError {
  const status = wellTyped(said);
  const http = status.code ?? 500;
  const rule = rules.find((rule) => covers(rule.status, http) && (rule.when?.(status) ?? true));
  const seconds = status.details?.retryAfterSeconds;
  const retryAfter = headerRetryAfter ?? (seconds === undefined ? undefined : seconds * 1000);
  const shown = mayTellSecrets(asked) ? withoutContents(status, http) : status;
  return new KubernetesError(
    {
      code: rule?.code ?? 'kubernetes-no-api',
      message: `${asked.server}: ${sentence(shown, http)}`,
      status: http,
      // A gateway's timeout says nothing about what became of the request behind it.
      maybeDone: http >= 500 || http < 400,
      ...(shown.reason && { reason: shown.reason }),
      ...(retryAfter !== undefined && { retryAfter }),
    },
    { ...asked },
  );
}

/** A Status without what has another type than the API gives it: a server, or who pretends to be one, may say anything. */
function wellTyped(said: unknown): ApiStatus {
  const { message, reason, code, details } = isObject(said) ? said : {};
  const { name, retryAfterSeconds, causes } = isObject(details) ? details : {};
  return {
    ...(typeof message === 'string' && { message: fromOutside(message) }),
    ...(typeof reason === 'string' && { reason: fromOutside(reason) }),
    ...(typeof code === 'number' && { code }),
    details: {
      ...(typeof name === 'string' && { name }),
      ...(typeof retryAfterSeconds === 'number' && retryAfterSeconds >= 0 && { retryAfterSeconds }),
      ...(Array.isArray(causes) && { causes: causes.filter(isObject) }),
    },
  };
}

function covers(status: Rule['status'], http: number): boolean {
  return typeof status === 'number' ? status === http : http >= status[0] && http <= status[1];
}

function sentence(status: ApiStatus, http: number): string {
  const message = status.message || status.reason || `HTTP ${http}`;
  const [, user, verb, resource, group, path, namespace] = missingRight.exec(message) ?? [];
  if (http !== 403 || verb === undefined) return message;
  const what = path ?? (group ? `${resource ?? ''}.${group}` : resource);
  const where = namespace === undefined ? 'at the cluster scope' : `in namespace "${namespace}"`;
  return `user "${user ?? ''}" lacks the right to ${verb} ${what ?? ''} ${path === undefined ? where : ''}`.trimEnd();
}

function parseStatus(body: string): ApiStatus | undefined {
  try {
    const value = JSON.parse(body) as ApiStatus | null;
    return value?.kind === 'Status' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Longest piece of a foreign answer that is shown. */
const excerpt = 200;

function foreign(asked: Asked, http: number, body: string, retryAfter: number | undefined): KubernetesError {
  const text = mayTellSecrets(asked) ? '' : fromOutside(body).replaceAll(/\s+/g, ' ').trim();
  const shown = text.length > excerpt ? `${text.slice(0, excerpt)}...` : text;
  const said = shown === '' ? '' : `: ${shown}`;
  // Answers of a load balancer without an API server behind it, and plain texts of the API server's own filters.
  const known: Partial<Record<number, KubernetesCode>> = {
    401: 'kubernetes-unauthorized',
    429: 'kubernetes-too-many-requests',
  };
  const code = known[http] ?? (http >= 500 ? 'kubernetes-server-error' : 'kubernetes-no-api');
  const message =
    code === 'kubernetes-no-api'
      ? `${asked.server} does not answer like a Kubernetes API server: HTTP ${http} to ${asked.method} ${asked.path}${said}`
      : `${asked.server}: HTTP ${http} to ${asked.method} ${asked.path}${said}`;
  const maybeDone = http >= 500 || http < 400;
  return new KubernetesError(
    { code, message, status: http, maybeDone, ...(retryAfter !== undefined && { retryAfter }) },
    { ...asked },
  );
}

/**
 * ms of a `Retry-After` header: seconds or a date.
 * @param now ms UTC
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
