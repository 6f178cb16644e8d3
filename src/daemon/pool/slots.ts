import { type AdLines, readAds } from '../../clients/htcondor/ad-lines.ts';
import { classAdName, classAdString } from '../../clients/htcondor/classad.ts';
import { HTCondorError } from '../../clients/htcondor/errors.ts';
import type { CondorTools, Tool } from '../../clients/htcondor/tools.ts';

/** ms */
const timeLimit = 60_000;
/** Characters: the whole ads of some thousand slots, or ten attributes of some hundred thousand. */
const outputLimit = 64 * 1024 * 1024;

export interface SlotQuestion {
  /** An expression of safe parts. */
  readonly constraint: string;
  /** Default: the whole ads. */
  readonly attributes?: readonly string[];
}

/**
 * Ads of slots, as text.
 * @throws HTCondorError
 */
export async function slotAds(
  tools: CondorTools,
  { constraint, attributes = [] }: SlotQuestion,
  signal: AbortSignal,
): Promise<AdLines[]> {
  const projection = attributes.length === 0 ? [] : ['-attributes', attributes.map(classAdName).join(',')];
  const args = ['-long', ...projection, '-constraint', constraint];
  const tool: Tool = { command: 'condor_status', args, changes: false, timeLimit, outputLimit };
  const { stdout } = await tools.succeed(tool, signal);
  try {
    return readAds(stdout);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { command, place } = tools.called(tool);
    const message = `${command} for ${place} wrote no list of ads: ${error.message}`;
    throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false }, {}, { cause: error });
  }
}

/** The slots of the Pods of a Deployment. Kubernetes cuts long names of Deployments in those of their Pods. */
export function slotsOfDeployment(deployment: string): string {
  const prefix = deployment.length > 40 ? deployment.slice(0, 40) : `${deployment}-`;
  return `substr(Machine, 0, ${prefix.length}) =?= ${classAdString(prefix)}`;
}

/** The startd of a queue, or of one of its shapes. */
export function slotsOfQueue(queue: string, shape: string | undefined): string {
  const terms = [`ThresherQueue =?= ${classAdString(queue)}`];
  if (shape !== undefined) terms.push(`ThresherShape =?= ${classAdString(shape)}`);
  return terms.join(' && ');
}

/** The slots of a machine, or the slot, of this name. */
export function slotsOfStartd(name: string): string {
  const text = classAdString(name);
  return `Machine == ${text} || Name == ${text}`;
}
