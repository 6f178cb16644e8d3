import { accessSync, constants, statSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ensureDirectory, hasCode } from '../../util/files.ts';
import { hostnameFor, withHostname } from '../../util/hostname.ts';
import { messageOf } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import type { HTCondorSubmitterConfig } from './schema.ts';

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
    | 'executableFile'
    | 'x509UserProxy'
    | 'x509UserProxyAnalysis'
    | 'tokenDir'
    | 'tokenDirAnalysis'
    | 'pandaTokenDir'
    | 'eventLog';
  readonly kind: 'file' | 'directory';
  /** What writes a proxy or token may start after the daemon; until then the queue's credentials are missing. */
  readonly later: boolean;
}

const named: readonly NamedPath[] = [
  { key: 'executableFile', kind: 'file', later: false },
  { key: 'x509UserProxy', kind: 'file', later: true },
  { key: 'x509UserProxyAnalysis', kind: 'file', later: true },
  { key: 'tokenDir', kind: 'directory', later: true },
  { key: 'tokenDirAnalysis', kind: 'directory', later: true },
  { key: 'pandaTokenDir', kind: 'directory', later: true },
  { key: 'eventLog', kind: 'file', later: true },
];

/** Files and directories that are not there, or are something else: said before pilots fail of it, far away. */
export function checkPaths(config: HTCondorSubmitterConfig, configDir: string): DefinitionProblem[] {
  const absolute = absolutePaths(config, configDir);
  return [...checkLogDir(absolute), ...checkNamed(absolute)];
}

function checkNamed(absolute: HTCondorSubmitterConfig): DefinitionProblem[] {
  return named.flatMap(({ key, kind, later }): DefinitionProblem[] => {
    const path = absolute[key];
    const found = path === undefined ? kind : look(path);
    if (path === undefined || found === undefined || found === kind) return [];
    if (found === 'nothing') {
      const message = `the ${kind} ${path} of ${key} does not exist: ${later ? 'write it' : 'put it there'}, or name the right one`;
      const severity = later ? 'warning' : 'error';
      return [{ pointer: `/${key}`, severity, code: 'file-unreadable', message }];
    }
    const message = `${path} of ${key} is a ${found}; it must be a ${kind}`;
    return [{ pointer: `/${key}`, code: 'wrong-type', message }];
  });
}

/** It is made when it is first needed: by then something must be there to make it in. */
function checkLogDir({ logDir }: HTCondorSubmitterConfig): DefinitionProblem[] {
  const there = nearest(logDir);
  if (look(there) === 'file') {
    const message = `${there} of logDir is a file; it must be a directory`;
    return [{ pointer: '/logDir', code: 'wrong-type', message }];
  }
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    // The daemon's user may be another one than who asks.
    const message = `${logDir} of logDir cannot be written by this user (${messageOf(error)}): give the daemon's user the right to, or name another directory`;
    return [{ pointer: '/logDir', severity: 'warning', code: 'file-unreadable', message }];
  }
}

/** The path, or what is there of the way to it. */
function nearest(path: string): string {
  return look(path) !== 'nothing' || dirname(path) === path ? path : nearest(dirname(path));
}

/** What would make every submission fail now, though nothing was wrong when the daemon started. Paths are absolute. */
export async function missingNow({ executableFile, logDir }: HTCondorSubmitterConfig): Promise<Reason[]> {
  const reasons: Reason[] = [];
  const add = (message: string) => reasons.push({ code: 'preflight', message });
  await ensureDirectory(logDir)
    .then(() => access(logDir, constants.W_OK | constants.X_OK))
    .catch((error: unknown) => {
      add(`${logDir} of logDir cannot be written: ${messageOf(error)}`);
    });
  if (executableFile !== undefined)
    await stat(executableFile).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT', 'ENOTDIR'))
        add(`the file ${executableFile} of executableFile is not there`);
    });
  return reasons;
}

/** Undefined where this user may not look: the daemon's user may be allowed to. */
function look(path: string): 'file' | 'directory' | 'nothing' | undefined {
  try {
    return statSync(path).isDirectory() ? 'directory' : 'file';
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR') ? 'nothing' : undefined;
  }
}
