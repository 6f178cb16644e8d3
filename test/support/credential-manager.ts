import { expect } from 'chai';
import type {
  Context,
  CredentialFacts,
  CredentialManager,
  CredentialState,
  PluginDefinition,
  RenewOutcome,
} from '../../src/plugins/contracts/index.ts';
import { check } from '../../src/util/schema.ts';
import { files } from './operator-files.ts';
import { pluginContext } from './plugin-context.ts';

/** A manager as the daemon makes it of the options of a section. */
export function makeManager(
  definition: PluginDefinition,
  options: unknown,
  context: Partial<Context> = {},
): CredentialManager {
  const checked = check(definition.config, options);
  if (!checked.ok) throw new Error(checked.problems.map(({ message }) => message).join('; '));
  return definition.create(checked.value, pluginContext(context)) as CredentialManager;
}

/** What is wrong with options, as "/pointer: message", after file and line where it is another file's. */
export async function mistakes(
  definition: PluginDefinition,
  options: unknown,
  { configDir = '/etc/site' }: { readonly configDir?: string } = {},
): Promise<string[]> {
  const checked = check(definition.config, options);
  const problems = checked.ok
    ? await definition.check(checked.value, { queue: '', stateDir: '/state', configDir, files })
    : checked.problems.map(({ pointer, message }) => ({ pointer, message, file: undefined, line: 0 }));
  return problems.map(({ file, line, pointer, message }) => {
    const place = file === undefined ? '' : `${file}:${line ?? 0} `;
    return `${place}${pointer}: ${message}`;
  });
}

export function renewing(manager: CredentialManager, force = false): Promise<readonly RenewOutcome[]> {
  return manager.renew({ force }, new AbortController().signal);
}

/** The kinds of the outcomes; why, where one failed. */
export async function renewed(manager: CredentialManager, force = false): Promise<string[]> {
  const outcomes = await renewing(manager, force);
  return outcomes.map((one) =>
    one.kind === 'failed' ? `${one.error.code}: ${one.error.message}` : one.kind,
  );
}

export async function inspected(manager: CredentialManager): Promise<readonly CredentialState[]> {
  return manager.inspect(new AbortController().signal);
}

/** The one credential of a manager, which must be there. */
export async function facts(manager: CredentialManager): Promise<CredentialFacts> {
  const [state, ...more] = await inspected(manager);
  expect(more).to.be.empty;
  if (state?.kind !== 'there') throw new Error(`it is not there: ${JSON.stringify(state)}`);
  return state.facts;
}

export async function warnings(manager: CredentialManager): Promise<string[]> {
  const states = await inspected(manager);
  return states.flatMap((state) => (state.kind === 'there' ? state.warnings.map(({ code }) => code) : []));
}
