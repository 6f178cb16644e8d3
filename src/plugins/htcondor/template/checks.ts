import type { HTCondorSubmitterConfig } from '../schema.ts';
import { asksForCric } from '../place/ce-list.ts';
import { gridTypeRefusal } from './grid-types.ts';
import { optionsLackedBy } from './placeholders.ts';
import type { Finding } from './sdf.ts';
import { type Command, contradicts, type Statement } from './statements.ts';

/** A command that a site's template may not have, or better has not. */
interface Rule {
  readonly key: RegExp;
  /** The rule counts only for these values. */
  readonly value?: RegExp;
  readonly code: 'template-wrong' | 'template-risky';
  readonly why: string;
}

/**
 * Commands that thresher refuses in a template, or warns of. The job's own `log` is free: the factory follows another.
 * Source: condor_submit's manual, HTCondor 25.
 */
export const rules: readonly Rule[] = [
  {
    key: /^queue$/i,
    code: 'template-wrong',
    why: 'thresher writes the queue statement, with one job for each worker: remove it',
  },
  {
    key: /^(dagman_log|\+?(my\.)?dagman(nodeslog|nodesmask|jobid))$/i,
    code: 'template-wrong',
    why: 'it is the log by which the factory follows its jobs: remove it, and use log for one of your own',
  },
  {
    key: /^(\+|my\.)thresher\w*$|^thresher/i,
    code: 'template-wrong',
    why: 'names that begin with "thresher" are for the factory: choose another',
  },
  {
    key: /^(max_materialize|max_idle)$/i,
    code: 'template-wrong',
    why: 'jobs would come into the queue later, and the factory would take them for lost: remove it',
  },
  {
    key: /^hold$/i,
    value: /^\s*(true|yes|1)\s*$/i,
    code: 'template-wrong',
    why: 'the job would wait for somebody to release it: remove it',
  },
  {
    key: /^(max_retries|retry_until|success_exit_code|on_exit_remove)$/i,
    code: 'template-risky',
    why: 'HTCondor may start the pilot of one worker several times: leave that to the factory',
  },
  {
    key: /^use_oauth_services$/i,
    code: 'template-risky',
    why: "condor_submit gets these tokens by the program of HTCondor's SEC_CREDENTIAL_STORER, which may wait for a person at a terminal: there is none, and what waits is ended with condor-timeout. As the user of the daemon run that program once by hand, or give the job the file of a token that a credential manager renews",
  },
  {
    key: /^(\+|my\.)(harvesterID|harvesterWorkerID)$/i,
    code: 'template-risky',
    why: 'the factory writes it itself: it may be removed',
  },
];

const universes = ['vanilla', 'container', 'docker', 'grid', 'parallel'];

/** Mistakes in a template that no parser sees. */
export function checkStatements(
  statements: readonly Statement[],
  config: Partial<HTCondorSubmitterConfig>,
  kind: 'sdf' | 'yaml',
): Finding[] {
  const commands = statements.filter((one): one is Command => one.kind === 'command');
  const last = (key: string) => commands.findLast((one) => one.key.toLowerCase() === key);
  // Between "if" and "endif" a command may count for no job.
  const certainly = statements.every(({ kind: one }) => one !== 'verbatim')
    ? ('template-wrong' as const)
    : ('template-risky' as const);
  const findings = commands.flatMap((command): Finding[] => [
    ...forbidden(command, kind),
    ...misplaced(command),
    ...(counts(command, commands) && namesFile(command) ? [] : valueless(command, config)),
  ]);
  const contradiction = contradicts(statements);
  if (contradiction !== undefined) {
    const { key, line } = contradiction;
    const message = `${key}: HTCondor refuses it beside should_transfer_files = NO, so it is left out: remove it`;
    findings.push({ line, code: 'template-risky', message });
  }
  const executable = last('executable');
  if (isEmpty(executable) && last('universe')?.text.trim() !== 'docker') {
    const what = executable === undefined ? 'there is no executable' : 'executable has no value';
    const message = `${what}; write executable = {executableFile}`;
    const fitting = kind === 'sdf' ? message : message.replace(' = {', ': ${');
    findings.push({ line: executable?.line ?? 1, code: 'template-wrong', message: fitting });
  }
  const resource = last('grid_resource');
  const refusal = resource === undefined || isEmpty(resource) ? undefined : gridTypeRefusal(resource, config);
  if (resource !== undefined && refusal !== undefined)
    findings.push({ line: resource.line, code: certainly, message: refusal });
  findings.push(...withoutFile(last));
  const universe = last('universe');
  if (universe !== undefined && universe.names.length === 0) {
    const name = universe.text.trim().toLowerCase();
    const image = last('container_image');
    if (!universes.includes(name)) {
      const message = `universe is ${name}; it must be one of ${universes.join(', ')}`;
      findings.push({ line: universe.line, code: 'template-wrong', message });
    } else if (name === 'grid' && isEmpty(resource)) {
      const message = 'universe grid needs grid_resource, such as: condor HOST HOST:9619';
      findings.push({ line: resource?.line ?? universe.line, code: 'template-wrong', message });
    } else if (
      name === 'container' &&
      isEmpty(last('docker_image')) &&
      isEmpty(image) &&
      (image !== undefined || !config.container_image)
    ) {
      const message = 'universe container needs container_image, here or in the options of the queue';
      findings.push({ line: image?.line ?? universe.line, code: 'template-wrong', message });
    } else if (name === 'docker' && isEmpty(last('docker_image'))) {
      const message = 'universe docker needs docker_image, such as: docker_image = almalinux:9';
      const line = last('docker_image')?.line ?? universe.line;
      findings.push({ line, code: 'template-wrong', message });
    }
  }
  return findings;
}

/** HTCondor takes a command without a value for none. */
function isEmpty(command: Command | undefined): boolean {
  return command === undefined || (command.names.length === 0 && command.text.trim() === '');
}

/** HTCondor looks for these files by the environment of `condor_submit`, where the template does not name them. */
function withoutFile(last: (key: string) => Command | undefined): Finding[] {
  const says = (key: string) => /^\s*(true|yes|t|y|1)\s*$/i.test(last(key)?.text ?? '');
  const findings: Finding[] = [];
  const add = (key: string, file: string, where: string) => {
    if (!says(key) || !isEmpty(last(file))) return;
    const message = `${key} without ${file}: condor_submit takes ${where}, and refuses every job where that is not there: name the file with ${file}`;
    findings.push({ line: last(key)?.line ?? 1, code: 'template-risky', message });
  };
  const ofProxy = 'the proxy of X509_USER_PROXY in the environment of the daemon, else /tmp/x509up_uUID';
  add('use_x509userproxy', 'x509userproxy', ofProxy);
  add('use_scitokens', 'scitokens_file', 'the file of BEARER_TOKEN_FILE in the environment of the daemon');
  return findings;
}

function forbidden({ key, text, line }: Command, kind: 'sdf' | 'yaml'): Finding[] {
  return (
    rules
      .filter((rule) => rule.key.test(key) && (rule.value === undefined || rule.value.test(text)))
      // Harvester's templates must have these two: nothing to be said of them there.
      .filter((rule) => kind === 'yaml' || !/harvester/i.test(rule.key.source))
      .map(({ code, why }) => ({ line, code, message: `${key}: ${why}` }))
  );
}

function misplaced({ names, line }: Command): Finding[] {
  if (!names.includes('customSubmitAttributes')) return [];
  const message = 'customSubmitAttributes stands for whole lines: give it a line of its own';
  return [{ line, code: 'template-wrong', message }];
}

function valueless({ names, line, key }: Command, config: Partial<HTCondorSubmitterConfig>): Finding[] {
  return [...new Set(names)].flatMap((name): Finding[] => {
    const missing = optionsLackedBy(name, config);
    if (missing.length === 0) return [];
    const message = `${name} in ${key} has no value and becomes "None", as in Harvester, since the queue has no ${missing.join(', ')}: set it, or remove the line`;
    return [{ line, code: 'template-risky', message }];
  });
}

/** A value without which no job of a template runs, and that its queue does not say. */
export interface LackedValue {
  /** The option of the queue that says it. */
  readonly option: string;
  readonly line: number;
  readonly code: 'file-not-said' | 'ce-list-missing';
  /** Behind the name of the template. */
  readonly message: string;
  /** False where an `if` of the template may leave the command out. */
  readonly certain: boolean;
}

/** Files that a template names by options which its queue lacks, and a computing element where it has none. */
export function lackedValues(
  statements: readonly Statement[],
  config: Partial<HTCondorSubmitterConfig>,
): LackedValue[] {
  const commands = statements.filter((one): one is Command => one.kind === 'command');
  const certain = statements.every(({ kind }) => kind !== 'verbatim');
  const last = (key: RegExp) => commands.findLast((one) => key.test(one.key))?.text.trim() ?? '';
  const ifNeeded = /^if_needed$/i.test(last(/^should_?transfer_?files$/i));
  const ofFiles = commands
    .filter((command) => namesFile(command) && counts(command, commands))
    .flatMap(({ key, line, names }) =>
      [...new Set(names)].flatMap((name) =>
        optionsLackedBy(name, config).map((option): LackedValue => {
          // Harvester takes this one from its environment, too.
          const environment =
            option === 'x509UserProxy' ? ' (Harvester takes X509_USER_PROXY of its environment)' : '';
          const message = `${key} names ${name}, and the queue has no ${option}, so that HTCondor would look for a file "None" and refuse or hold every job: set ${option}${environment}, or remove the line`;
          return {
            option,
            line,
            code: 'file-not-said',
            message,
            certain: certain && !(ifNeeded && isInput.test(key)),
          };
        }),
      ),
    );
  return [
    ...ofFiles,
    ...commands.flatMap((one) => (counts(one, commands) ? lackedCe(one, config, certain) : [])),
  ];
}

/**
 * Commands that name files or the image of the job. With "None" for a value `condor_submit` refuses the submission (the program, the proxy,
 * files that are spooled, an image), or HTCondor holds each job. Source: condor_submit 23.9 itself, by `-dry-run`, and `submit_utils.cpp`.
 */
const namesFiles =
  /^(executable|x509userproxy|scitokens_file|transfer_?input_?files|input|stdin|(container|docker)_image)$/i;

/** Files that a job with a file system of its own schedd does without. */
const isInput = /^(transfer_?input_?files|input|stdin)$/i;

function namesFile({ key }: Command): boolean {
  return namesFiles.test(key);
}

/** The last of several commands of one name counts. */
function counts(command: Command, commands: readonly Command[]): boolean {
  const name = command.key.toLowerCase();
  return commands.findLast(({ key }) => key.toLowerCase() === name) === command;
}

/** A `grid_resource` of which nothing but its type is left. */
function lackedCe(
  { key, line, names, text }: Command,
  config: Partial<HTCondorSubmitterConfig>,
  certain: boolean,
): LackedValue[] {
  const { ceList = [], ceEndpoint, ceHostname } = config;
  // CEs that CRIC is to name are asked for elsewhere.
  if (!/^grid_resource$/i.test(key) || ceList.length > 0 || asksForCric(config)) return [];
  const empty = [
    ...(ceEndpoint === undefined ? ['ceEndpoint'] : []),
    ...(ceEndpoint === undefined && ceHostname === undefined ? ['ceHostname'] : []),
  ];
  const lacking = names.filter((name) => empty.includes(name));
  const isAlone = names.every((name) => empty.includes(name) || name === 'ceARCGridType');
  if (lacking.length === 0 || !isAlone || text.trim().split(/\s+/).length > 1) return [];
  const message = `grid_resource names no CE, since the queue has no ${[...new Set(lacking)].join(' and no ')}: set ceEndpoint, or list them in ceList`;
  return [{ option: 'ceList', line, code: 'ce-list-missing', message, certain }];
}
