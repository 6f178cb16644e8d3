import { inspectFile } from '../../../clients/credentials/credential-file.ts';
import { whyUnusable } from '../../../util/validity.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { Context } from '../../contracts/context.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { ceTokenOf, type ChosenCe, pandaTokenOf } from '../template/placeholders.ts';
import type { Statement } from '../template/statements.ts';
import type { CondorTemplate } from '../template/template.ts';
import { ceName, cesOf } from './ce-list.ts';

/** All tokens of a queue, whether or not its templates name them. */
export function tokensOf(config: HTCondorSubmitterConfig): readonly string[] {
  const ofCes = cesOf(config).ces.flatMap((ce) => ceTokenOf(config, ce).path ?? []);
  return [...new Set([...ofCes, ...[pandaTokenOf(config) ?? []].flat()])];
}

const uses = (statements: readonly Statement[], placeholders: readonly string[]) =>
  statements.some((one) => one.kind === 'command' && one.names.some((name) => placeholders.includes(name)));

/** Whether jobs of this template go nowhere without the token of their computing element. */
export function needsCeToken(statements: readonly Statement[]): boolean {
  return uses(statements, ['tokenPath', 'tokenFilename']);
}

/** Whether their pilots need the one for the PanDA server. */
export function needsPandaToken(statements: readonly Statement[]): boolean {
  return uses(statements, ['pandaTokenPath', 'pandaTokenFilename']);
}

/** The parts of a submitter that know whether a computing element takes its jobs. */
interface CeParts {
  /** With absolute paths. */
  readonly config: HTCondorSubmitterConfig;
  readonly texts: { template(ce: ChosenCe): Promise<Pick<CondorTemplate, 'statements'> | readonly Reason[]> };
  readonly context: Pick<Context, 'clock' | 'files'>;
}

/**
 * Why jobs for this computing element would be refused, or held, for their token; undefined: it has a good one, or needs none. It never throws for
 * a fault of the file.
 */
export async function tokenFault(
  ce: ChosenCe,
  { config, texts, context }: CeParts,
): Promise<string | undefined> {
  const { path } = ceTokenOf(config, ce);
  if (path === undefined) return undefined;
  const template = await texts.template(ce);
  if ('length' in template || !needsCeToken(template.statements)) return undefined;
  try {
    const state = await context.files.run(path, 'reading', () => inspectFile(path));
    if (state.kind === 'broken') return state.error.message;
    const why = whyUnusable(state.facts, context.clock.now());
    return why === undefined ? undefined : `${path} ${why}`;
  } catch (error) {
    return toReason(error).message;
  }
}

/** Why no computing element of a queue has a good token; undefined: one has, or needs none. */
export async function noGoodToken(ces: readonly ChosenCe[], parts: CeParts): Promise<Reason | undefined> {
  const faults: string[] = [];
  for (const ce of ces) {
    const fault = await tokenFault(ce, parts);
    if (fault === undefined) return undefined;
    faults.push(`${ceName(ce)}: ${fault}`);
  }
  if (faults.length === 0) return undefined;
  const rest = faults.length > 3 ? `; and ${faults.length - 3} more` : '';
  return {
    code: 'preflight',
    message: `no computing element has a good token: ${faults.slice(0, 3).join('; ')}${rest}`,
  };
}
