import { hidden, maskText } from './secrets.ts';

/** Shorter ones are words that may stand in any text. */
const shortest = 8;
/** As much of a secret in a text counts as all of it: who echoes one may cut it. */
const telling = 16;
/** Secrets that are remembered. Tokens are renewed: the oldest are long out of use. */
const most = 200;

/** Beginnings of the secrets of this process in the forms that they are sent in, and the whole of each. */
const known = new Map<string, string>();

/** From now on no text from outside shows this secret of ours: a token, a password. */
export function rememberSecret(value: string): void {
  const secret = value.trim();
  if (secret.length < shortest) return;
  const inForm = new URLSearchParams({ s: secret }).toString().slice(2);
  const inJson = JSON.stringify(secret).slice(1, -1);
  const asBytes = Buffer.from(secret).toString('base64').replace(/=+$/, '');
  for (const form of [secret, encodeURIComponent(secret), inForm, inJson, asBytes]) {
    // The newest last.
    known.delete(form);
    known.set(form, form.slice(0, telling));
  }
  for (const form of known.keys()) {
    if (known.size <= most) break;
    known.delete(form);
  }
}

/**
 * Words of another program or server as they may be logged, stored and shown: without our own secrets, whole or cut, and without what is a
 * secret by its form. Mask first, and shorten then: half a secret has no form.
 */
export function fromOutside(text: string): string {
  return maskText(withoutOwn(text));
}

/** The same for the facts of a worker, which change often: by our own values, and by the forms of tokens and keys. */
export function factsFromOutside(value: unknown): unknown {
  if (typeof value === 'string') {
    const shown = withoutOwn(value);
    return shown.includes('eyJ') || shown.includes('-----BEGIN') ? maskText(shown) : shown;
  }
  if (Array.isArray(value)) return value.map(factsFromOutside);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, factsFromOutside(inner)]));
}

/** A text without the secrets of this process. */
export function withoutOwn(text: string): string {
  let shown = text;
  for (const [secret, beginning] of known) {
    for (let at = shown.indexOf(beginning); at >= 0; at = shown.indexOf(beginning, at + hidden.length)) {
      let end = at + beginning.length;
      while (end < shown.length && shown[end] === secret[end - at]) end++;
      shown = shown.slice(0, at) + hidden + shown.slice(end);
    }
  }
  return shown;
}
