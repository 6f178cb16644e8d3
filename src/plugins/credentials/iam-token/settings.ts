import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { check } from '../../../util/schema.ts';
import { messageOf } from '../../../worker/errors.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { type IamTokenConfig, IamTokenOptions } from './schema.ts';
import { clashingTargets, pandaServer } from './targets.ts';

export type Loaded =
  | { readonly ok: true; readonly options: IamTokenOptions }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** The options of a section, or of the file it names. */
export function loadOptions(config: IamTokenConfig, configDir: string): Loaded {
  if (config.inFile === undefined) return checked(config, undefined);
  const file = resolve(configDir, config.inFile);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const message = `inFile cannot be read: ${messageOf(error)}`;
    return { ok: false, problems: [{ pointer: '/inFile', code: 'file-unreadable', message }] };
  }
  try {
    const { pandaURLSSL } = config;
    const read: unknown = JSON.parse(text);
    // The server is the factory's, as in Harvester: the file need not repeat it.
    const fallback = pandaURLSSL !== undefined && isObject(read) ? { pandaURLSSL, ...read } : read;
    return checked(fallback, file);
  } catch (error) {
    return {
      ok: false,
      problems: [{ pointer: '', code: 'syntax', message: `it is no JSON: ${messageOf(error)}`, file }],
    };
  }
}

function checked(value: unknown, file: string | undefined): Loaded {
  const found = check(IamTokenOptions, value);
  const problems: readonly DefinitionProblem[] = found.ok ? unfitting(found.value) : found.problems;
  if (!found.ok || problems.length > 0)
    return { ok: false, problems: problems.map((one) => ({ ...one, ...(file !== undefined && { file }) })) };
  return { ok: true, options: found.value };
}

/** Mistakes that no single option shows. */
function unfitting(options: IamTokenOptions): DefinitionProblem[] {
  const { target_type, target_list, target_list_file } = options;
  if (target_type === 'panda') {
    if (pandaServer(options) !== undefined) return [];
    const message =
      'pandaURLSSL is missing, or no https:// URL; target_type "panda" needs that of the PanDA server';
    return [{ pointer: '/pandaURLSSL', code: 'wrong-type', message }];
  }
  if (target_list.length > 0 || target_list_file !== undefined) {
    return clashingTargets(options).map((index) => ({
      ...{ pointer: `/target_list/${index}`, code: 'wrong-type' },
      message:
        'this endpoint stands there with another audience or scope; there is one token for each endpoint',
    }));
  }
  if (target_type === 'ce') {
    const message =
      'target_type "ce" takes its targets from CRIC, which thresher does not read: name endpoints in target_list or target_list_file';
    return [{ pointer: '/target_list', code: 'credential-targets-missing', message }];
  }
  const message = `there is no target: name endpoints in target_list or target_list_file`;
  return [{ pointer: '/target_list', code: 'wrong-type', message }];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
