import type { Command } from 'commander';
import { type DemandExplained, unservableJobs } from '../daemon/pool/unservable.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { type Environment, ExitStatus, type GlobalOptions } from './environment.ts';
import { settingsFile } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { MistakesInFiles } from './problems.ts';

/** ms: a look at a pool of a hundred thousand jobs takes some seconds. */
const timeLimit = 300_000;

export function addUnservable(command: Command, environment: Environment): void {
  const { clock, out, err } = environment;
  const unservable = command
    .command('unservable')
    .description('show waiting jobs that no worker could ever take, and which of their conditions fails');
  unservable.addOption(outputOption()).action(async ({ output }: { output: OutputFormat }) => {
    const { config, stateDir } = unservable.optsWithGlobals<GlobalOptions>();
    const files = new OperatorFiles({ clock });
    const signal = AbortSignal.timeout(timeLimit);
    const answer = await unservableJobs(settingsFile({ config }), stateDir, { clock, files }, signal);
    if (!answer.ok) throw new MistakesInFiles(answer.problems);
    const { explained } = answer;
    if (output === 'json') printJson(out, explained.unservable);
    else print(explained, environment);
    for (const sentence of explained.unknown) err.write(`thresher: ${sentence}\n`);
    // A schedd without an answer may have such jobs.
    if (explained.unknown.length > 0) throw new ExitStatus(1);
  });
}

function print({ idle, fresh, unservable, shapes, unknown }: DemandExplained, { out }: Environment): void {
  if (unservable.length > 0) {
    printTable(
      out,
      [
        { title: 'OWNER', value: ({ owner }) => owner },
        { title: 'JOBS', value: ({ jobs }) => jobs },
        { title: 'SCHEDD', value: ({ schedd }) => schedd },
        { title: 'FAILS', value: ({ conditions }) => conditions.join(' && ') },
        { title: 'WHY', value: ({ sentence }) => sentence },
      ],
      unservable,
    );
    out.write('\n');
  }
  const count = unservable.reduce((sum, { jobs }) => sum + jobs, 0);
  const later = fresh === 0 ? '' : `; ${fresh} more came since the last negotiation, and are judged later`;
  const whole = unknown.length === 0 ? '' : '; not all of the pool answered';
  out.write(
    `${count} of ${idle} waiting jobs fit none of ${shapes.length === 1 ? 'the shape' : 'the shapes'} ${shapes.join(', ')}, and no slot of the pool${later}${whole}\n`,
  );
}
