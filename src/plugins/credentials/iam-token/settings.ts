import { isObject } from '../../../util/json.ts';
import { resolve } from 'node:path';
import { whyUnreadable } from '../../../util/operator-files.ts';
import { check } from '../../../util/schema.ts';
import { messageOf } from '../../../worker/errors.ts';
import type { TargetContext } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { type IamTokenConfig, IamTokenOptions } from './schema.ts';
import { clashingTargets, pandaServer } from './targets.ts';

export type Loaded =
  | { readonly ok: true; readonly options: IamTokenOptions }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** The options of a section, or of the file it names. */
export async function loadOptions(
  config: IamTokenConfig,
  { configDir, files }: TargetContext,
): Promise<Loaded> {
  if (config.inFile === undefined) return checked(config, undefined);
  const file = resolve(configDir, config.inFile);
  let text: string;
  try {
    text = (await files.read(file, 'options')).bytes.toString('utf8');
  } catch (error) {
    const message = `inFile ${file}: ${whyUnreadable(error, 'options')}`;
    return { ok: false, problems: [{ pointer: '/inFile', code: 'file-unreadable', message }] };
  }
  try {
    const { pandaURLSSL, ce_targets } = config;
    const read: unknown = JSON.parse(text);
    // The server and the queues are the factory's, as in Harvester: the file need not repeat them.
    const ours = { ...(pandaURLSSL !== undefined && { pandaURLSSL }), ce_targets };
    return checked(isObject(read) ? { ...ours, ...read } : read, file);
  } catch (error) {
    return {
      ok: false,
      problems: [{ pointer: '', code: 'syntax', message: `it is no JSON: ${messageOf(error)}`, file }],
    };
  }
}

/** Lines of `target_list_file`; none if it cannot be read now: the manager reports that when it runs. */
export async function moreTargets(
  { target_list_file: file }: IamTokenOptions,
  { configDir, files }: TargetContext,
): Promise<string[]> {
  if (file === undefined) return [];
  try {
    return (await files.read(resolve(configDir, file), 'options')).bytes.toString('utf8').split('\n');
  } catch {
    return [];
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
      pointer: `/target_list/${index}`,
      code: 'wrong-type',
      message:
        'this endpoint stands there with another audience or scope; there is one token for each endpoint',
    }));
  }
  // The queues name them.
  if (target_type === 'ce') return [];
  const message = `there is no target: name endpoints in target_list or target_list_file`;
  return [{ pointer: '/target_list', code: 'wrong-type', message }];
}
