/** Values a placeholder may stand for. */
export type PlaceholderValues = Readonly<Record<string, string | number>>;

const placeholder = /\$?\$\{([^}]*)\}/g;
/** Harvester's `${_workerID_3.2}`: digits of the worker id counted from the right. */
const digitsOfWorkerId = /^_workerID_([\d.]+)$/;

/**
 * Replaces `${name}` in one parsed value, never in a file's text, so that a value cannot change the structure. A name
 * that is not in `values` stays as written; `$${` stands for a literal `${`. `${_workerID_3.2}` joins digits of the
 * worker id counted from the right, 0 = last, missing ones 0: 1234567 gives "45".
 * Source: Harvester's accessPoint rules.
 */
export function fillPlaceholders(text: string, values: PlaceholderValues): string {
  return text.replace(placeholder, (whole, name: string) => {
    if (whole.startsWith('$$')) return whole.slice(1);
    const digits = digitsOfWorkerId.exec(name)?.[1];
    if (digits !== undefined) return pickDigits(String(values.workerID ?? ''), digits);
    return Object.hasOwn(values, name) ? String(values[name]) : whole;
  });
}

/** The placeholders in `text` that neither `known` nor the digit rule explains. */
export function unknownPlaceholders(text: string, known: ReadonlySet<string>): string[] {
  return placeholderNames(text).filter((name) => !known.has(name) && !digitsOfWorkerId.test(name));
}

/** The names of all placeholders in `text`, in their order. */
export function placeholderNames(text: string): string[] {
  return [...text.matchAll(placeholder)]
    .filter(([whole]) => !whole.startsWith('$$'))
    .map(([, name]) => name ?? '');
}

function pickDigits(id: string, positions: string): string {
  return positions
    .split('.')
    .filter((position) => position !== '')
    .map((position) => id[id.length - 1 - Number(position)] ?? '0')
    .join('');
}
