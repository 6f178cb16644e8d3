import type { LoadedSettings } from '../config/settings/settings.ts';
import { type Instance, instancesIn } from '../store/sqlite/instances.ts';
import { instancesAt, placeName } from '../store/store.ts';
import { databaseOf } from './database-place.ts';
import { hasCode, writeFileAtomically } from '../util/files.ts';
import { NotPlainFile, readPlainFileSync } from '../util/plain-file.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { isFactoryId, newFactoryId } from '../worker/identity.ts';
import { type StateDir, stateDirAt } from './state-dir.ts';

/** The file `factory`, as it was found. */
export type FactoryFile =
  | { readonly kind: 'absent' }
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'damaged'; readonly why: string };

/** All that says which factory a state directory is of. */
export interface Witnesses {
  readonly file: FactoryFile;
  /** The factories that the database knows. */
  readonly instances: readonly Instance[];
  /** `master.factoryId` */
  readonly configured?: string | undefined;
}

/** Bytes; an id has at most 30. */
const largest = 1024;

/**
 * The id that all witnesses agree on; undefined: a factory that has none yet. A contradiction is never settled here: with
 * the wrong id all living workers would be forgotten, and replaced.
 * @throws ThresherError `factory-file-damaged`, `factory-id-contradicted`, `factory-id-changed`
 */
export function agreedId(
  { file, instances, configured }: Witnesses,
  dir: Pick<StateDir, 'factory' | 'database'>,
): string | undefined {
  const path = dir.factory;
  const known = instances.map(({ id }) => id);
  const [only, ...others] = instances;
  if (file.kind === 'damaged') {
    const message = `${path} ${file.why}: ${remedyOf(instances, configured, dir)}`;
    throw new ThresherError('factory-file-damaged', message, { path, known });
  }
  if (file.kind === 'id') {
    const { id } = file;
    if (known.length > 0 && !known.includes(id)) {
      const whose = `${path} says ${id}, but ${dir.database} is of ${listed(instances)}`;
      const message = `${whose}: write ${choice(known)} into ${path}, or, if the database is another factory's, put the one of ${id} in its place`;
      throw new ThresherError('factory-id-contradicted', message, { id, known });
    }
    if (configured === undefined || configured === id) return id;
    throw changed(`master.factoryId is ${configured}, but ${path} says ${id}`, { configured, kept: id });
  }
  if (only === undefined) return configured;
  if (configured === undefined) {
    if (others.length === 0) return only.id;
    const message = `there is no ${path}, and ${dir.database} is of ${listed(instances)}: write ${choice(known)} into ${path}`;
    throw new ThresherError('factory-id-contradicted', message, { known });
  }
  // A factory without living workers may take another id.
  const living = instances.filter((instance) => instance.living > 0);
  if (known.includes(configured) || living.length === 0) return configured;
  const message = `master.factoryId is ${configured}, but ${dir.database} is of ${listed(living)}`;
  throw changed(message, { configured, known });
}

/**
 * The id for a command that only reads; undefined where no daemon ever ran. A command does not ask a server for it.
 * @throws as `agreedId`
 */
export function readFactoryId(settings: LoadedSettings): string | undefined {
  const dir = stateDirAt(settings.stateDir);
  const file = readFactoryFile(dir.factory);
  const instances = settings.postgresql === undefined ? readableInstances(dir, file) : [];
  return agreedId({ file, instances }, namesOf(settings, dir));
}

/**
 * Why a daemon with these settings would not start for the sake of its id, or of its PostgreSQL server. What this user may not
 * look at counts as right.
 */
export async function factoryMistake(settings: LoadedSettings): Promise<ThresherError | undefined> {
  const dir = stateDirAt(settings.stateDir);
  try {
    const file = readFactoryFile(dir.factory);
    const instances = await instancesAt(databaseOf(settings));
    agreedId({ file, instances, configured: settings.values.master.factoryId }, namesOf(settings, dir));
    return undefined;
  } catch (error) {
    if (!(error instanceof ThresherError)) throw error;
    const isOfServer = settings.postgresql !== undefined && error.code.startsWith('store-');
    return error.code.startsWith('factory-') || isOfServer ? error : undefined;
  }
}

/** The id of a daemon that starts, and whether the file is still to be written. @throws as `agreedId` */
export async function factoryIdAtStart(
  settings: LoadedSettings,
  random: () => number,
): Promise<{ readonly id: string; readonly isWritten: boolean }> {
  const dir = stateDirAt(settings.stateDir);
  const file = readFactoryFile(dir.factory);
  const instances = await instancesAt(databaseOf(settings));
  const configured = settings.values.master.factoryId;
  const agreed = agreedId({ file, instances, configured }, namesOf(settings, dir));
  return { id: agreed ?? newFactoryId(random), isWritten: file.kind === 'id' };
}

/** The file and the database as messages name them. */
function namesOf(
  settings: LoadedSettings,
  { factory }: Pick<StateDir, 'factory'>,
): Pick<StateDir, 'factory' | 'database'> {
  return { factory, database: placeName(databaseOf(settings)) };
}

/** @throws ThresherError `state-dir-unusable` */
export async function writeFactoryId(dir: StateDir, id: string): Promise<void> {
  try {
    await writeFileAtomically(dir.factory, `${id}\n`);
  } catch (error) {
    const message = `${dir.factory} cannot be written: ${messageOf(error)}`;
    throw new ThresherError('state-dir-unusable', message, { path: dir.factory }, { cause: error });
  }
}

/** @throws ThresherError `state-dir-unusable` where this user may not look, or the disk fails */
export function readFactoryFile(path: string): FactoryFile {
  let text: string;
  try {
    text = readPlainFileSync(path, { largest, links: 'refuse' }).bytes.toString('utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return { kind: 'absent' };
    if (error instanceof NotPlainFile)
      return { kind: 'damaged', why: error.message.slice(path.length).trim() };
    const message = `${path} cannot be read: ${messageOf(error)}`;
    throw new ThresherError('state-dir-unusable', message, { path }, { cause: error });
  }
  if (text === '') return { kind: 'damaged', why: 'is empty' };
  if (isFactoryId(text)) return { kind: 'id', id: text };
  const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text);
  return { kind: 'damaged', why: `says ${shown}, which is no factory id` };
}

/** A database that cannot be read is for its opening to tell: here the file has said enough. */
function readableInstances(dir: StateDir, file: FactoryFile): readonly Instance[] {
  try {
    return instancesIn(dir.database);
  } catch (error) {
    if (file.kind === 'id' && error instanceof ThresherError) return [];
    throw error;
  }
}

function remedyOf(
  instances: readonly Instance[],
  configured: string | undefined,
  { factory, database }: Pick<StateDir, 'factory' | 'database'>,
): string {
  const known = instances.map(({ id }) => id);
  if (known.length > 0)
    return `${database} is of ${listed(instances)}; replace ${factory} by a file with one line, ${choice(known)}`;
  if (configured !== undefined)
    return `if ${configured} (master.factoryId) was this factory's id before, remove ${factory}`;
  return `replace it by a file with one line, the id of this factory (its Jobs carry it in the label thresher/factory, its HTCondor jobs in thresherFactory, its local workers in THRESHER_FACTORY), or remove it for a new factory`;
}

function listed(instances: readonly Instance[]): string {
  return instances
    .map(({ id, living }) => `${id} (${living} living worker${living === 1 ? '' : 's'})`)
    .join(' and ');
}

function choice(ids: readonly string[]): string {
  return ids.length === 1 ? (ids[0] ?? '') : `one of ${ids.join(', ')}`;
}

function changed(message: string, facts: Record<string, unknown>): ThresherError {
  return new ThresherError('factory-id-changed', message, facts);
}
