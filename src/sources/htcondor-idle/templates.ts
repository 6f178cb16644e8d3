import type { Reason } from '../../plugins/contracts/index.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import type { Template } from './look/result.ts';
import type { WrittenShape } from './shapes.ts';
import { machineOf } from './machine.ts';

/** The slot ads of shapes, as far as they can be read. */
export interface ReadTemplates {
  readonly templates: readonly Template[];
  /** By queue: why some of its shapes take part in nothing. */
  readonly troubles: ReadonlyMap<string, readonly Reason[]>;
}

/** Reads each slot ad afresh: an operator may have learned another meanwhile. */
export async function readTemplates(
  shapes: readonly WrittenShape[],
  files: Pick<OperatorFiles, 'read'>,
): Promise<ReadTemplates> {
  const read = await Promise.all(shapes.map((shape) => readTemplate(shape, files)));
  const templates = read.flatMap((one) => ('code' in one ? [] : [one]));
  const troubles = Map.groupBy(
    read.flatMap((one) => ('code' in one ? [one] : [])),
    ({ queue }) => queue,
  );
  return { templates, troubles };
}

/** A shape that cannot take part, as a reason of its queue. */
interface Trouble extends Reason {
  readonly queue: string;
}

async function readTemplate(
  { key, queue, slotAd, cost, most }: WrittenShape,
  files: Pick<OperatorFiles, 'read'>,
): Promise<Template | Trouble> {
  const trouble = (why: string): Trouble => {
    const message = `${slotAd}, the slot ad of ${key}: ${why}`;
    return { queue, code: 'htcondor-idle-slot-ad', message };
  };
  let ad: string;
  try {
    ad = (await files.read(slotAd, 'options')).bytes.toString('utf8');
  } catch (error) {
    return trouble(whyUnreadable(error, 'options'));
  }
  const machine = machineOf(ad);
  if (typeof machine === 'string') return trouble(machine);
  const { resources, oneJob } = machine;
  return { shape: { key, queue, resources, oneJob, cost: cost ?? resources.get('cpus') ?? 1, most }, ad };
}
