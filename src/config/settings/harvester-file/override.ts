import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Located, parseJson, type Problem, toPointer } from '../../../util/located.ts';
import { readLocatedSync } from '../../../util/located-file.ts';
import { type Machine, pandaHome } from '../machine.ts';
import { isObject, type JsonObject } from '../../../util/json.ts';

/** Values from the file that a Kubernetes ConfigMap puts beside `panda_harvester.cfg`, by section. */
export interface Override {
  readonly located: Located;
  readonly sections: ReadonlyMap<string, JsonObject>;
  readonly problems: readonly Problem[];
}

/** Reads `$PANDA_HOME/etc/configmap/panda_harvester_configmap.json`. @returns undefined where there is none. */
export function readOverride(machine: Machine): Override | undefined {
  const home = pandaHome(machine);
  if (home === undefined) return undefined;
  const file = join(home, 'etc/configmap/panda_harvester_configmap.json');
  if (!existsSync(file)) return undefined;
  const located = readLocatedSync(file, 'settings', parseJson);
  const problems = [...located.problems];
  const sections = new Map<string, JsonObject>();
  const wrong = (pointer: string, what: string): void => {
    const message = `${what}; it must be an object such as {"master": {"harvester_id": "..."}}`;
    const line = located.lineOf(pointer);
    problems.push({ file, pointer, line, severity: 'error', code: 'wrong-type', message });
  };
  if (isObject(located.value)) {
    for (const [name, values] of Object.entries(located.value)) {
      if (isObject(values)) sections.set(name, values);
      else wrong(toPointer([name]), `"${name}" is ${JSON.stringify(values)}`);
    }
  } else if (located.value !== undefined) wrong('', 'the file holds no object');
  return { located, sections, problems };
}
