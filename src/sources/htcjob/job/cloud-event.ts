import type { SourceHttpRequest } from '../../../plugins/contracts/index.ts';
import { isObject } from '../../../util/json.ts';
import { shown } from '../../../worker/origin.ts';

/** A CloudEvent as far as thresher needs it. Source: CloudEvents 1.0.2, HTTP protocol binding. */
export interface CloudEvent {
  readonly type: string;
  readonly source: string;
  readonly id: string;
  /** JSON. */
  readonly data: unknown;
}

export type ReadEvent =
  | { readonly ok: true; readonly event: CloudEvent }
  | { readonly ok: false; readonly status: 400 | 415; readonly message: string };

const refuse = (message: string, status: 400 | 415 = 400): ReadEvent => ({ ok: false, status, message });

/** Reads the event of a request, in binary mode (attributes in `ce-` headers) or in structured mode (all of it in the body). */
export function readCloudEvent({ headers, body }: Pick<SourceHttpRequest, 'headers' | 'body'>): ReadEvent {
  const [media = ''] = (headers['content-type'] ?? '').split(';');
  const type = media.trim().toLowerCase();
  if (type.startsWith('application/cloudevents')) {
    if (type === 'application/cloudevents+json') return structured(body);
    return refuse(`events come as JSON and one by one, and the content type is ${type}`, 415);
  }
  if (headers['ce-specversion'] === undefined)
    return refuse(
      'this is no CloudEvent: it has neither the header ce-specversion nor the content type application/cloudevents+json',
      415,
    );
  if (type !== '' && type !== 'application/json' && !/^[\w.-]+\/[\w.-]+\+json$/.test(type))
    return refuse(`the data of an event must be application/json, and its content type is ${type}`, 415);
  const data = jsonOf(body);
  if (!data.ok) return refuse('the body is no JSON');
  const attribute = (name: string) => headers[`ce-${name}`];
  return eventOf(attribute, data.value);
}

function structured(body: Uint8Array): ReadEvent {
  const read = jsonOf(body);
  if (!read.ok || !isObject(read.value)) return refuse('the body is no JSON object');
  const event = read.value;
  const encoded = event['data_base64'];
  if (encoded === undefined) return eventOf((name) => event[name], event['data']);
  const data = typeof encoded === 'string' ? jsonOf(Buffer.from(encoded, 'base64')) : undefined;
  if (data?.ok !== true) return refuse('data_base64 of the event holds no JSON');
  return eventOf((name) => event[name], data.value);
}

function eventOf(attribute: (name: string) => unknown, data: unknown): ReadEvent {
  const version = attribute('specversion');
  if (version !== '1.0') return refuse(`the event has specversion ${shown(version)}; it must be "1.0"`);
  const [type, source, id] = [attribute('type'), attribute('source'), attribute('id')];
  for (const [name, value] of Object.entries({ type, source, id }))
    if (typeof value !== 'string' || value === '')
      return refuse(`the event has the ${name} ${shown(value)}; it must be a text`);
  return { ok: true, event: { type: String(type), source: String(source), id: String(id), data } };
}

function jsonOf(body: Uint8Array): { readonly ok: true; readonly value: unknown } | { readonly ok: false } {
  try {
    return { ok: true, value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) };
  } catch {
    return { ok: false };
  }
}
