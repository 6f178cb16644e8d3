import { resolve } from 'node:path';
import type { OwnQueue } from '../../plugins/contracts/index.ts';
import type { Requirements } from '../../worker/worker.ts';
import type { IdleQueueOptions } from './options.ts';

/** A shape as the operator wrote it: its slot ad is a file still. */
export interface WrittenShape {
  /** `QUEUE/NAME`; `QUEUE` alone where the queue has one shape. */
  readonly key: string;
  readonly queue: string;
  /** For `POOL_SHAPE`. */
  readonly name: string;
  /** Absolute. */
  readonly slotAd: string;
  /** Undefined: the `Cpus` of the slot ad. */
  readonly cost: number | undefined;
  /** Infinity: no bound. */
  readonly most: number;
  readonly requirements: Partial<Requirements>;
  readonly values: Readonly<Record<string, string>>;
  /** Seconds; 0: no limit. */
  readonly maxWalltime: number;
}

type Queue = Pick<OwnQueue<IdleQueueOptions>, 'name' | 'options' | 'requirements' | 'configDir'>;

/** The shapes of a queue, in the order of its file. None where it names no slot ad: `check-config` says so. */
export function shapesOf({ name: queue, options, requirements: own, configDir }: Queue): WrittenShape[] {
  const { shapes, slotAd, cost, most = Infinity } = options;
  const common = { queue, maxWalltime: own.maxWalltime };
  if (shapes === undefined) {
    if (slotAd === undefined) return [];
    const file = resolve(configDir, slotAd);
    return [{ ...common, key: queue, name: queue, slotAd: file, cost, most, requirements: {}, values: {} }];
  }
  return shapes.map((shape) => {
    const { nCore, minRamCount, maxDiskCount, maxWalltime, values = {} } = shape;
    const requirements = {
      ...(nCore !== undefined && { nCore }),
      ...(minRamCount !== undefined && { minRamCount }),
      ...(maxDiskCount !== undefined && { maxDiskCount }),
      ...(maxWalltime !== undefined && { maxWalltime }),
    };
    return {
      key: `${queue}/${shape.name}`,
      queue,
      name: shape.name,
      slotAd: resolve(configDir, shape.slotAd),
      cost: shape.cost,
      most: shape.most ?? Infinity,
      requirements,
      values,
      maxWalltime: maxWalltime ?? own.maxWalltime,
    };
  });
}
