import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pMap from 'p-map';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import { beginningFromOutside } from '../../../util/beginning.ts';
import { toReason } from '../../../worker/errors.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import { logSubdirOf } from '../template/placeholders.ts';

export interface Rehearsed {
  /** The template. */
  readonly file: string;
  /** The submit text that it makes of a worker. */
  readonly description: string;
  readonly directory: string;
  /** Variables of the daemon that the template names. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Directories that a submission would make. A rehearsal has empty ones of its own, which are gone with it. */
export interface Stage {
  readonly accessPoint: string;
  readonly logDir: string;
}

/** Asks each schedd whether it lets us submit, and `condor_submit` about each text. */
export async function rehearse(
  schedds: readonly HTCondorSchedd[],
  worker: WorkerToStart,
  textsAt: (schedd: HTCondorSchedd, stage: Stage) => Promise<readonly Rehearsed[]>,
  { signal, now }: { readonly signal: AbortSignal; readonly now: number },
): Promise<DefinitionProblem[]> {
  const said = await pMap(schedds, (schedd) => askSchedd(schedd, signal));
  // condor_submit looks for the schedd first.
  const schedd = schedds.find((_, index) => said[index]?.length === 0);
  if (schedd === undefined) return said.flat();
  const root = await mkdtemp(join(tmpdir(), 'thresher-rehearsal-'));
  try {
    const stage = { accessPoint: join(root, 'access-point'), logDir: join(root, 'logs') };
    await mkdir(stage.accessPoint);
    await mkdir(join(stage.logDir, logSubdirOf(now)), { recursive: true });
    const dry = await pMap(await textsAt(schedd, stage), (text) => drySubmit(schedd, text, signal));
    // An operator knows the worker's own directory, and not that of the rehearsal.
    const own = ({ message, ...rest }: DefinitionProblem): DefinitionProblem => ({
      ...rest,
      message: message.replaceAll(stage.accessPoint, () => worker.accessPoint ?? ''),
    });
    return [...said, ...dry].flat().map(own);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** Whether a schedd is there and lets us submit. */
async function askSchedd(schedd: HTCondorSchedd, signal: AbortSignal): Promise<DefinitionProblem[]> {
  try {
    await schedd.client.ping(signal);
    return [];
  } catch (error) {
    const { code, message } = toReason(error);
    const refused = isHTCondorError(error, 'condor-auth', 'condor-schedd-unknown');
    return [
      {
        pointer: '/condorSchedd',
        message: `${message} (${code})`,
        code: refused ? 'server-refused' : 'server-unknown',
      },
    ];
  }
}

/** Asks `condor_submit` itself about the text that a worker would be submitted with. */
async function drySubmit(
  schedd: HTCondorSchedd,
  { file, description, directory, environment }: Rehearsed,
  signal: AbortSignal,
): Promise<DefinitionProblem[]> {
  const place = { pointer: '', file, line: 0 };
  try {
    const warnings = await schedd.client.dryRun(description, { directory, environment }, signal);
    // condor_submit warns of unused lines, too. Those of the template count, thresher's queue variables do not.
    const told = warnings.filter((warning) => !warning.includes("Queue variable 'thresher"));
    return told.map((warning) => ({
      ...place,
      severity: 'warning',
      code: 'server-warned',
      message: `condor_submit warns: ${warning}`,
    }));
  } catch (error) {
    const { code, message } = toReason(error);
    const line = isHTCondorError(error) ? error.line : undefined;
    const text = line === undefined ? undefined : description.split('\n')[line - 1]?.trim();
    const shown = text === undefined ? '' : `; that line is: ${beginningFromOutside(text, 200)}`;
    return [
      {
        ...place,
        message: `${message}${shown} (${code})`,
        code: isHTCondorError(error, 'condor-submit-wrong') ? 'server-refused' : 'server-unknown',
      },
    ];
  }
}
