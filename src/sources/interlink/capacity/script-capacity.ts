import { beginningFromOutside } from '../../../util/beginning.ts';
import { endFromOutside, masked, rememberArguments } from '../../../util/own-secrets.ts';
import { runProgram } from '../../../clients/program.ts';
import { quantityOf } from '../../../clients/kubernetes/quantity.ts';
import type { Clock } from '../../../util/clock.ts';
import { isObject } from '../../../util/json.ts';
import { oneLine } from '../../../util/one-line.ts';
import type { AskCapacity, Capacity, Learned } from './node-capacity.ts';

export interface CapacityScript {
  /** Text for a shell, as the operator wrote it. */
  readonly command: string;
  /** Where it runs. */
  readonly directory: string;
  /** ms. */
  readonly timeLimit: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

const outputLimit = 1024 * 1024;

/** Runs a command of the operator, which prints what the node has, as interLink's plugins do. */
export function scriptCapacity({ command, ...call }: CapacityScript): AskCapacity {
  const name = 'capacityScript';
  rememberArguments([command]);
  return async (signal) => {
    const end = await runProgram({
      ...call,
      command: '/bin/sh',
      args: ['-c', command],
      outputLimit,
      signal,
    });
    const said = oneLine(endFromOutside(end.stderr, 300));
    if (end.killed === 'time')
      throw new Error(`${name} did not end within ${call.timeLimit / 1000} s and was killed: ${said}`);
    if (end.killed === 'output') throw new Error(`${name} printed more than ${outputLimit} characters`);
    if (end.status !== 0)
      throw new Error(`${name} ended with ${end.status ?? end.endedBy ?? 'no status'}: ${said}`);
    return learnedFrom(end.stdout, name);
  };
}

/** Keeps the parts that interLink understands. @throws Error if it is no JSON object */
export function learnedFrom(text: string, name: string): Learned {
  const warnings: string[] = [];
  const right = 'it must print JSON such as {"resources": {"cpu": "128", "memory": "512Gi", "pods": "1000"}}';
  const value = parsed(text);
  if (!isObject(value)) throw new Error(`${name} printed no JSON object; ${right}`);
  const { resources, taints } = value;
  const known = isObject(resources) ? resourcesIn(resources) : undefined;
  if (known === undefined && resources !== undefined && resources !== null)
    warnings.push(`${name}: resources is no object; ${right}`);
  const tainted = taints === undefined || taints === null ? undefined : taintsIn(taints);
  return { ...(known && { resources: known }), ...(tainted && { taints: tainted }), warnings };

  function resourcesIn(given: Readonly<Record<string, unknown>>): NonNullable<Capacity['resources']> {
    const one = (key: 'cpu' | 'memory' | 'pods') => {
      const written = given[key];
      if (written === undefined || written === null || written === '') return {};
      if (isQuantity(written)) return { [key]: String(written) };
      warnings.push(
        `${name}: resources.${key} is ${beginningFromOutside(JSON.stringify(written), 100)}; it must be a quantity, such as "128" or "512Gi"`,
      );
      return {};
    };
    const listed = Array.isArray(given['accelerators']) ? given['accelerators'] : [];
    const accelerators = listed.flatMap((each: unknown, index) => {
      const { resourceType, available } = isObject(each) ? each : {};
      if (isName(resourceType) && resourceType !== '' && isQuantity(available))
        return [{ resourceType, available: String(available) }];
      warnings.push(`${name}: resources.accelerators[${index}] needs a resourceType and a number available`);
      return [];
    });
    return {
      ...one('cpu'),
      ...one('memory'),
      ...one('pods'),
      ...(accelerators.length > 0 && { accelerators }),
    };
  }

  function taintsIn(given: unknown): NonNullable<Capacity['taints']> | undefined {
    const listed = Array.isArray(given) ? given.map(taintOf) : [undefined];
    if (listed.every((each) => each !== undefined)) return listed;
    warnings.push(
      `${name}: taints must be a list of taints with key and effect, which is ${effects.join(', ')}`,
    );
    return undefined;
  }
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function taintOf(given: unknown) {
  if (!isObject(given)) return undefined;
  const { key, value, effect } = given;
  if (!isName(key) || key === '' || typeof effect !== 'string' || !effects.includes(effect)) return undefined;
  if (typeof value === 'string' && !isName(value)) return undefined;
  return { key, ...(typeof value === 'string' && { value }), effect };
}

/** Kubernetes takes no longer key: a prefix, a slash and a name. */
const longestName = 317;

/** Whoever reaches the sidecar reads the names of a node: what would be hidden of one makes no name, so all of it is left out. */
function isName(written: unknown): written is string {
  return typeof written === 'string' && written.length <= longestName && masked(written) === written;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isQuantity(written: unknown): written is string | number {
  const value = quantityOf(written);
  return value !== undefined && value >= 0;
}
