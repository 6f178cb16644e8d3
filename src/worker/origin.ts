/** The longest `uid` of an origin, characters: marks of all backends have room for it. */
const longestUid = 512;
/** The longest `uid` in UTF-8, bytes: an index has it beside two other texts, and PostgreSQL's have room for 2,704. */
const longestUidBytes = 800;

/**
 * A sentence on the mistake in an origin; undefined where there is none. Sources, the desk and the readers of marks all ask here: a worker is
 * never adopted with an origin that its source could not name.
 */
export function whatIsWrongWithOrigin(origin: unknown): string | undefined {
  if (typeof origin !== 'object' || origin === null || Array.isArray(origin))
    return `an origin is ${shown(origin)}, not { uid, index }`;
  const { uid, index } = origin as Readonly<Record<string, unknown>>;
  // The database gives half of a character back as another one, and would never know the origin again.
  if (!isStorable(uid) || uid === '')
    return `the uid of an origin is ${shown(uid)}: it must be a text without NUL and half characters that is not empty`;
  if (uid.length > longestUid)
    return `the uid of an origin has ${uid.length} characters (${shown(uid)}); it may have ${longestUid}`;
  const bytes = Buffer.byteLength(uid);
  if (bytes > longestUidBytes)
    return `the uid of an origin has ${bytes} bytes (${shown(uid)}); it may have ${longestUidBytes}`;
  if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0)
    return `the index of origin ${shown(uid)} is ${shown(index)}: it must be a whole number of 0 or more`;
  return undefined;
}

/** Whether every database gives this text back as it is. */
export function isStorable(text: unknown): text is string {
  return typeof text === 'string' && !text.includes('\0') && text.isWellFormed();
}

/** A value in a message: short, and never the content of an object, which may hold a secret. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
