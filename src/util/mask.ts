import { hidden, secretKey } from './secret-keys.ts';

/** Variables of a pilot that sound so, and hold the name of a file. */
const harmless: ReadonlySet<string> = new Set(['PANDA_AUTH_TOKEN', 'PANDA_AUTH_TOKEN_KEY']);

const pem = /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g;
const jwt = /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g;
const userInUrl = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+:[^\s/@]+@/gi;
/** `NAME=value` as shells and submit descriptions have it. */
const assignment = /\b([A-Za-z_]\w*)=('(?:[^']|'')*'|"[^"]*"|[^\s"';]+)/g;

/** A text without what is a secret by its form (PEM, a token, a password in a URL) or by the name that it is assigned to. */
export function maskText(text: string): string {
  return text
    .replace(pem, hidden)
    .replace(jwt, hidden)
    .replace(userInUrl, `$1${hidden}@`)
    .replace(assignment, (whole, name: string, value: string) =>
      isSecret(name, value) ? `${name}=${hidden}` : whole,
    );
}

/** A copy with all secrets hidden. Entries `{ name, value }` of an environment count as keys with values. */
export function maskSecrets(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return isSecret(name, value) ? hidden : maskText(value);
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item));
  if (typeof value !== 'object' || value === null) return value;
  const entry = value as Readonly<Record<string, unknown>>;
  const named = typeof entry['name'] === 'string' && typeof entry['value'] === 'string' ? entry['name'] : '';
  return Object.fromEntries(
    Object.entries(entry).map(([key, inner]) => [
      key,
      maskSecrets(inner, key === 'value' && named !== '' ? named : key),
    ]),
  );
}

/** A path, or a reference that a shell or a backend resolves, is no secret itself. */
function isSecret(name: string, value: string): boolean {
  return secretKey.test(name) && !harmless.has(name) && value !== '' && !/^['"]?[/$(]/.test(value);
}
