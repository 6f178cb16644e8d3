import { type ConfigSection, parseConfig } from '../../../util/configparser.ts';
import { type Located, type Problem, toPointer } from '../../../util/located.ts';
import { similar } from '../../../util/nearest.ts';
import { harvesterKeys, harvesterSections, loginSettings, missedSettings, needlessSettings } from './keys.ts';
import { type Override, readOverride } from './override.ts';
import { typedValue, type TypedValue } from './values.ts';
import type { Machine } from '../machine.ts';
import { fit, propertyOf, sectionSchema, type SettingSchema } from '../setting-types.ts';
import { settingsSchema } from '../schema-data.ts';

type Report = (
  severity: Problem['severity'],
  code: Problem['code'],
  place: { readonly file?: string; readonly pointer: string; readonly line: number },
  message: string,
  subject?: string,
) => void;

/** One key of a section, from the file itself or from the one that overrides it. */
interface Entry {
  readonly key: string;
  readonly file: string;
  readonly line: number;
  /** From [DEFAULT]: there for every section, so no section's mistake. */
  readonly inherited: boolean;
  read(): TypedValue;
}

interface Place {
  readonly file: string;
  lineOf(pointer: string): number;
}

/**
 * Reads the text of a `panda_harvester.cfg`, and the override file if PANDA_HOME has one, into the shape of
 * thresher.yaml. It leaves keys that only Harvester reads out with a notice. The problems include its mistakes.
 */
export function parseHarvesterSettings(text: string, file: string, machine: Machine): Located {
  const problems: Problem[] = [];
  const report: Report = (severity, code, place, message, subject) => {
    problems.push({ file, ...place, severity, code, message, ...(subject !== undefined && { subject }) });
  };
  const parsed = parseConfig(text.replace(/^\uFEFF/, ''));
  for (const { kind, section, option, line, message } of parsed.mistakes) {
    const pointer = toPointer([section, option].filter((part) => part !== ''));
    const twice = kind === 'duplicate-section' || kind === 'duplicate-option';
    report('error', twice ? 'duplicate-key' : 'syntax', { pointer, line }, message);
  }
  if (parsed.mistakes.length > 0) {
    return { file, value: undefined, problems, lineOf: () => parsed.mistakes[0]?.line ?? 1 };
  }
  reportUrl(machine, report);
  const override = readOverride(machine);
  if (override !== undefined) reportOverride(override, parsed.sections, problems);

  const places = new Map<string, Place>();
  const values: Record<string, Record<string, unknown>> = {};
  for (const section of [...parsed.sections.values(), ...broughtBy(override, parsed.sections)]) {
    const { name } = section;
    const schema = sectionSchema(name);
    const entries = entriesOf(section, file, override, machine);
    reportUnread(section, entries, schema, report);
    if (schema === undefined) continue;
    const read: [string, unknown][] = [];
    for (const entry of entries) {
      const setting = isOpen(schema) ? {} : propertyOf(schema, entry.key);
      if (setting === undefined) continue;
      const typed = entry.read();
      places.set(toPointer([name, entry.key]), { file: entry.file, lineOf: (at) => typed.lineOf(at) });
      const value = isOpen(schema)
        ? rawValue(name, entry, typed, report)
        : settingValue(name, entry, typed, setting, report);
      if (value !== undefined) read.push([entry.key, value]);
    }
    values[name] = Object.fromEntries(read);
  }
  const sectionLine = (name: string) => parsed.sections.get(name)?.line ?? 1;
  const locate = (pointer: string): { file: string; line: number } => {
    const [, section = '', key = '', ...rest] = pointer.split('/');
    const place = places.get(`/${section}/${key}`);
    if (place === undefined) return { file, line: sectionLine(section) };
    return { file: place.file, line: place.lineOf(rest.map((part) => `/${part}`).join('')) };
  };
  return {
    file,
    value: values,
    problems,
    lineOf: (pointer) => locate(pointer).line,
    fileOf: (pointer) => locate(pointer).file,
  };
}

/** Sections that are kept as they are, for the part of thresher that will read them. */
function isOpen(schema: SettingSchema): boolean {
  return schema.additionalProperties === true;
}

/** A section whose keys are names that operators choose, with options below them, which this form of file cannot hold. */
function isOfNames({ patternProperties }: SettingSchema): boolean {
  return patternProperties !== undefined;
}

function entriesOf(
  { name, options }: ConfigSection,
  file: string,
  override: Override | undefined,
  machine: Machine,
): Entry[] {
  const entries = new Map<string, Entry>();
  for (const { name: key, line, lines, inherited } of options.values()) {
    entries.set(key, { key, file, line, inherited, read: () => typedValue(key, lines, machine) });
  }
  if (override === undefined) return [...entries.values()];
  const { located, sections } = override;
  for (const [key, value] of Object.entries(sections.get(name) ?? {})) {
    const at = toPointer([name, key]);
    const line = located.lineOf(at);
    const read = (): TypedValue => {
      // JSON has types of its own; its texts follow the rules of the other file.
      if (typeof value !== 'string')
        return { value, mistakes: [], lineOf: (rest) => located.lineOf(at + rest) };
      const lines = value.split('\n').map((text) => ({ text, line }));
      return typedValue(key, lines, machine);
    };
    entries.set(key, { key, file: located.file, line, inherited: false, read });
  }
  return [...entries.values()];
}

/** A value for the schema; undefined where it is unset or no value. */
function settingValue(
  section: string,
  { key, file, line }: Entry,
  typed: TypedValue,
  schema: SettingSchema,
  report: Report,
): unknown {
  const pointer = toPointer([section, key]);
  for (const { severity, code, line, message } of typed.mistakes) {
    report(severity, code, { file, pointer, line }, message);
  }
  const { value } = typed;
  if (value === undefined || value === null) return undefined;
  const fitting = fit(value, schema);
  if (value === '' || (Array.isArray(fitting) && fitting.length === 0)) {
    const message = `${key} has no value; write one, or None for the default`;
    report('error', 'wrong-type', { file, pointer, line }, message);
    return undefined;
  }
  if (typeof fitting === 'string' && /^(["']).*\1$/.test(fitting)) {
    const message = `${key} is ${fitting} with the quotes, as in Harvester; remove them if they are not meant`;
    report('warning', 'quoted-value', { file, pointer, line }, message);
  }
  const items: [string, string, unknown][] = Array.isArray(fitting)
    ? fitting.map((item: unknown, index) => [`/${index}`, `${key}[${index}]`, item])
    : [['', key, fitting]];
  // Items of the cacher and keys of the login are judged by themselves: a queue without PanDA needs none of them.
  const isJudgedLater = pointer === '/cacher/data' || loginSettings.has(`${section}.${key}`);
  const placeholders = isJudgedLater
    ? []
    : items.filter(([, , item]) => typeof item === 'string' && item.includes('FIXME'));
  for (const [at, what, item] of placeholders) {
    const message = `${what} is ${JSON.stringify(item)}, a placeholder of Harvester's template; write the value of your site`;
    report('error', 'template-placeholder', { file, pointer: pointer + at, line: typed.lineOf(at) }, message);
  }
  if (placeholders.length > 0) return undefined;
  return fitting;
}

/** A value that nothing reads yet: what is wrong with it must not keep the daemon from starting. */
function rawValue(section: string, { key, file }: Entry, typed: TypedValue, report: Report): unknown {
  const pointer = toPointer([section, key]);
  for (const { severity, code, line, message } of typed.mistakes) {
    report(severity === 'error' ? 'warning' : severity, code, { file, pointer, line }, message);
  }
  return typed.value ?? undefined;
}

function reportUnread(
  { name, line }: ConfigSection,
  entries: readonly Entry[],
  schema: SettingSchema | undefined,
  report: Report,
): void {
  const own = entries.filter(({ inherited }) => !inherited);
  const pointer = toPointer([name]);
  const known = harvesterKeys(name);
  if (schema === undefined && !harvesterSections.includes(name)) {
    const sections = [...harvesterSections, ...Object.keys(settingsSchema.properties)];
    const meant = similar(name, sections)[0];
    const message = `[${name}] is a section of neither Harvester nor thresher${meant === undefined ? '' : `; is [${meant}] meant?`}`;
    report('warning', 'unknown-setting', { pointer, line }, message);
    return;
  }
  const nothingRead = (count: number): void => {
    if (count === 0) return;
    const effect = count === 1 ? 'its 1 key has no effect' : `its ${count} keys have no effect`;
    report(
      'notice',
      'unread-setting',
      { pointer, line },
      `thresher reads nothing of [${name}]: ${effect}`,
      `[${name}]`,
    );
  };
  if (schema === undefined) {
    nothingRead(own.length);
    return;
  }
  const ours = Object.keys(schema.properties ?? {});
  if (isOfNames(schema)) {
    for (const { key, file, line } of own) {
      const message = `thresher does not read [${name}] of this file: write ${name}.${key} into a thresher.yaml, with the other settings`;
      report('warning', 'unread-setting', { file, pointer: toPointer([name, key]), line }, message);
    }
    return;
  }
  const others = own.filter(({ key }) => !ours.includes(key));
  for (const { key, file, line } of others.filter(({ key }) => !known.includes(key))) {
    const meant = similar(key, [...ours, ...known])[0];
    const message = `"${key}" in [${name}] is a key of neither Harvester nor thresher${meant === undefined ? '' : `; is ${meant} meant?`}`;
    report('warning', 'unknown-setting', { file, pointer: toPointer([name, key]), line }, message);
  }
  if (isOpen(schema)) return;
  const unread = others.filter(({ key }) => known.includes(key));
  const missed = unread.filter((entry) => isMissed(name, entry));
  const harmless = unread.filter((entry) => !missed.includes(entry));
  for (const { key, file, line } of missed) {
    const message = `thresher does not read ${name}.${key}: ${missedSettings[`${name}.${key}`]?.message ?? ''}`;
    report('warning', 'unread-setting', { file, pointer: toPointer([name, key]), line }, message);
  }
  // A section that says nothing to thresher needs no notice for each of its keys.
  if (others.length === own.length && harmless.length > 1) {
    nothingRead(harmless.length);
    return;
  }
  for (const { key, file, line } of harmless) {
    const why = needlessSettings[`${name}.${key}`];
    const message =
      why === undefined
        ? `thresher does not read ${name}.${key}: it has no effect`
        : `thresher needs no ${name}.${key}: ${why}`;
    const place = { file, pointer: toPointer([name, key]), line };
    report('notice', 'unread-setting', place, message, `${name}.${key}`);
  }
}

function isMissed(section: string, entry: Entry): boolean {
  const missed = missedSettings[`${section}.${entry.key}`];
  if (missed === undefined) return false;
  const { value } = entry.read();
  return value !== undefined && missed.when(value);
}

/** Harvester reads this address first; settings that stand only there would be silently missing. */
function reportUrl({ env }: Machine, report: Report): void {
  if (env.HARVESTER_INSTANCE_CONFIG_URL === undefined) return;
  // The address itself may hold a password.
  const message =
    'HARVESTER_INSTANCE_CONFIG_URL is set, and thresher reads no settings from there; write them into this file';
  report('warning', 'unread-setting', { pointer: '', line: 1 }, message);
}

function reportOverride(
  { located, sections, problems: own }: Override,
  written: ReadonlyMap<string, ConfigSection>,
  problems: Problem[],
): void {
  problems.push(...own);
  for (const name of sections.keys()) {
    if (written.has(name) || isOwn(name)) continue;
    const pointer = toPointer([name]);
    const message = `"${name}" has no effect: only sections that panda_harvester.cfg has are overridden; add [${name}] there`;
    const place = { file: located.file, pointer, line: located.lineOf(pointer) };
    problems.push({ ...place, severity: 'warning', code: 'unread-setting', message });
  }
}

/** A section of thresher that Harvester does not have. */
function isOwn(name: string): boolean {
  return sectionSchema(name) !== undefined && !harvesterSections.includes(name);
}

/** Sections of thresher's own that the override alone has: where Harvester's image brings the file, nobody can write them there. */
function broughtBy(
  override: Override | undefined,
  written: ReadonlyMap<string, ConfigSection>,
): readonly ConfigSection[] {
  if (override === undefined) return [];
  const names = [...override.sections.keys()].filter((name) => isOwn(name) && !written.has(name));
  return names.map((name) => ({
    name,
    line: override.located.lineOf(toPointer([name])),
    options: new Map(),
  }));
}
