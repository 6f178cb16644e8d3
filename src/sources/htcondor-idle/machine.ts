import { isTrue, parseAds, stringIn } from '../../clients/htcondor/ad-text.ts';
import type { Resources } from './model.ts';

/** The empty machine that a slot ad describes. */
export interface Machine {
  readonly resources: Resources;
  /** Whether it takes one job, however small: a static slot. */
  readonly oneJob: boolean;
}

const standard = ['cpus', 'memory', 'disk', 'gpus'];

/**
 * The machine of a slot ad in long form (`NAME = VALUE`, one in a line).
 * @returns why it is none, as the end of a sentence
 */
export function machineOf(ad: string): Machine | string {
  const [values] = parseAds(ad);
  if (values === undefined) return 'it has no attribute in the form `NAME = VALUE`, so it is no ad of a slot';
  const listed = (stringIn(values, 'machineresources') ?? '').toLowerCase().split(/\s+/);
  const names = new Set([...standard, ...listed.filter((name) => name !== '' && name !== 'swap')]);
  const resources = new Map<string, number>();
  for (const name of names) {
    const text = values.get(name);
    const value = text === undefined || text === '' ? 0 : Number(text);
    if (!Number.isFinite(value) || value < 0)
      return `${name} is ${text ?? ''}: it must be a number of 0 or more`;
    if (value > 0) resources.set(name, value);
  }
  if ((resources.get('cpus') ?? 0) <= 0) return 'it has no Cpus, so no job could ever run on it';
  if ((resources.get('memory') ?? 0) <= 0) return 'it has no Memory, so no job could ever run on it';
  return { resources, oneJob: !isTrue(values, 'partitionableslot') };
}
