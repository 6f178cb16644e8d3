import type { HTCondorSubmitterConfig } from '../schema.ts';
import { goneGridType, gridTypeOf } from './grid-types.ts';
import { optionsBehind } from './placeholders.ts';
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
  const findings = commands.flatMap((command): Finding[] => [
    ...forbidden(command, kind),
    ...misplaced(command),
    ...valueless(command, config),
  ]);
  const contradiction = contradicts(statements);
  if (contradiction !== undefined) {
    const { key, line } = contradiction;
    const message = `${key}: HTCondor refuses it beside should_transfer_files = NO, so it is left out: remove it`;
    findings.push({ line, code: 'template-risky', message });
  }
  const last = (key: string) => commands.findLast((one) => one.key.toLowerCase() === key);
  if (last('executable') === undefined && last('universe')?.text.trim() !== 'docker') {
    const message = 'there is no executable; write executable = {executableFile}';
    const fitting = kind === 'sdf' ? message : message.replace(' = {', ': ${');
    findings.push({ line: 1, code: 'template-wrong', message: fitting });
  }
  findings.push(...gridType(last('grid_resource'), config));
  const universe = last('universe');
  if (universe !== undefined && universe.names.length === 0) {
    const name = universe.text.trim().toLowerCase();
    if (!universes.includes(name)) {
      const message = `universe is ${name}; it must be one of ${universes.join(', ')}`;
      findings.push({ line: universe.line, code: 'template-wrong', message });
    } else if (name === 'grid' && last('grid_resource') === undefined) {
      const message = 'universe grid needs grid_resource, such as: condor HOST HOST:9619';
      findings.push({ line: universe.line, code: 'template-wrong', message });
    } else if (name === 'container' && last('container_image') === undefined && !config.container_image) {
      const message = 'universe container needs container_image, here or in the options of the queue';
      findings.push({ line: universe.line, code: 'template-wrong', message });
    }
  }
  return findings;
}

function gridType(resource: Command | undefined, config: Partial<HTCondorSubmitterConfig>): Finding[] {
  const type = resource === undefined ? undefined : gridTypeOf(resource, config);
  const message = type === undefined ? undefined : goneGridType(type);
  if (resource === undefined || message === undefined) return [];
  // A schedd of that age may still be in use.
  return [{ line: resource.line, code: 'template-risky', message }];
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
    const options = Object.hasOwn(optionsBehind, name) ? (optionsBehind[name] ?? []) : [];
    const missing = options.filter((option) => config[option] === undefined);
    if (missing.length === 0) return [];
    const message = `${name} in ${key} has no value and becomes "None", as in Harvester, since the queue has no ${missing.join(', ')}: set it, or remove the line`;
    return [{ line, code: 'template-risky', message }];
  });
}
