import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { checkedFlags, condorVariables, flagWarnings } from '../daemon/interlink/condor-flags.ts';
import { readSidecarConfig, type SidecarConfig } from '../daemon/interlink/sidecar-config.ts';
import { sidecarFiles, type SidecarFlags } from '../daemon/interlink/daemon-files.ts';
import { type FileLock, lockFile } from '../store/sqlite/file-lock.ts';
import { ensureDirectory, hasCode } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { requireFree } from './interlink-place.ts';
import { portArgument, run } from './run.ts';

interface InterlinkFlags extends SidecarFlags {
  readonly sidecarConfig?: string;
}

const usualConfig = 'SidecarConfig.yaml';

/** The sidecar alone: a daemon with one queue, whose files it writes itself. */
export function addInterlink(command: Command, environment: Environment): void {
  command
    .option('--schedd-host <host>', 'the schedd; without it, the one of this machine')
    .option('--schedd-name <name>', 'its name, where it is not that of its host')
    .option('--collector-host <host>', 'the collector of the pool')
    .option('--condor-config <file>', "HTCondor's configuration")
    .option('--auth-method <method>', 'how to prove who asks: SCITOKENS, SSL, IDTOKENS ...')
    .option('--proxy <file>', 'a SciToken for SCITOKENS, or an X.509 proxy for SSL')
    .option('--cadir <directory>', 'certificates of the authorities')
    .option('--certfile <file>', 'certificate for SSL')
    .option('--keyfile <file>', 'its key')
    .option('--debug <level>', "log all that HTCondor's commands say: D_FULLDEBUG, D_SECURITY ...")
    .option('--dummy-job', 'submit jobs that sleep for a minute, and run no container')
    .option('--port <port>', 'port to listen at (default: 8000)', portArgument)
    .option('--host <address>', 'address to listen at (default: 127.0.0.1)')
    .option('--socket <path>', 'unix socket to listen at, instead of a port')
    .option(
      '--others-may-reach-it',
      'allow an address that other machines reach, where everyone could run jobs',
    )
    .option(
      '--sidecar-config <file>',
      'keys of the original (default: SidecarConfig.yaml here, if it is there)',
    )
    .action(async (flags: InterlinkFlags) => {
      const { err } = environment;
      const { stateDir, config: given } = command.optsWithGlobals<GlobalOptions>();
      if (given !== undefined) throw new ThresherError('interlink-config', notHere);
      const checked = checkedFlags(flags);
      for (const warning of flagWarnings(checked)) err.write(`thresher: ${warning}\n`);
      const { config, lock } = await prepare(checked, environment);
      try {
        Object.assign(process.env, condorVariables(checked));
        await run({ config, ...(stateDir !== undefined && { stateDir }) }, {}, environment);
      } finally {
        lock.release();
      }
    });
}

const notHere =
  'thresher interlink writes its settings itself, so --config has no meaning: give it --sidecar-config, or run `thresher --config FILE run` with sources.interlink in your own settings';

/**
 * Writes the files of the daemon.
 * @throws ThresherError `interlink-config`, `interlink-files`, `interlink-listen`, `interlink-open`, `already-running`
 */
async function prepare(
  { sidecarConfig, ...flags }: InterlinkFlags,
  { err }: Environment,
): Promise<{ readonly config: string; readonly lock: FileLock }> {
  const file = sidecarConfig ?? (existsSync(usualConfig) ? usualConfig : undefined);
  const read = readSidecarConfig(file === undefined ? '' : textOf(file), file ?? usualConfig);
  for (const warning of read.warnings) err.write(`thresher: ${warning}\n`);
  const dataRoot = resolve(read.dataRoot);
  const directory = join(dataRoot, 'thresher');
  const absolute = flags.socket === undefined ? flags : { ...flags, socket: resolve(flags.socket) };
  const { settings, queues, template } = sidecarFiles(absolute, fromHere(read), dataRoot);
  const lock = await lockedDirectory(directory, dataRoot);
  try {
    await requireFree(settings.sources.interlink);
    const write = (name: string, text: string) => {
      writeFileSync(join(directory, name), text, { mode: 0o600 });
    };
    write('thresher.yaml', stringify(settings));
    write('queues.json', `${JSON.stringify(queues, null, 2)}\n`);
    write('job.yaml', stringify(template));
    return { config: join(directory, 'thresher.yaml'), lock };
  } catch (error) {
    lock.release();
    throw error instanceof ThresherError ? error : unwritable(directory, error);
  }
}

/** @throws ThresherError `interlink-files`, `already-running` */
async function lockedDirectory(directory: string, dataRoot: string): Promise<FileLock> {
  let lock: FileLock | undefined;
  try {
    const isNew = !existsSync(dataRoot);
    await ensureDirectory(join(directory, 'logs'));
    for (const path of isNew ? [dataRoot, directory] : [directory]) chmodSync(path, 0o700);
    lock = lockFile(join(directory, 'sidecar.lock'), () => undefined);
  } catch (error) {
    throw unwritable(directory, error);
  }
  if (lock === undefined) throw new ThresherError('already-running', another(dataRoot), { dataRoot });
  return lock;
}

function unwritable(directory: string, error: unknown): ThresherError {
  return new ThresherError(
    'interlink-files',
    `${directory} cannot be written: ${messageOf(error)}; DataRootFolder must belong to the user of thresher`,
    { directory },
  );
}

const another = (dataRoot: string) =>
  `another thresher interlink works on ${dataRoot}: end it first, or give this one another DataRootFolder, by --sidecar-config`;

/** Paths count from the directory of the start, as in the original. The settings are elsewhere. */
function fromHere({ options, ...others }: SidecarConfig): SidecarConfig {
  const { socket, capacityScript, reportKeyFile } = options;
  const here = process.cwd();
  const quoted = `'${here.replaceAll("'", `'\\''`)}'`;
  return {
    ...others,
    options: {
      ...options,
      ...(typeof socket === 'string' && { socket: resolve(here, socket) }),
      ...(typeof reportKeyFile === 'string' && { reportKeyFile: resolve(here, reportKeyFile) }),
      ...(typeof capacityScript === 'string' && { capacityScript: `cd ${quoted} && { ${capacityScript}\n}` }),
    },
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = hasCode(error, 'ENOENT') ? 'it is not there' : messageOf(error);
    throw new ThresherError('interlink-config', `${file} cannot be read: ${why}`, { file });
  }
}
