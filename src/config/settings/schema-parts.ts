import Type from '../../util/type.ts';

/** A section without other keys than its own. */
export const closed = { additionalProperties: false, default: {} } as const;
/** A year, s: more means never, and not every timer can count so far. */
export const longest = 366 * 86_400;
/** A hundred years, h. */
export const mostHours = 876_600;
export const seconds = (value: number, description: string, minimum = 0, maximum = longest) =>
  Type.Number({ default: value, minimum, maximum, description: `${description}.` });
