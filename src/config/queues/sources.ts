import { dirname } from 'node:path';
import type { SourceDefinition } from '../../plugins/contracts/index.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import { type Problem, toPointer } from '../../util/located.ts';
import { whatIsMeant } from '../../util/nearest.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { check } from '../../util/schema.ts';
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

/** The sources that `sources` of the settings names, in its order. */
export async function sourcesOf(
  settings: Named & Pick<LoadedSettings, 'placeOf'>,
  catalogue: PluginCatalogue,
  files: OperatorFiles,
): Promise<SourcesOfSettings> {
  const configDir = dirname(settings.file);
  const modules = sourceModulesOf(settings);
  const sources: ConfiguredSource[] = [];
  const problems: Problem[] = [];
  for (const [name, written] of Object.entries(settings.values.sources)) {
    const options = Object.fromEntries(Object.entries(written).filter(([key]) => key !== 'module'));
    const at = toPointer(['sources', name]);
    const wrong = (
      pointer: string,
      code: Problem['code'],
      message: string,
      severity: Problem['severity'],
    ) => {
      problems.push({ ...settings.placeOf(`${at}${pointer}`), severity, code, message });
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
    const context = { queue: '', stateDir: '', configDir, files };
    let isUsable = Object.keys(options).every((option) => Object.hasOwn(own, option));
    for (const problem of await definition.check(checked.value, context)) {
      const { pointer, code, message, severity = 'error', file, line = 0 } = problem;
      if (severity === 'error') isUsable = false;
      if (file === undefined) wrong(pointer, code, message, severity);
      else problems.push({ file, pointer, line, severity, code, message });
    }
    const config = isObject(checked.value) ? checked.value : {};
    if (isUsable) sources.push({ definition, config, configDir });
  }
  return { sources, problems };
}
