import { resolve } from 'node:path';
import type { Command } from 'commander';
import { keepTemplate, learn, type Teacher } from '../daemon/pool/learn.ts';
import type { PoolFlags } from '../daemon/pool/place.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { poolOf, withPool } from './pool-place.ts';
import { printExact } from './output.ts';

interface LearnFlags extends PoolFlags {
  readonly startd?: string;
  readonly out?: string;
}

export function addLearn(command: Command, environment: Environment): void {
  const { out, err } = environment;
  const learning = command
    .command('learn')
    .description('keep the slot of a worker that has joined as the template for workers of its kind')
    .argument('[queue]', 'queue of the worker; QUEUE/SHAPE where the queue has several shapes');
  withPool(learning)
    .option('--startd <name>', 'a startd by the name of its machine or slot, instead of a worker of a queue')
    .option('--out <file>', '`slotAd` of the queue: the file for the template (default: print it)')
    .action(async (queue: string | undefined, flags: LearnFlags) => {
      const teacher = teacherOf(queue, flags.startd);
      const { tools } = poolOf(flags, learning.optsWithGlobals<GlobalOptions>(), environment);
      const { summary, warnings, text } = await learn(tools, teacher, AbortSignal.timeout(120_000));
      for (const warning of warnings) err.write(`thresher: warning: ${warning}\n`);
      if (flags.out === undefined) {
        printExact(out, text);
        return;
      }
      const file = resolve(flags.out);
      await keepTemplate(file, text);
      out.write(`${file}: ${summary}\n`);
    });
}

/** @throws ThresherError `usage` */
function teacherOf(queue: string | undefined, startd: string | undefined): Teacher {
  if ((queue === undefined) === (startd === undefined))
    throw new ThresherError(
      'usage',
      'name the queue of a worker, or a startd by --startd NAME: one of the two',
    );
  for (const name of [queue, startd])
    if (name !== undefined && /[\0\n\r]/.test(name)) throw new ThresherError('usage', 'a name has one line');
  if (startd !== undefined) return { startd };
  const [name, shape] = splitShape(queue ?? '');
  return { queue: name, ...(shape !== undefined && { shape }) };
}

/** A queue's name may have a slash; a shape's cannot. */
function splitShape(text: string): readonly [string, string?] {
  const at = text.lastIndexOf('/');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
