import { dirname } from 'node:path';
import type {
  CheckContext,
  DefinitionProblem,
  PandaServer,
  SourceDefinition,
} from '../../plugins/contracts/index.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { type Problem, toPointer } from '../../util/located.ts';
import { whatIsMeant } from '../../util/nearest.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { check } from '../../util/schema.ts';
import { readPandaServer } from '../settings/panda-login-files.ts';
import type { LoadedSettings } from '../settings/settings.ts';
import { findSource, moduleFrom, type SourceModules } from './named-source.ts';
import type { PluginCatalogue } from './queue-config.ts';

/** A source that the settings name, with its options for the daemon. */
export interface ConfiguredSource {
  readonly definition: SourceDefinition;
  /** As its schema left them. */
  readonly config: JsonObject;
  /** Relative paths in its options count from here. */
  readonly configDir: string;
}

export interface SourcesOfSettings {
  readonly sources: readonly ConfiguredSource[];
  /** A source with an error is not run; the others are. */
  readonly problems: readonly Problem[];
  /** By name, the first error of each source that is not run. */
  readonly refused: ReadonlyMap<string, Problem>;
  /** The PanDA server that thresher's sources may use. Absent where the settings name none with a login. */
  readonly pandaServer?: PandaServer;
  /** The settings have a login for the PanDA server, and no link comes of it: a problem says why. */
  readonly linkIsOff?: boolean;
}

type Named = Pick<LoadedSettings, 'file' | 'values'>;

/** The third-party modules that `sources` of the settings brings. */
export function sourceModulesOf({ file, values }: Named): SourceModules {
  return new Map(
    Object.entries(values.sources).flatMap(([name, { module }]) =>
      module === undefined ? [] : [[name, moduleFrom(module, dirname(file))] as const],
    ),
  );
}

/** The sources that `sources` of the settings names, in its order, and the PanDA server for those that need it. */
export async function sourcesOf(
  settings: Named & Pick<LoadedSettings, 'placeOf'>,
  catalogue: PluginCatalogue,
  files: OperatorFiles,
): Promise<SourcesOfSettings> {
  const configDir = dirname(settings.file);
  const modules = sourceModulesOf(settings);
  const sources: ConfiguredSource[] = [];
  const problems: Problem[] = [];
  const refused = new Map<string, Problem>();
  const panda = await readPandaServer(settings, files);
  problems.push(...panda.problems);
  for (const [name, written] of Object.entries(settings.values.sources)) {
    const options = Object.fromEntries(Object.entries(written).filter(([key]) => key !== 'module'));
    const at = toPointer(['sources', name]);
    const report = (problem: Problem) => {
      problems.push(problem);
      if (problem.severity === 'error' && !refused.has(name)) refused.set(name, problem);
    };
    const wrong = (
      pointer: string,
      code: Problem['code'],
      message: string,
      severity: Problem['severity'],
    ) => {
      report({ ...settings.placeOf(`${at}${pointer}`), severity, code, message });
    };
    const found = findSource({ name, module: modules.get(name) }, `sources.${name}`, catalogue, modules);
    const { definition } = found;
    if (definition === undefined) {
      wrong('', found.code, found.message, 'error');
      continue;
    }
    const own = (definition.config as { properties?: object }).properties ?? {};
    for (const key of Object.keys(options).filter((option) => !Object.hasOwn(own, option))) {
      const message = `sources.${name} does not read "${key}"; ${whatIsMeant(key, Object.keys(own))}`;
      wrong(toPointer([key]), 'unknown-setting', message, 'error');
    }
    const given = Object.entries(options).filter(
      ([key, value]) => Object.hasOwn(own, key) && (value as unknown) !== null,
    );
    const checked = check(definition.config, Object.fromEntries(given));
    if (!checked.ok) {
      for (const { pointer, message } of checked.problems) wrong(pointer, 'wrong-type', message, 'error');
      continue;
    }
    for (const problem of await definition.check(checked.value, ofNoQueue(configDir, files))) {
      const { pointer, code, message, severity = 'error', file, line = 0 } = problem;
      if (file === undefined) wrong(pointer, code, message, severity);
      else report({ file, pointer, line, severity, code, message });
    }
    const config = isObject(checked.value) ? checked.value : {};
    if (!refused.has(name)) sources.push({ definition, config, configDir });
  }
  const { server: pandaServer, isMeant } = panda;
  const link = pandaServer === undefined ? { linkIsOff: isMeant } : { pandaServer };
  return { sources, problems, refused, ...link };
}

/** Mistakes of a source that the settings do not name, so that it runs with the defaults of its options. */
export async function withoutSettings(
  definition: SourceDefinition,
  configDir: string,
  files: OperatorFiles,
): Promise<readonly DefinitionProblem[]> {
  const checked = check(definition.config, {});
  const remedy = `write its options into sources.${definition.name} of the settings`;
  const problems: readonly DefinitionProblem[] = checked.ok
    ? await definition.check(checked.value, ofNoQueue(configDir, files))
    : checked.problems.map(({ message }) => ({ pointer: '', code: 'wrong-type', message }));
  return problems.map((problem) =>
    problem.file === undefined ? { ...problem, message: `${remedy}: ${problem.message}` } : problem,
  );
}

function ofNoQueue(configDir: string, files: OperatorFiles): CheckContext {
  return { queue: '', stateDir: '', configDir, files };
}
