import { idleSource, shapeRequest, type ShapeRequest } from '../../sources/htcondor-idle/explain.ts';
import type { Problem } from '../../util/located.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';
import { type IdleQueues, idleQueues } from './idle-queues.ts';

export type ShapeAnswer =
  | { readonly ok: true; readonly shape: ShapeRequest }
  /** Mistakes for which the settings or the queue file cannot be used. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * The shape of a queue by the queue file as it is now.
 * @throws ThresherError `request-wrong`
 */
export async function shapeNamed(
  { queue, name }: { readonly queue: string; readonly name: string },
  config: string,
  stateDir: string | undefined,
  files: OperatorFiles,
): Promise<ShapeAnswer> {
  const read = await idleQueues(config, stateDir, files);
  if (!read.ok) return read;
  const found = read.queues.find((one) => one.name === queue);
  if (found === undefined) throw new ThresherError('request-wrong', whyNoShapes(queue, read));
  const shape = shapeRequest(queue, found.options, name);
  if (!('names' in shape)) return { ok: true, shape };
  const names = shape.names.length === 0 ? 'it has none' : `it has ${shape.names.join(', ')}`;
  throw new ThresherError('request-wrong', `the queue ${queue} has no shape ${name}; ${names}`);
}

function whyNoShapes(queue: string, { file, notReady, all }: Extract<IdleQueues, { ok: true }>): string {
  if (!all.includes(queue)) return `${file} has no queue ${queue}`;
  if (notReady.includes(queue))
    return `the queue ${queue} is not ready: see \`thresher check-config ${queue}\``;
  return `the queue ${queue} of ${file} has no shapes: its demand is not ${idleSource}`;
}
