import { attributesIn, charactersOfStep, expressionBounds, measured, tokensOf } from './expression.ts';
import { jobAttributes } from './job-attributes.ts';

/** The attribute that a command becomes, in lower case: `periodic_hold` is PeriodicHold, `gpus_minimum_memory` is GPUsMinMemory, `+My_Tag` is My_Tag. */
export function attributeOf(name: string): string {
  const compared = name.toLowerCase();
  const own = compared.replace(/^(\+|my\.)/, '');
  if (own !== compared) return own;
  return compared
    .replace(/_expr$/, '')
    .replace(/^gpus_(min|max)imum/, 'gpus$1')
    .replaceAll('_', '');
}

/**
 * Commands that HTCondor itself names in others, also where a job does not have these. Source: an ad of
 * `condor_submit -dry-run`, HTCondor 23.9; the manual of 25.14 for what is tried again.
 */
export const namedBeside: Readonly<Record<string, readonly string[]>> = {
  Requirements: ['request_cpus', 'request_memory', 'request_disk', 'request_gpus', 'require_gpus'],
  RequireGPUs: [
    'gpus_minimum_capability',
    'gpus_maximum_capability',
    'gpus_minimum_memory',
    'gpus_minimum_runtime',
  ],
  RequestMemory: ['retry_request_memory', 'retry_request_memory_increase', 'retry_request_memory_max'],
  RequestDisk: ['retry_request_disk'],
};

export const endlessReason = `it names itself, or an attribute that none of these lines gives, or it takes more than ${expressionBounds.steps} steps with the other commands that it names and those before it`;

/** Commands whose attributes nothing reads but HTCondor itself. */
const isRoot = /^(requirements|rank|require_gpus|periodic_\w+)$/i;

/** What an expression takes, and names of its job. */
interface Weighed {
  /** At least one; without those of what it names. */
  readonly steps: number;
  /** Attributes in lower case, as often as it names them. Those behind `TARGET.` are the machine's. */
  readonly names: readonly string[];
}

/** A text that is no expression takes one step, and names nothing. */
function weighed(expression: string): Weighed {
  const operators = measured(expression);
  const tokens = tokensOf(expression);
  if (typeof operators === 'string' || typeof tokens === 'string') return { steps: 1, names: [] };
  const texts = tokens.map(({ text, kind }) =>
    kind === 'text' ? Math.floor(text.length / charactersOfStep) : 0,
  );
  return {
    steps: texts.reduce((sum, count) => sum + count, operators + 1),
    names: attributesIn(tokens).flatMap(({ name, isTheirs }) => (isTheirs ? [] : [name.toLowerCase()])),
  };
}

/**
 * The commands of one job that take too many steps, with what they name of each other: by that, a few short ones can take any number. Attributes
 * (`+NAME`) are evaluated where they are named, and the other commands once for each job and look of the schedd: these count together, in their order.
 * @param commands by their names
 * @param isText whether the value of a command is a text, and no expression
 */
export function endlessIn(
  commands: Readonly<Record<string, string>>,
  isText: (key: string) => boolean,
): readonly string[] {
  const beside = new Map(
    Object.entries(namedBeside).map(([name, others]) => [attributeOf(name), others.map(attributeOf)]),
  );
  const expressions = new Map([
    ...[...beside.keys()].map((name) => [name, weighed('')] as const),
    ...Object.entries(commands)
      .filter(([key]) => !isText(key))
      .map(([key, value]) => [attributeOf(key), weighed(value)] as const),
  ]);
  const steps = new Map<string, number>();
  const stepsOf = (name: string): number => {
    const known = steps.get(name);
    if (known !== undefined) return known;
    // Until it is known, one that names itself has no end.
    steps.set(name, Infinity);
    const { steps: own, names } = expressions.get(name) ?? weighed('');
    const sum = [...names, ...(beside.get(name) ?? [])]
      .filter((word) => expressions.has(word))
      .reduce((sum, word) => sum + stepsOf(word), own);
    steps.set(name, sum);
    return sum;
  };
  const given = new Set([...Object.keys(commands).map(attributeOf), ...jobAttributes.map(attributeOf)]);
  // What machines read of a job leads to nothing that is not known: a template may have made an expression of it that reads this one, as it may of
  // run times, of which its own counts beside those of the lines.
  for (const name of ['maxruntime', 'maxwalltime', 'maxwalltimemins', 'requestruntime']) given.delete(name);
  const isOpen = (key: string) =>
    !isRoot.test(key) && expressions.get(attributeOf(key))?.names.some((name) => !given.has(name)) === true;
  let together = 0;
  return Object.keys(commands).filter((key) => {
    if (isText(key)) return false;
    const its = stepsOf(attributeOf(key));
    const isAttribute = /^(\+|my\.)/i.test(key);
    if (
      isOpen(key) ||
      its > expressionBounds.steps ||
      (!isAttribute && together + its > expressionBounds.steps)
    )
      return true;
    if (!isAttribute) together += its;
    return false;
  });
}
