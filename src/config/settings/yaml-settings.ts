import { fromPointer, type Located, parseYaml, type Problem, toPointer } from '../../util/located.ts';
import { type Machine, variable } from './machine.ts';
import { fit, propertyOf, sectionSchema } from './setting-types.ts';

const wholeReference = /^\$(?=\w+$|\{\w+\}$)\{?(\w+)/;

/** Reads the text of a thresher.yaml. A string that is exactly `$NAME` or `${NAME}` stands for that variable. */
export function parseYamlSettings(text: string, file: string, machine: Machine): Located {
  const located = parseYaml(text, file);
  if (located.value === undefined) return located;
  const problems: Problem[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (typeof value === 'string') {
      const name = wholeReference.exec(value)?.[1];
      if (name === undefined) return value;
      const pointer = toPointer(path);
      const found = variable(name, machine);
      if (found !== undefined) return fitAt(found, pointer);
      const message = `${nameOf(path)} is ${JSON.stringify(value)}, and the environment has no variable "${name}"; set it for the daemon, or write the value itself`;
      const line = located.lineOf(pointer);
      problems.push({ file, pointer, line, severity: 'error', code: 'environment-missing', message });
      return undefined;
    }
    if (Array.isArray(value)) {
      return value.map((item, index) => visit(item, [...path, index])).filter((item) => item !== undefined);
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, item]) => {
        // A section with only comments counts as a missing one.
        if (item === null && path.length === 0 && sectionSchema(key) !== undefined) return [];
        const seen = visit(item, [...path, key]);
        // A value that is missing is said once, and not again as one of the wrong type.
        return seen === undefined ? [] : [[key, seen]];
      }),
    );
  };
  const value = visit(located.value, []);
  return { ...located, value, problems: [...located.problems, ...problems] };
}

/** A variable is text whatever it holds; a value of a setting gets the type of the setting. */
function fitAt(text: string, pointer: string): unknown {
  const [section, key, ...rest] = fromPointer(pointer);
  const schema = section === undefined ? undefined : sectionSchema(section);
  const setting =
    schema === undefined || key === undefined || rest.length > 0 ? undefined : propertyOf(schema, key);
  return setting === undefined ? text : fit(text, setting);
}

/** An item of a list is named with its list. */
function nameOf(path: readonly (string | number)[]): string {
  const last = path.at(-1) ?? 'it';
  return typeof last === 'number' ? `${path.at(-2) ?? ''}[${last}]` : last;
}
