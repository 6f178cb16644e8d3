import { settingsSchema } from './schema-data.ts';

/** The parts of a JSON schema that decide how a text becomes a value. */
export interface SettingSchema {
  readonly type?: string;
  readonly anyOf?: readonly SettingSchema[];
  readonly additionalProperties?: boolean;
  readonly properties?: Readonly<Record<string, SettingSchema>>;
  readonly patternProperties?: object;
}

/** The schema of one section; undefined where thresher has no such section. */
export function sectionSchema(section: string): SettingSchema | undefined {
  return propertyOf(settingsSchema, section);
}

/** The schema of one key of a section; undefined where thresher has no such key. */
export function propertyOf({ properties = {} }: SettingSchema, key: string): SettingSchema | undefined {
  return Object.hasOwn(properties, key) ? properties[key] : undefined;
}

const numeric = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/**
 * Converts a text to the type of its setting: Harvester's file has no types, and keeps 0.5 as a text and a name of
 * digits as a number. A text that does not fit stays as it is, so that the schema says the correct form.
 */
export function fit(value: unknown, { type, anyOf = [] }: SettingSchema): unknown {
  // A text stays one only where no other type takes it.
  const fits = anyOf.map((one) => fit(value, one));
  if (anyOf.length > 0) return fits.find((one) => typeof one !== typeof value) ?? value;
  if (type === 'string' && typeof value === 'number') return String(value);
  if (type === 'array' && !Array.isArray(value)) return toNames(value);
  if (typeof value !== 'string') return value;
  if ((type === 'number' || type === 'integer') && numeric.test(value)) return Number(value);
  if (type === 'boolean' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  return value;
}

/** Harvester takes "A,B" for both, and '["A", "B"]' on one line too: it looks for each name within the text. */
function toNames(value: unknown): unknown {
  if (typeof value === 'number') return [String(value)];
  // An item of the cacher is a line with bars, and its URL may have commas and brackets; no name has a bar.
  if (typeof value === 'string' && value.includes('|')) return [value];
  return typeof value === 'string' ? value.split(/[\s,"'[\]]+/).filter((name) => name !== '') : value;
}
