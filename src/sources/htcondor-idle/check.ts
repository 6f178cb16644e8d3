import { resolve } from 'node:path';
import { constants } from 'node:fs';
import type { DefinitionProblem } from '../../plugins/contracts/definition-problem.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import { messageOf } from '../../worker/errors.ts';
import { machineOf } from './machine.ts';
import type { IdleOptions, IdleQueueOptions } from './options.ts';

interface Place {
  readonly configDir: string;
  readonly files: OperatorFiles;
}

/** Mistakes in the options of the settings that their schema does not find. */
export async function checkSettings(
  { signingKeyFile, condorConfig, tokenDirectory, joinTimeout, interval }: IdleOptions,
  { configDir, files }: Place,
): Promise<DefinitionProblem[]> {
  const problems: DefinitionProblem[] = [];
  if (joinTimeout < interval)
    problems.push({
      pointer: '/joinTimeout',
      code: 'wrong-type',
      message: `joinTimeout is ${joinTimeout} s, less than the interval of ${interval} s: each worker would count as lost before the first look that can see it; set it to several intervals`,
    });
  const paths = { signingKeyFile, condorConfig, tokenDirectory };
  for (const [name, written] of Object.entries(paths)) {
    if (written === undefined) continue;
    const path = resolve(configDir, written);
    const isDirectory = name === 'tokenDirectory';
    const mode = isDirectory ? constants.R_OK | constants.X_OK : constants.R_OK;
    try {
      const found = await files.stat(path);
      if (found !== undefined && found.isDirectory() !== isDirectory) {
        const [is, must] = isDirectory ? ['no directory', 'a directory'] : ['a directory', 'a file'];
        const message = `${name} leads to ${path}, which is ${is}; it must be ${must}`;
        problems.push({ pointer: `/${name}`, code: 'wrong-type', message });
        continue;
      }
      await files.access(path, mode);
    } catch (error) {
      const why = messageOf(error).replace(/, \w+( '.*')?$/s, '');
      const message = `${name} leads to ${path}, which the user of the daemon cannot read: ${why}`;
      problems.push({ pointer: `/${name}`, code: 'file-unreadable', message });
    }
  }
  return problems;
}

/** Mistakes in the options of a queue that their schema does not find. */
export async function checkQueue(options: IdleQueueOptions, place: Place): Promise<DefinitionProblem[]> {
  const { shapes, slotAd, cost } = options;
  if (shapes === undefined) {
    if (slotAd !== undefined) return checkSlotAd(slotAd, '/slotAd', place);
    const message =
      'neither slotAd nor shapes is set: name the slot ad of a worker, which `thresher pool learn` writes';
    return [{ pointer: '', code: 'htcondor-idle-no-shape', message }];
  }
  const both = Object.entries({ slotAd, cost }).flatMap(([name, value]): DefinitionProblem[] =>
    value === undefined
      ? []
      : [
          {
            pointer: `/${name}`,
            code: 'wrong-type',
            message: `${name} stands beside shapes: each shape has its own; remove it here, or remove shapes`,
          },
        ],
  );
  const names = shapes.map(({ name }) => name);
  const twice = names.flatMap((name, index): DefinitionProblem[] => {
    const first = names.indexOf(name);
    const message = `the shapes ${first + 1} and ${index + 1} are both called "${name}": give each its own name`;
    return first === index ? [] : [{ pointer: `/shapes/${index}/name`, code: 'wrong-type', message }];
  });
  const ads = await Promise.all(
    shapes.map((shape, index) => checkSlotAd(shape.slotAd, `/shapes/${index}/slotAd`, place)),
  );
  return [...both, ...twice, ...ads.flat()];
}

async function checkSlotAd(
  written: string,
  pointer: string,
  { configDir, files }: Place,
): Promise<DefinitionProblem[]> {
  const file = resolve(configDir, written);
  const remedy = '`thresher pool learn` writes one from a real worker';
  // A queue needs a worker before its slot ad can be learned: until then the shape takes part in nothing, and the daemon says so.
  const problem = (code: DefinitionProblem['code'], why: string): DefinitionProblem[] => [
    { pointer, code, severity: 'warning', message: `${file}, the slot ad: ${why}; ${remedy}` },
  ];
  let text: string;
  try {
    text = (await files.read(file, 'options')).bytes.toString('utf8');
  } catch (error) {
    return problem('file-unreadable', whyUnreadable(error, 'options'));
  }
  const machine = machineOf(text);
  return typeof machine === 'string' ? problem('htcondor-idle-slot-ad', machine) : [];
}
