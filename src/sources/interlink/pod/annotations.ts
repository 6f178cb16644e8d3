import { isIP } from 'node:net';
import { comparedName } from '../../../clients/htcondor/submit-names.ts';
import { readSubmitCommands, type SubmitCommands } from '../../../clients/htcondor/submit-commands.ts';
import type { Pod } from '../../../clients/interlink/wire.ts';
import { type Bind, containerOptions } from './options.ts';
import { type Findings, problem, shown } from './problem.ts';

export interface PodAnnotations {
  readonly submit: SubmitCommands;
  /** Options of apptainer, for each container. */
  readonly options: readonly string[];
  readonly binds: readonly Bind[];
  /** Stands before names of images that are neither a path nor have a scheme. */
  readonly imageRoot: string;
  /** Shell text of the user, which runs on the machine before the containers. */
  readonly preExec: string;
  /** Address that interLink's tunnel gave the Pod. */
  readonly podIp?: string;
}

const slurm = 'slurm-job.vk.io';

export function annotationsOf(
  { metadata }: Pick<Pod, 'metadata'>,
  rules: {
    readonly hostPaths: readonly string[];
    readonly preExec: boolean;
    readonly submitCommands: readonly string[];
  },
  findings: Findings,
): PodAnnotations {
  const annotations = metadata.annotations ?? {};
  const at = (name: string) => `/pod/metadata/annotations/${name.replaceAll('/', '~1')}`;
  const given = ['singularity-options', 'singularity-mounts'].map((key) => {
    const name = `${slurm}/${key}`;
    return containerOptions(annotations[name] ?? '', at(name), rules.hostPaths, findings);
  });
  const commands = ['interlink.eu/wstunnel-client-commands', `${slurm}/pre-exec`].filter(
    (name) => (annotations[name] ?? '').trim() !== '',
  );
  const [first] = commands;
  if (first !== undefined && !rules.preExec)
    findings.problems.push(
      problem(
        at(first),
        `${first} would run commands on the machine itself, which the operator does not allow`,
      ),
    );
  for (const key of ['singularity-commands', 'mpi-flags', 'flavor'])
    if ((annotations[`${slurm}/${key}`] ?? '') !== '')
      findings.warnings.push(`the annotation ${slurm}/${key} has no like on HTCondor: it is left out`);
  const podIp = annotations['interlink.eu/pod-ip'] ?? '';
  if (podIp !== '' && isIP(podIp) === 0)
    findings.warnings.push('the annotation interlink.eu/pod-ip is no address: it is left out');
  return {
    ...(isIP(podIp) === 0 ? {} : { podIp }),
    submit: flagsOf(
      annotations[`${slurm}/flags`] ?? '',
      at(`${slurm}/flags`),
      rules.submitCommands,
      findings,
    ),
    options: given.flatMap(({ options }) => options),
    binds: given.flatMap(({ binds }) => binds),
    imageRoot: annotations[`${slurm}/image-root`] ?? 'docker://',
    preExec: commands.map((name) => `${annotations[name] ?? ''}\n`).join(''),
  };
}

/** Characters of all flags of a Pod, as of `htcopts` of a HTCJob, and how many of their mistakes are told. */
const longestFlags = 65_536;
const mostProblems = 20;

/** What ends at the end of a line, or at a ";" outside of a text in quotes. A quote without an end is an ordinary character. */
function flagsIn(text: string): readonly string[] {
  const flags: string[] = [];
  for (const line of text.split('\n')) {
    let [from, quotes] = [0, true];
    for (let at = 0; at < line.length; at++) {
      if (line[at] === ';') {
        flags.push(line.slice(from, at));
        from = at + 1;
      } else if (line[at] === '"' && quotes) {
        const end = endOfQuote(line, at);
        // Where none ends the first one, none ends a later one.
        quotes = end !== undefined;
        at = end ?? at;
      }
    }
    flags.push(line.slice(from));
  }
  return flags.map((one) => one.trim()).filter((one) => one !== '');
}

function endOfQuote(line: string, start: number): number | undefined {
  for (let at = start + 1; at < line.length; at++)
    if (line[at] === '\\') at++;
    else if (line[at] === '"') return at;
  return undefined;
}

/** Lines of a submit description, also with ";" between them. sbatch's options begin with "-", and HTCondor has none of them. */
function flagsOf(
  text: string,
  at: string,
  allowed: readonly string[],
  { problems, warnings }: Findings,
): SubmitCommands {
  if (text.length > longestFlags) {
    problems.push(problem(at, `the flags have ${text.length} characters; they may have ${longestFlags}`));
    return {};
  }
  const lines = flagsIn(text);
  const foreign = lines.filter((line) => line.startsWith('-'));
  if (foreign.length > 0)
    warnings.push(
      `the flags ${foreign.join(' ').slice(0, 200)} are options of sbatch: HTCondor does not have them`,
    );
  const { commands, problems: wrong } = readSubmitCommands(
    lines.filter((line) => !line.startsWith('-')).join('\n'),
    allowed,
  );
  for (const { message } of wrong.slice(0, mostProblems)) problems.push(problem(at, message));
  const refused = Object.keys(commands).filter((key) => !isAllowed(key, allowed));
  if (refused.length > 0)
    problems.push(
      problem(
        at,
        `the operator does not let Pods give the command ${shown(refused.join(', '))}; they may give ${allowed.join(', ') || 'none'}`,
      ),
    );
  return commands;
}

/** Names of commands without regard to case; "*" at the end of one stands for any end. */
function isAllowed(key: string, allowed: readonly string[]): boolean {
  const name = comparedName(key);
  return allowed.some((one) => {
    const written = comparedName(one);
    return written.endsWith('*') ? name.startsWith(written.slice(0, -1)) : name === written;
  });
}
