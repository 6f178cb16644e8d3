import type { SubmitCommands } from '../../../clients/htcondor/submit-commands.ts';

/** HTCondor counts the starts of a job's program: 0 while its files are on the way to a machine. */
const notStarted = '(NumJobStarts =?= undefined || NumJobStarts == 0)';

/** The submit commands with a requirement that keeps HTCondor from starting an evicted job again: a Pod never starts twice. */
export function startsOnce(commands: SubmitCommands): SubmitCommands {
  const own = Object.entries(commands).find(([key]) => key.toLowerCase() === 'requirements');
  if (own === undefined) return { ...commands, requirements: notStarted };
  return { ...commands, [own[0]]: `(${own[1]}) && ${notStarted}` };
}
