import type { Group, Request, RequestSeries, Wanted } from '../../plugins/contracts/index.ts';
import type { OriginKey } from '../../worker/news.ts';
import { mostOfDisk, mostOfJob } from '../../worker/worker.ts';
import { shown, whatIsWrongWithOrigin } from '../../worker/origin.ts';

/** The longest of the other texts that a request may have, characters. */
const longestText = 256;

/** An answer of a source, as far as its shape can be trusted: each request is still to be checked by `whatIsWrong`. */
export interface Answered {
  readonly requests: readonly unknown[];
  /** Those that it makes one by one. */
  readonly series?: readonly RequestSeries[];
  readonly groups: readonly Group[];
  readonly reasons: Wanted['reasons'];
}

/**
 * Reads the answer of a source, which may be a third party's: types are a promise that its author made, and JavaScript keeps none.
 * @returns a sentence where the answer as a whole is of no use
 */
export function readAnswer(answer: unknown): Answered | string {
  if (!isObject(answer)) return `it answered ${shown(answer)}, not { requests, groups, reasons }`;
  const { requests, groups, reasons } = answer;
  for (const [name, list] of Object.entries({ requests, groups, reasons }))
    if (!Array.isArray(list)) return `${name} in its answer is ${shown(list)}, not a list`;
  const { series = [] } = answer;
  if (!Array.isArray(series) || !series.every(isSeries))
    return `series in its answer is ${shown(series)}: it must be a list, each with a count and requests one by one`;
  const wrongGroup = (groups as unknown[]).find((group) => !isGroup(group));
  if (wrongGroup !== undefined)
    return `a group in its answer is ${shown(wrongGroup)}: it needs requirements and a count of 0 or more`;
  const wrongReason = (reasons as unknown[]).find((reason) => !isReason(reason));
  if (wrongReason !== undefined)
    return `a reason in its answer is ${shown(wrongReason)}: it needs a code and a message`;
  return answer as unknown as Answered;
}

/** Whether a request says which worker it asks for, so that it can be told from others. */
export function hasOrigin(request: unknown): request is { readonly origin: OriginKey } {
  return isObject(request) && whatIsWrongWithOrigin(request.origin) === undefined;
}

/** A sentence on the first mistake in a request, its payload aside (`worker/payload-check.ts`); undefined where there is none. */
export function whatIsWrong(request: unknown): string | undefined {
  if (!isObject(request)) return `a request is ${shown(request)}, not an object with an origin`;
  const { origin, requirements, groupId, payloadFollows } = request as Partial<
    Record<keyof Request, unknown>
  >;
  const inOrigin = whatIsWrongWithOrigin(origin);
  if (inOrigin !== undefined) return inOrigin;
  if (groupId !== undefined && !isText(groupId))
    return `groupId is ${shown(groupId)}: it must be a text of 1 to ${longestText} characters`;
  if (payloadFollows !== undefined && typeof payloadFollows !== 'boolean')
    return `payloadFollows is ${shown(payloadFollows)}: it must be true or false`;
  return requirements === undefined ? undefined : wrongNeeds(requirements);
}

/** The mistake in needs that were looked at, if any: thousands of requests may share one object of them. */
const looked = new WeakMap<object, { readonly wrong: string | undefined }>();

function wrongNeeds(needs: unknown): string | undefined {
  if (!isObject(needs)) return whatIsWrongWithNeeds(needs);
  const known = looked.get(needs) ?? { wrong: whatIsWrongWithNeeds(needs) };
  looked.set(needs, known);
  return known.wrong;
}

/** The needs that a request may have of its own, and the bounds of each: no machine has more, and databases and schedds add them up. */
const numbers = {
  nCore: { least: 1, most: mostOfJob.cpus },
  minRamCount: { least: 0, most: mostOfJob.memory },
  maxDiskCount: { least: 0, most: mostOfDisk },
  maxWalltime: { least: 0, most: Number.MAX_SAFE_INTEGER },
} as const;
const texts = ['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'] as const;

function whatIsWrongWithNeeds(needs: unknown): string | undefined {
  if (!isObject(needs)) return `requirements are ${shown(needs)}, not an object`;
  for (const [name, value] of Object.entries(needs)) {
    if (value === undefined) continue;
    if (name in numbers) {
      const { least, most } = numbers[name as keyof typeof numbers];
      if (!isCount(value) || value < least)
        return `${name} is ${shown(value)}: it must be a whole number of ${least} or more`;
      if (value > most) return `${name} is ${shown(value)}: it must be a whole number of ${most} or less`;
    } else if ((texts as readonly string[]).includes(name)) {
      if (!isText(value))
        return `${name} is ${shown(value)}: it must be a text of 1 to ${longestText} characters`;
    } else {
      const known = [...Object.keys(numbers), ...texts].join(', ');
      return `requirements have ${shown(name)}, which is none of ${known}`;
    }
  }
  return undefined;
}

/** Its needs are mostly those of the queue, which the configuration has checked: their types are looked at and no more. */
function isGroup(group: unknown): group is Group {
  if (!isObject(group) || !isObject(group.requirements)) return false;
  const { count, requirements } = group;
  const isNumber = (name: string) => typeof requirements[name] === 'number';
  const isNamed = (name: string) => typeof requirements[name] === 'string';
  return (
    (count === Infinity || isCount(count)) && Object.keys(numbers).every(isNumber) && texts.every(isNamed)
  );
}

function isSeries(series: unknown): series is RequestSeries {
  if (!isObject(series) || !isCount(series.count)) return false;
  const { requests } = series;
  return typeof requests === 'object' && requests !== null && Symbol.iterator in requests;
}

function isReason(reason: unknown): boolean {
  return isObject(reason) && typeof reason.code === 'string' && typeof reason.message === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= longestText && !value.includes('\0');
}
