import { fromOutside } from '../../util/own-secrets.ts';
import { tooLarge } from './connection-failures.ts';
import { type Asked, KubernetesError } from './errors.ts';
import type { Answer } from './transport.ts';

/** The most that one answer may have: an object takes a hundred times the memory of its text, and nothing else runs while it is read. */
export interface Bounds {
  /** Lists and objects. */
  readonly nested: number;
  readonly values: number;
}

/**
 * A page has 250 objects, each of some hundred values; a list asks for a page that has more again, in smaller parts. One object has as many as its
 * author likes: in the 3 MB that an API server takes there is room for 1,500,000 lists, and HTCJobs have up to 10,000 jobs, with two texts for each.
 */
export const bounds = {
  page: { nested: 400_000, values: 500_000 },
  object: { nested: 1_500_000, values: 10_000_000 },
} as const satisfies Record<string, Bounds>;

/** The beginning of the next page, if the text has it before its first object; the page itself has it for certain. */
export function continueIn(text: string): string | undefined {
  const head = text.slice(0, text.indexOf('"items":['));
  return /"continue":"([^"\\]+)"/.exec(head)?.[1];
}

interface Reading {
  readonly most?: Bounds;
  /** Leaves out what the caller does not read; where the rest is no JSON, the whole is parsed instead. */
  readonly shorten?: ((text: string) => string) | undefined;
}

/**
 * The fields that a successful answer must have.
 * @throws KubernetesError `kubernetes-too-large` for more values than the daemon reads at once, and `kubernetes-no-api`
 */
export function parse(
  text: string,
  asked: Asked,
  { most = bounds.object, shorten = withoutManagedFields }: Reading = {},
): object {
  const read = (part: string) => {
    if (isTooMuch(part, most))
      throw tooLarge(asked, `${most.nested} lists and objects, or ${most.values} values`, true);
    return parsed(part);
  };
  const value = read(shorten(text)) ?? read(text);
  if (typeof value === 'object' && value !== null) return value;
  throw noApi(asked, `no JSON object, but "${fromOutside(text).slice(0, 80).replaceAll(/\s+/g, ' ')}"`);
}

/** Counts outside of texts: what a user writes into one is not the server's. */
function isTooMuch(text: string, most: Bounds): boolean {
  let [nested, values] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfText(text, at);
    else if (code === comma && ++values > most.values) return true;
    else if ((code === list || code === object) && ++nested > most.nested) return true;
  }
  return false;
}

const [quote, comma, list, object] = [0x22, 0x2c, 0x5b, 0x7b] as const;

function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The caller reports it.
    return undefined;
  }
}

const managedFields = ',"managedFields":[';

/**
 * `managedFields` are half of an API server's answer, and no part of thresher reads them: they cost a third of the time
 * to parse, and make most of the garbage. This text appears nowhere else: inside a string its quotes would be escaped.
 * If the cut ends too early, at a `}]` in a string of the field itself, the rest is no JSON, and the caller parses the
 * whole instead.
 */
function withoutManagedFields(text: string): string {
  let rest = '';
  let from = 0;
  for (let at = text.indexOf(managedFields); at !== -1; at = text.indexOf(managedFields, from)) {
    const end = text.indexOf('}]', at);
    if (end === -1) return text;
    rest += text.slice(from, at);
    from = end + 2;
  }
  return from === 0 ? text : rest + text.slice(from);
}

const podTemplate = ',"template":{"metadata":';
/** The first key after a Job's template that every server sends. Source: `batchv1.JobSpec`, whose order the JSON has. */
const afterPodTemplate = ',"completionMode":"';

/**
 * One Job, also without the template of its Pods: that is most of the rest. A cut from one depth of the text to another gives
 * no JSON, so what was cut are whole fields of the Job's `spec`.
 */
export function withoutPodTemplate(text: string): string {
  const rest = withoutManagedFields(text);
  const from = rest.indexOf(podTemplate);
  const to = rest.lastIndexOf(afterPodTemplate);
  return from === -1 || to < from ? rest : rest.slice(0, from) + rest.slice(to);
}

export function noApi(asked: Asked, said: string): KubernetesError {
  const message = `${asked.server} does not answer like a Kubernetes API server: ${said} to ${asked.method} ${asked.path}`;
  return new KubernetesError({ code: 'kubernetes-no-api', message, maybeDone: true }, { ...asked });
}

/** The texts of `Warning: 299 - "text"` headers. Source: RFC 7234, 5.5, which Kubernetes goes on using. */
export function warningsOf({ headers }: Answer): string[] {
  const all = [headers['warning'] ?? []].flat().join(', ');
  return [...all.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  );
}
