import type { QueueConfig, QueueVerdict } from '../config/queues/queues.ts';
import { isError } from '../config/settings/settings.ts';
import { fromPointer, type Problem } from '../util/located.ts';
import type { Requirements } from '../worker/worker.ts';
import { MistakesInFiles } from './problems.ts';

/** Options that name a file which goes with a worker, and which its Job or submit text does not need to be shown. */
const filesOfWorker: readonly string[] = ['executableFile', 'x509UserProxy', 'x509UserProxyAnalysis'];

/**
 * The configuration that a worker of a queue is shown by. A queue that lacks only sizes which the command line gives, or files of
 * a worker on this machine, is shown: `notes` name these files.
 * @throws MistakesInFiles for any other error
 */
export function renderable(
  { config, draft, problems }: Pick<QueueVerdict, 'config' | 'draft' | 'problems'>,
  queueFile: string,
  given: Partial<Requirements>,
): { readonly config: QueueConfig; readonly notes: readonly string[] } {
  const errors = problems.filter(isError);
  const lacking = errors.filter((problem) => !isGiven(problem, given));
  const shown = config ?? draft;
  if (shown === undefined || !lacking.every((problem) => isFileOfWorker(problem, queueFile)))
    throw new MistakesInFiles(errors);
  return { config: shown, notes: lacking.map(({ message }) => `missing: ${message}`) };
}

function isGiven({ code, pointer }: Problem, given: Partial<Requirements>): boolean {
  const size = given[optionAt(pointer) as keyof Requirements];
  return code === 'size-not-said' && typeof size === 'number' && size > 0;
}

/** A template names its executable itself: then the problem is in its file. A template that is missing leaves nothing to show. */
function isFileOfWorker({ code, file, pointer }: Problem, queueFile: string): boolean {
  // The text is shown with "None" in the place of the file.
  if (code === 'file-not-said') return true;
  if (code !== 'file-unreadable') return false;
  return file === queueFile ? filesOfWorker.includes(optionAt(pointer)) : pointer === '';
}

function optionAt(pointer: string): string {
  return fromPointer(pointer).at(-1) ?? '';
}
