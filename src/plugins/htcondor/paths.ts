import { constants } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { ensureDirectory, hasCode } from '../../util/files.ts';
import { hostnameFor, withHostname } from '../../util/hostname.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { CheckContext } from '../contracts/definition.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import type { HTCondorSubmitterConfig } from './schema.ts';
import { type NeededFile, neededFiles } from './template/executable.ts';
import type { CondorTemplate } from './template/template.ts';

const paths: ReadonlySet<string> = new Set([
  ...['executableFile', 'x509UserProxy', 'x509UserProxyAnalysis', 'tokenDir', 'tokenDirAnalysis'],
  ...['pandaTokenDir', 'pandaTokenKeyPath', 'logDir', 'eventLog'],
]);

/** The same options with all paths absolute: relative ones count from the queue file. Empty ones are left out. */
export function absolutePaths(config: HTCondorSubmitterConfig, configDir: string): HTCondorSubmitterConfig {
  const options = Object.entries(config).flatMap(([key, value]) => {
    if (!paths.has(key) || typeof value !== 'string') return [[key, value] as const];
    return value === '' ? [] : [[key, resolve(configDir, withHostname(value, hostnameFor(config)))] as const];
  });
  return Object.fromEntries<unknown>(options) as HTCondorSubmitterConfig;
}

/** The proxy without which pilots are of no use. */
export function credentialOf({
  useAnalysisCredentials,
  x509UserProxy,
  x509UserProxyAnalysis,
}: HTCondorSubmitterConfig): string | undefined {
  return (useAnalysisCredentials ? x509UserProxyAnalysis : undefined) ?? x509UserProxy;
}

interface NamedPath {
  readonly key:
    | 'x509UserProxy'
    | 'x509UserProxyAnalysis'
    | 'tokenDir'
    | 'tokenDirAnalysis'
    | 'pandaTokenDir'
    | 'eventLog';
  readonly kind: 'file' | 'directory';
}

/** The writer of a proxy or token may start after the daemon; until then the queue's credentials are missing. */
const named: readonly NamedPath[] = [
  { key: 'x509UserProxy', kind: 'file' },
  { key: 'x509UserProxyAnalysis', kind: 'file' },
  { key: 'tokenDir', kind: 'directory' },
  { key: 'tokenDirAnalysis', kind: 'directory' },
  { key: 'pandaTokenDir', kind: 'directory' },
  { key: 'eventLog', kind: 'file' },
];

/** Files and directories that are not there, or are something else: said before pilots fail of it, far away. */
export async function checkPaths(
  config: HTCondorSubmitterConfig,
  { configDir, files }: Pick<CheckContext, 'configDir' | 'files'>,
): Promise<DefinitionProblem[]> {
  const absolute = absolutePaths(config, configDir);
  const problems = await checkLogDir(absolute, files);
  for (const path of named) problems.push(...(await checkNamed(absolute, path, files)));
  return problems;
}

async function checkNamed(
  absolute: HTCondorSubmitterConfig,
  { key, kind }: NamedPath,
  files: OperatorFiles,
): Promise<DefinitionProblem[]> {
  const path = absolute[key];
  if (path === undefined) return [];
  const found = await look(path, files);
  if (found === kind || found === 'unknown') return [];
  if (found === 'nothing') {
    const message = `the ${kind} ${path} of ${key} does not exist: write it, or name the right one`;
    return [{ pointer: `/${key}`, severity: 'warning', code: 'file-unreadable', message }];
  }
  const message = `${path} of ${key} ${isNo(found)}; it must be a ${kind}`;
  return [{ pointer: `/${key}`, code: 'wrong-type', message }];
}

/** It is made when it is first needed: by then something must be there to make it in. */
async function checkLogDir(
  { logDir }: HTCondorSubmitterConfig,
  files: OperatorFiles,
): Promise<DefinitionProblem[]> {
  const { there, found } = await nearest(logDir, files);
  if (found === 'file' || found === 'other') {
    const message = `${there} of logDir ${isNo(found)}; it must be a directory`;
    return [{ pointer: '/logDir', code: 'wrong-type', message }];
  }
  try {
    await files.access(there, constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    // The daemon may run as another user than this one.
    const message = `${logDir} of logDir cannot be written by this user (${messageOf(error)}): give the daemon's user the right to, or name another directory`;
    return [{ pointer: '/logDir', severity: 'warning', code: 'file-unreadable', message }];
  }
}

/** The path, or what is there of the way to it. */
async function nearest(path: string, files: OperatorFiles): Promise<{ there: string; found: Found }> {
  const found = await look(path, files);
  return found !== 'nothing' || dirname(path) === path
    ? { there: path, found }
    : nearest(dirname(path), files);
}

/** Files that one template needs. */
export interface NeededBy {
  readonly file: string;
  readonly needed: readonly NeededFile[];
}

/** Programs and other files without which HTCondor refuses or holds every job of these templates. */
export async function checkNeeded(
  needs: readonly NeededBy[],
  { executableFile }: HTCondorSubmitterConfig,
  files: OperatorFiles,
): Promise<DefinitionProblem[]> {
  const problems = new Map<string, DefinitionProblem>();
  for (const { file, needed: all } of needs) {
    for (const needed of all) {
      const path = needed.from === 'template' ? needed.path : executableFile;
      if (path === undefined) continue;
      const { from, line, certain } = needed;
      const place = from === 'template' ? { pointer: '', file, line } : { pointer: '/executableFile' };
      const wrong = await whyUnfit(path, needed, files);
      if (wrong === undefined) continue;
      const severity = certain ? 'error' : 'warning';
      problems.set(`${from === 'template' ? file : ''} ${path}`, { ...place, ...wrong, severity });
    }
  }
  return [...problems.values()];
}

async function whyUnfit(
  path: string,
  { from }: NeededFile,
  files: OperatorFiles,
): Promise<Pick<DefinitionProblem, 'code' | 'message'> | undefined> {
  const called = from === 'template' ? `the executable ${path}` : `the file ${path} of executableFile`;
  if (!isAbsolute(path)) {
    const message = `${called} has no absolute path, and HTCondor would look for it in the directory that condor_submit runs in, which is a new one for each hour below logDir: write the whole path`;
    return { code: 'template-wrong', message };
  }
  const found = await look(path, files);
  if (found === 'file' || found === 'unknown') return undefined;
  if (found === 'nothing')
    return {
      code: 'file-unreadable',
      message: `${called} does not exist: put it there, or name the right one`,
    };
  const message =
    from === 'template'
      ? `${called} ${isNo(found)}; it must be a file`
      : `${path} of executableFile ${isNo(found)}; it must be a file`;
  return { code: 'wrong-type', message };
}

/** Why every submission would fail now, though nothing was wrong when the daemon started. Paths are absolute. */
export async function missingNow(
  { executableFile, logDir }: HTCondorSubmitterConfig,
  templates: readonly CondorTemplate[],
  files: OperatorFiles,
): Promise<Reason[]> {
  const reasons: Reason[] = [];
  const add = (message: string) => reasons.push({ code: 'preflight', message });
  try {
    await files.run(logDir, 'the making of', () => ensureDirectory(logDir));
    await files.access(logDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof ThresherError) reasons.push(toReason(error));
    else add(`${logDir} of logDir cannot be written: ${messageOf(error)}`);
  }
  for (const { file, statements } of templates) {
    for (const { from, path: written, line, certain } of neededFiles(statements)) {
      const path = from === 'template' ? written : executableFile;
      if (path === undefined || !certain || !isAbsolute(path)) continue;
      if ((await look(path, files)) !== 'nothing') continue;
      add(
        from === 'template'
          ? `the executable ${path} of ${file}:${line} is not there`
          : `the file ${path} of executableFile is not there`,
      );
    }
  }
  return reasons;
}

/** `unknown`: this user may not look, and the daemon's user may be allowed to; or the file system hangs. */
type Found = 'file' | 'directory' | 'other' | 'nothing' | 'unknown';

async function look(path: string, files: OperatorFiles): Promise<Found> {
  try {
    const found = await files.run(path, 'a look at', () => stat(path));
    if (found.isFile()) return 'file';
    return found.isDirectory() ? 'directory' : 'other';
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR') ? 'nothing' : 'unknown';
  }
}

function isNo(found: 'file' | 'directory' | 'other'): string {
  return found === 'other' ? 'is a pipe or a device' : `is a ${found}`;
}
