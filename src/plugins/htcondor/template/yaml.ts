import type { Located } from '../../../util/located.ts';
import { toPointer } from '../../../util/pointer.ts';
import type { Finding, Parsed } from './sdf.ts';
import { parseDollars, type Piece } from './pieces.ts';
import {
  argumentsCommand,
  attributeCommand,
  environmentCommand,
  type Statement,
  textCommand,
} from './statements.ts';

type Path = readonly (string | number)[];

/**
 * A YAML template: submit commands by their names. `arguments` may be a list of words, `environment` a map, and
 * `attributes` a map of ClassAd attributes whose strings need no quotes of their own.
 */
export function parseYamlTemplate(located: Located): Parsed {
  const statements: Statement[] = [];
  const findings: Finding[] = [];
  const lineOf = (path: Path) => located.lineOf(toPointer(path));
  const wrong = (path: Path, message: string) =>
    findings.push({ line: lineOf(path), code: 'template-wrong', message });

  /** @returns undefined where it cannot be; that is said then. */
  const piecesOf = (value: unknown, path: Path): readonly Piece[] | undefined => {
    const what = path.join(' ');
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
      wrong(path, `${what} is ${JSON.stringify(value)}; it must be text, a number, true or false`);
      return undefined;
    }
    const text = String(value).replace(/\n$/, '');
    if (/[\n\r]/.test(text)) {
      wrong(path, `${what} has several lines; HTCondor reads one: write it with ">-"`);
      return undefined;
    }
    const parsed = parseDollars(text);
    if (parsed.ok) return parsed.pieces;
    findings.push({ line: lineOf(path), ...parsed.problem });
    return undefined;
  };

  const { value } = located;
  if (!isMap(value)) {
    wrong([], 'it is a list or a plain value; a template must be a map of submit commands: executable: ...');
    return { statements, findings };
  }
  for (const [key, entry] of Object.entries(value)) {
    const path = [key];
    const line = lineOf(path);
    // A key without a value counts as not written.
    if (entry === null) continue;
    if (key === 'attributes') {
      if (!isMap(entry)) {
        wrong(path, 'attributes must be a map: NAME: VALUE');
        continue;
      }
      for (const [name, inner] of Object.entries(entry)) {
        const at = [key, name];
        if (!/^[A-Za-z_]\w*$/.test(name))
          wrong(at, `"${name}" is no name of an attribute: letters, digits and "_"`);
        const pieces = piecesOf(inner, at);
        if (pieces === undefined) continue;
        const constant = typeof inner === 'number' || typeof inner === 'boolean';
        statements.push(
          constant ? textCommand(`+${name}`, pieces, lineOf(at)) : attributeCommand(name, pieces, lineOf(at)),
        );
      }
    } else if (/^(arguments|args)$/i.test(key) && Array.isArray(entry)) {
      const list = entry.map((item: unknown, index) => piecesOf(item, [key, index]));
      statements.push(
        argumentsCommand(
          'arguments',
          list.map((pieces) => pieces ?? []),
          line,
        ),
      );
    } else if (/^(environment|env)$/i.test(key) && isMap(entry)) {
      const entries = Object.entries(entry).map(([name, inner]) => {
        if (!/^[A-Za-z_]\w*$/.test(name)) wrong([key, name], `"${name}" is no name of a variable`);
        return [name, piecesOf(inner, [key, name]) ?? []] as const;
      });
      statements.push(environmentCommand(entries, line));
    } else if (!/^[+A-Za-z_][\w.]*$/.test(key)) {
      wrong(path, `"${key}" is no name of a command`);
    } else {
      const pieces = piecesOf(entry, path);
      if (pieces !== undefined) statements.push(textCommand(key, pieces, line));
    }
  }
  return { statements, findings };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
