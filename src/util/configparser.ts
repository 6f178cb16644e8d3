import { type ConfigLine, interpolate } from './config-interpolation.ts';

/** One value of a section. */
export interface ConfigOption {
  readonly name: string;
  /** Line of its key, from 1. */
  readonly line: number;
  /** The value, line by line: empty lines of it count, comments do not. The first is that of the key itself. */
  readonly lines: readonly ConfigLine[];
  /** Whether it stands in [DEFAULT] and not in the section itself. */
  readonly inherited: boolean;
}

export interface ConfigSection {
  readonly name: string;
  /** Line of its header, from 1. */
  readonly line: number;
  /** Its own options and those of [DEFAULT], by name. */
  readonly options: ReadonlyMap<string, ConfigOption>;
}

/** Mistakes for which Python's parser refuses a file. Python names the first one; this reader names all. */
export interface ConfigMistake {
  readonly kind:
    'missing-header' | 'duplicate-section' | 'duplicate-option' | 'no-key-or-value' | 'interpolation';
  readonly line: number;
  readonly section: string;
  /** "" where no option is meant. */
  readonly option: string;
  /** The mistake, and the correct form. */
  readonly message: string;
}

export interface ParsedConfig {
  /** All but [DEFAULT]. */
  readonly sections: ReadonlyMap<string, ConfigSection>;
  /** Not empty: no value is to be trusted. */
  readonly mistakes: readonly ConfigMistake[];
}

/** A section as it is written, before [DEFAULT] and references count. */
interface RawSection {
  readonly name: string;
  readonly line: number;
  readonly options: Map<string, RawOption>;
}

interface RawOption {
  readonly line: number;
  readonly lines: ConfigLine[];
}

const defaultSection = 'DEFAULT';
// Python's str.strip() also removes \x1c to \x1f and \x85, which JavaScript's trim() does not know, but no byte order
// mark.
const space = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const leading = new RegExp(`^[${space}]+`);
const trailing = new RegExp(`(?<![${space}])[${space}]+$`);
/** Universal newlines, as a file that Python opens as text has them. */
const newline = /\r\n|\r|\n/;

/**
 * Reads a file in the grammar of Python 3.11's `configparser.ConfigParser`, with the case of keys kept and `%(name)s`
 * replaced, as Harvester's LiveConfigParser does: `key = value` or `key: value`, comments only on lines of their own, a value
 * goes on in lines that are indented deeper than its key, also over empty lines, and every key needs a value.
 * Source: the page "configparser" of Python's library reference.
 */
export function parseConfig(text: string): ParsedConfig {
  const mistakes: ConfigMistake[] = [];
  const raw = readSections(text, mistakes);
  const defaults = raw.get(defaultSection);
  raw.delete(defaultSection);
  const sections = new Map<string, ConfigSection>();
  for (const section of raw.values()) {
    sections.set(section.name, finish(section, defaults?.options ?? new Map<string, RawOption>(), mistakes));
  }
  return { sections, mistakes: mistakes.sort((a, b) => a.line - b.line) };
}

function readSections(text: string, mistakes: ConfigMistake[]): Map<string, RawSection> {
  const sections = new Map<string, RawSection>();
  let section: RawSection | undefined;
  let option: RawOption | undefined;
  let indent = 0;
  const mistake = (kind: ConfigMistake['kind'], line: number, name: string, message: string): void => {
    mistakes.push({ kind, line, section: section?.name ?? '', option: name, message });
  };
  for (const [index, content] of text.split(newline).entries()) {
    const line = index + 1;
    const unindented = content.replace(leading, '');
    const value = stripEnd(unindented);
    if (value.startsWith('#') || value.startsWith(';')) continue;
    if (value === '') {
      option?.lines.push({ text: '', line });
      continue;
    }
    const depth = content.length - unindented.length;
    if (option !== undefined && depth > indent) {
      option.lines.push({ text: value, line });
      continue;
    }
    indent = depth;
    // As greedy as Python's: the reader ignores text after the last bracket.
    const header = /^\[([^]+)\]/.exec(value)?.[1];
    if (header !== undefined) {
      option = undefined;
      const before = sections.get(header);
      section = before ?? { name: header, line, options: new Map() };
      sections.set(header, section);
      if (before !== undefined && header !== defaultSection) {
        const message = `section [${header}] stands twice, first on line ${before.line}; move its keys there`;
        mistake('duplicate-section', line, '', message);
      }
      continue;
    }
    if (section === undefined) {
      // Without a section everything up to the first header is wrong: to say so once is enough.
      if (mistakes.length > 0) continue;
      const message = `${quote(value)} stands before any section; a header such as [master] must come first`;
      mistake('missing-header', line, '', message);
      continue;
    }
    const delimiter = value.search(/[=:]/);
    const name = stripEnd(value.slice(0, Math.max(0, delimiter)));
    if (name === '') {
      const what = delimiter === -1 ? 'has no "="' : 'has no key';
      const message =
        `${quote(value)} ${what}: a line must be [section], key = value, a comment (# or ;), ` +
        'or go on with a value by being indented deeper than its key';
      mistake('no-key-or-value', line, '', message);
      if (delimiter === 0) option = undefined;
      continue;
    }
    const before = section.options.get(name);
    if (before !== undefined) {
      const message = `"${name}" stands twice in [${section.name}], first on line ${before.line}; remove one of them`;
      mistake('duplicate-option', line, name, message);
    }
    const first = value.slice(delimiter + 1).replace(leading, '');
    option = { line, lines: [{ text: first, line }] };
    section.options.set(name, option);
  }
  return sections;
}

/** Adds what [DEFAULT] says, and replaces references. */
function finish(
  { name: section, line, options }: RawSection,
  defaults: ReadonlyMap<string, RawOption>,
  mistakes: ConfigMistake[],
): ConfigSection {
  const written = new Map(
    [...new Map([...defaults, ...options])].map(([name, option]) => [name, withoutEmptyEnd(option)]),
  );
  const finished = new Map<string, ConfigOption>();
  for (const [name, option] of written) {
    const inherited = !options.has(name);
    const result = interpolate(option.lines, (other) => written.get(other)?.lines);
    if (result.ok) {
      finished.set(name, { name, line: option.line, lines: result.lines, inherited });
      continue;
    }
    const message = `${name}: ${result.message}`;
    // One mistake in [DEFAULT] shows in every section.
    if (mistakes.some((before) => before.line === option.line && before.message === message)) continue;
    mistakes.push({ kind: 'interpolation', line: option.line, section, option: name, message });
  }
  return { name: section, line, options: finished };
}

function withoutEmptyEnd({ line, lines }: RawOption): RawOption {
  const last = lines.findLastIndex(({ text }) => text !== '');
  return { line, lines: lines.slice(0, Math.max(1, last + 1)) };
}

function stripEnd(text: string): string {
  return text.replace(trailing, '');
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}
