import { constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { PandaServer } from '../../plugins/contracts/index.ts';
import { type Problem, toPointer } from '../../util/located.ts';
import { readJsonFile } from '../../util/located-file.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf } from '../../worker/errors.ts';
import { filesOf, type HostLogins, type PandaFinding, pandaServerIn } from './panda-server.ts';
import type { LoadedSettings } from './settings.ts';

export interface PandaServerOfSettings {
  readonly server?: PandaServer;
  readonly problems: readonly Problem[];
}

/** The PanDA server that the settings name, with all that is wrong with it and with the files of its login. */
export async function readPandaServer(
  { file, values, placeOf }: Pick<LoadedSettings, 'file' | 'values' | 'placeOf'>,
  files: OperatorFiles,
): Promise<PandaServerOfSettings> {
  const directory = dirname(file);
  const { multihost_auth_config: written } = values.pandacon;
  const isNamed = written !== undefined && !written.includes('FIXME');
  const located = isNamed ? await readJsonFile(files, resolve(directory, written), 'options') : undefined;
  const hosts: HostLogins | undefined = located?.value === undefined ? undefined : { value: located.value };
  const { server, findings } = pandaServerIn(values, directory, hosts);
  const problems = [
    // Without this file the settings beside it count: the daemon goes on.
    ...(located?.problems ?? []).map((problem) => ({ ...problem, severity: 'warning' as const })),
    ...findings.map(({ key, host, severity, code, message }: PandaFinding): Problem => {
      if (host === undefined || located === undefined)
        return { ...placeOf(toPointer(['pandacon', key])), severity, code, message };
      const pointer = toPointer([host, key].filter((part) => part !== ''));
      return { file: located.file, pointer, line: located.lineOf(pointer), severity, code, message };
    }),
  ];
  if (server === undefined) return { problems };
  for (const [key, path] of Object.entries(filesOf(server))) {
    const why = await whyNot(String(path), files);
    if (why === undefined) continue;
    const message = `${key}: ${String(path)} ${why}`;
    problems.push({
      ...placeOf(toPointer(['pandacon', key])),
      severity: 'warning',
      code: 'file-unreadable',
      message,
    });
  }
  if (values.propagator.minMessageLevel === 'INFO')
    problems.push({
      ...placeOf(toPointer(['propagator', 'minMessageLevel'])),
      severity: 'notice',
      code: 'unread-setting',
      message: 'minMessageLevel: INFO counts as WARNING; thresher sends the PanDA server no lower messages',
    });
  return { server, problems };
}

/**
 * Why a file of the login is of no use now. A renewer may still write it, so that this keeps the link from nothing. A file that this
 * user may not look at counts as right: the daemon's user may be allowed to.
 */
async function whyNot(path: string, files: OperatorFiles): Promise<string | undefined> {
  try {
    await files.access(path, constants.R_OK);
  } catch (error) {
    if (hasCode(error, 'EACCES')) return undefined;
    if (hasCode(error, 'ENOENT')) return 'does not exist: the link to the PanDA server waits for it';
    return `cannot be looked at: ${messageOf(error)}`;
  }
  const stats = await files.stat(path).catch(() => undefined);
  return stats?.isDirectory() ? 'is a directory: name one file (PEM)' : undefined;
}
