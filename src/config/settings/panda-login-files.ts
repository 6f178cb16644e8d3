import { constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { PandaServer } from '../../plugins/contracts/index.ts';
import { type Problem, toPointer } from '../../util/located.ts';
import { readJsonFile } from '../../util/located-file.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf } from '../../worker/errors.ts';
import { filesOf, type HostLogins, isToken, type PandaFinding, pandaServerIn } from './panda-server.ts';
import { harvesterIdOf } from './machine.ts';
import type { LoadedSettings } from './settings.ts';

export interface PandaServerOfSettings {
  readonly server?: PandaServer;
  readonly isMeant: boolean;
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
  const { server, isMeant, findings } = pandaServerIn(values, directory, hosts);
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
  if (server === undefined) return { isMeant, problems };
  /** By path, the first key that names it: a proxy is certificate and key. */
  const looked = new Map<string, string>();
  for (const [key, written] of Object.entries(filesOf(server))) {
    const path = String(written);
    const why = looked.has(path) ? undefined : await whyNot(path, files);
    const first = looked.get(path) ?? key;
    looked.set(path, first);
    const [code, what] =
      why === undefined
        ? (['panda-doubtful', await whyUseless(key, path, files)] as const)
        : (['file-unreadable', why] as const);
    if (what === undefined) continue;
    const message = `${first}: ${path} ${what}`;
    problems.push({ ...placeOf(toPointer(['pandacon', first])), severity: 'warning', code, message });
  }
  if (values.master.harvester_id === undefined) {
    const message = `harvester_id is not set, so the PanDA server knows this instance as ${harvesterIdOf(values.master)}: write the value that CRIC has as harvester of the queues`;
    problems.push({
      ...placeOf('/master/harvester_id'),
      severity: 'warning',
      code: 'harvester-id-missing',
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
  return { server, isMeant, problems };
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

/** The content that the link looks for in each file, by the key that names it: Harvester's keys. */
const contents: Readonly<
  Record<string, { readonly has: (text: string) => boolean; readonly lacks: string }>
> = {
  cert_file: { has: hasCertificate, lacks: 'has no certificate (PEM)' },
  key_file: {
    has: (text) => /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text),
    lacks: 'has no private key (PEM)',
  },
  ca_cert: { has: hasCertificate, lacks: 'has no certificate (PEM)' },
  auth_token: { has: isToken, lacks: 'holds no token (JWT)' },
};

function hasCertificate(text: string): boolean {
  return text.includes('-----BEGIN CERTIFICATE-----');
}

/** Why the content of a file is of no use to the link. Nothing of it is in the answer. A file that cannot be read has other problems. */
async function whyUseless(key: string, path: string, files: OperatorFiles): Promise<string | undefined> {
  const content = contents[key];
  if (content === undefined) return undefined;
  try {
    const { bytes } = await files.read(path, key === 'auth_token' ? 'token' : 'certificate');
    return content.has(bytes.toString('utf8')) ? undefined : `${content.lacks}: the link waits for it`;
  } catch {
    return undefined;
  }
}
