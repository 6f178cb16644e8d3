import { check } from '../../util/schema.ts';
import { noRequirements, type Requirements } from '../../worker/worker.ts';
import { IdleQueueOptions } from './options.ts';
import { shapesOf } from './shapes.ts';

/** What a worker of a shape needs beside what all workers of its queue get. */
export interface ShapeRequest {
  readonly requirements: Partial<Requirements>;
  readonly env: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, string>>;
}

/**
 * A worker of a shape as an operator asks for it, the same as this source would: the first of its kind, from which the slot ad is learnt.
 * @param written the options in the `demand` of the queue, checked before
 * @returns the names of its shapes where it has none of this name
 */
export function shapeRequest(
  queue: string,
  written: unknown,
  name: string,
): ShapeRequest | { readonly names: readonly string[] } {
  const checked = check(IdleQueueOptions, written);
  const options = checked.ok ? checked.value : { nonePending: false };
  // Neither where the slot ad is nor what the queue needs is of matter here.
  const shapes = shapesOf({ name: queue, options, configDir: '/', requirements: noRequirements });
  const shape = shapes.find((one) => one.name === name);
  if (shape === undefined) return { names: shapes.map((one) => one.name) };
  return { requirements: shape.requirements, env: { POOL_SHAPE: shape.name }, values: shape.values };
}
