import { hidden, secretKey } from '../../util/secret-keys.ts';
import { isObject } from '../queues/merge.ts';

export { hidden };

/** What a request brings to be let in. */
const authorization = /^(bearer|basic)\s+\S/i;

/** A URL with a password in it. */
const passwordInUrl = /(\w+:\/\/[^\s/:@]*):[^\s/@]+@/g;

/** A copy of a value of a key in which nothing is left that looks like a secret. */
export function withoutSecrets(key: string, value: unknown): unknown {
  // A switch (`useAuth`) is no secret.
  if (typeof value === 'boolean' || value === null || value === undefined || value === '') return value;
  if (secretKey.test(key) || (typeof value === 'string' && authorization.test(value))) return hidden;
  if (typeof value === 'string') return value.replace(passwordInUrl, `$1:${hidden}@`);
  if (Array.isArray(value)) return value.map((item) => withoutSecrets('', item));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutSecrets(name, item)]));
}
