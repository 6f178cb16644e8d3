import type {
  ConfigMap,
  KeyToPath,
  RetrievedPodData,
  Secret,
  Volume,
} from '../../../clients/interlink/wire.ts';
import { payloadBounds } from '../../../worker/payload-check.ts';
import type { Room } from './environment.ts';
import { fieldsOf, isText } from './lines.ts';
import { type Findings, problem, shown } from './problem.ts';
import { take } from './too-much.ts';

export interface VolumeFile {
  /** Relative to the volume. */
  readonly path: string;
  readonly mode: number;
  readonly content: Content;
}

/** What a key of a ConfigMap or Secret has, as it came: files of the same key share it, and none of it is decoded before all are counted. */
interface Content {
  readonly text: string;
  readonly encoding: 'utf8' | 'base64';
}

/** A volume as the job has it: a directory with these files, or a directory of the machine. */
export type PodVolume =
  | { readonly kind: 'files'; readonly files: readonly VolumeFile[] }
  | { readonly kind: 'empty' }
  | { readonly kind: 'host'; readonly path: string }
  | { readonly kind: 'left-out' };

export interface VolumeRules {
  /** Directories of the machine that a Pod may mount, with all below. */
  readonly hostPaths: readonly string[];
  /** False: ConfigMaps, Secrets and projected volumes stay out of jobs. */
  readonly exportPodData: boolean;
}

/**
 * A Pod's volumes by name, of those that a container mounts. interLink gives their objects per container: equal names are one object.
 * @throws TooLarge if their files are more than a job takes
 */
export function volumesOf(
  data: RetrievedPodData,
  mounted: ReadonlySet<string>,
  rules: VolumeRules,
  findings: Findings,
): ReadonlyMap<string, PodVolume> {
  const containers = data.container ?? [];
  const sources: Sources = {
    configMaps: new Map(containers.flatMap(({ configMaps }) => configMaps ?? []).map(contentsOfConfigMap)),
    secrets: new Map(containers.flatMap(({ secrets }) => secrets ?? []).map(contentsOfSecret)),
    projected: new Map(
      containers.flatMap(({ projectedvolumemaps }) => projectedvolumemaps ?? []).map(contentsOfConfigMap),
    ),
    room: { left: payloadBounds.bytes },
  };
  const volumes = new Map<string, PodVolume>();
  for (const [index, volume] of (data.pod.spec.volumes ?? []).entries()) {
    const at = `/pod/spec/volumes/${index}`;
    if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(volume.name))
      findings.problems.push(problem(`${at}/name`, `${shown(volume.name)} is no name of a volume`));
    else if (volumes.has(volume.name))
      findings.problems.push(problem(`${at}/name`, `two volumes have the name ${shown(volume.name)}`));
    // interLink sends no data of the others.
    else if (mounted.has(volume.name))
      volumes.set(volume.name, volumeOf(volume, at, sources, rules, findings));
  }
  return volumes;
}

/**
 * The files of all volumes as one file, since a payload has few: their contents one after the other, and for the runner lines
 * `file OFFSET LENGTH MODE PATH`.
 */
export function packedVolumes(volumes: ReadonlyMap<string, PodVolume>): {
  readonly lines: readonly string[];
  /** Base64. */
  readonly content: string;
} {
  const lines: string[] = [];
  const parts: Buffer[] = [];
  let offset = 0;
  for (const [name, volume] of volumes) {
    if (volume.kind !== 'files') continue;
    for (const { path, mode, content } of volume.files) {
      const bytes = Buffer.from(content.text, content.encoding);
      const bits = (mode & 0o777).toString(8).padStart(4, '0');
      lines.push(fieldsOf('file', offset, bytes.length, bits, `${name}/${path}`));
      parts.push(bytes);
      offset += bytes.length;
    }
  }
  return { lines, content: Buffer.concat(parts).toString('base64') };
}

interface Sources {
  readonly configMaps: ReadonlyMap<string, Contents>;
  readonly secrets: ReadonlyMap<string, Contents>;
  readonly projected: ReadonlyMap<string, Contents>;
  /** For the files of all volumes. */
  readonly room: Room;
}

const leftOut: PodVolume = { kind: 'left-out' };

function volumeOf(
  volume: Volume,
  at: string,
  sources: Sources,
  rules: VolumeRules,
  findings: Findings,
): PodVolume {
  const { name, configMap, secret, projected, downwardAPI, emptyDir, hostPath, persistentVolumeClaim } =
    volume;
  if (emptyDir) return { kind: 'empty' };
  if (hostPath) return hostVolume(hostPath.path, `${at}/hostPath`, rules, findings);
  if (persistentVolumeClaim) {
    const message = `volume ${name} is the claim ${shown(persistentVolumeClaim.claimName)}; jobs of HTCondor have no persistent volumes: use an emptyDir, or fetch the data in the container`;
    findings.problems.push(problem(`${at}/persistentVolumeClaim`, message));
    return leftOut;
  }
  const source = configMap ?? secret ?? projected ?? downwardAPI;
  if (!source) {
    const kind = Object.keys(volume).find((key) => key !== 'name') ?? 'nothing';
    findings.problems.push(
      problem(at, `volume ${name} is of the kind ${shown(kind)}, which jobs of HTCondor do not have`),
    );
    return leftOut;
  }
  if (!rules.exportPodData) {
    findings.warnings.push(`volume ${name} is left out: ExportPodData is false`);
    return leftOut;
  }
  const mode = source.defaultMode ?? 0o644;
  const { room } = sources;
  const files: Chosen = configMap
    ? chosen(sources.configMaps.get(configMap.name ?? ''), room, {
        what: `ConfigMap ${configMap.name ?? ''}`,
        items: configMap.items ?? undefined,
        optional: configMap.optional === true,
        mode,
      })
    : secret
      ? chosen(sources.secrets.get(secret.secretName ?? ''), room, {
          what: `Secret ${secret.secretName ?? ''}`,
          items: secret.items ?? undefined,
          optional: secret.optional === true,
          mode,
        })
      : chosen(sources.projected.get(name), room, {
          what: `projected volume ${name}`,
          items: undefined,
          // A volume all of whose sources are optional has no files.
          optional: true,
          mode,
          modes: projectedModes(projected?.sources ?? []),
        });
  if (projected?.sources?.some((one) => one['secret'] !== undefined && one['secret'] !== null))
    findings.warnings.push(
      `interLink sends no Secrets of projected volumes: those of volume ${name} are missing`,
    );
  if (typeof files === 'string') {
    findings.problems.push(problem(at, `volume ${name}: ${files}`));
    return leftOut;
  }
  for (const path of directoriesIn(files))
    findings.problems.push(
      problem(at, `volume ${name}: ${shown(path)} cannot be a file and a directory of other files`),
    );
  const { right = [], wrong = [] } = Object.groupBy(files, ({ path }) =>
    isRelative(path) ? 'right' : 'wrong',
  );
  for (const { path } of wrong)
    findings.problems.push(problem(at, `volume ${name}: ${shown(path)} is no path below the volume`));
  return { kind: 'files', files: right };
}

/** Paths of files below which others are. Sorted, what is below a path stands right behind it. */
function directoriesIn(files: readonly VolumeFile[]): readonly string[] {
  const sorted = [...new Set(files.map(({ path }) => `${path}/`))].sort();
  return sorted.filter((path, index) => sorted[index + 1]?.startsWith(path)).map((path) => path.slice(0, -1));
}

/** Characters of a path, as Linux takes it: a longer one would be copied for each of its mounts. */
const longestPath = 4095;

/** A host path ends at no directory that the operator did not allow, by `..` neither. */
export function isBelow(path: string, prefixes: readonly string[]): boolean {
  if (
    path.length > longestPath ||
    !path.startsWith('/') ||
    path.split('/').some((part) => part === '..' || part === '.')
  )
    return false;
  const plain = (text: string) => text.replaceAll(/\/+/g, '/').replace(/\/$/, '');
  return prefixes.some((prefix) => `${plain(path)}/`.startsWith(`${plain(prefix)}/`));
}

/** apptainer ends the path of a bind at a comma or colon, and takes a backslash for an escape. */
export function isPlace(path: string): boolean {
  if (path.length > longestPath) return false;
  return path.startsWith('/') && isText(path) && !/[,:\\\n\r]/.test(path) && !path.split('/').includes('..');
}

/** A path below a directory. */
export function isRelative(path: string): boolean {
  const parts = path.split('/');
  return (
    isText(path) && path !== '' && !parts.some((part) => part === '' || part === '.' || part.startsWith('..'))
  );
}

function hostVolume(path: string, at: string, { hostPaths }: VolumeRules, { problems }: Findings): PodVolume {
  if (isBelow(path, hostPaths)) return { kind: 'host', path };
  if (path.length > longestPath) {
    const message = `the path ${shown(path)} of the machine has ${path.length} characters; a path has ${longestPath} at most`;
    problems.push(problem(at, message));
    return leftOut;
  }
  const allowed =
    hostPaths.length === 0 ? 'the operator allows none' : `the operator allows ${hostPaths.join(', ')}`;
  problems.push(problem(at, `the path ${shown(path)} of the machine cannot be mounted: ${allowed}`));
  return leftOut;
}

/** Bytes that each file takes beside its path and content: its line, and what the runner does with it. */
const perFile = 64;

type Contents = ReadonlyMap<string, Content>;
type Chosen = readonly VolumeFile[] | string;

interface Choice {
  readonly what: string;
  readonly items: readonly KeyToPath[] | undefined;
  readonly optional: boolean;
  readonly mode: number;
  readonly modes?: ReadonlyMap<string, number>;
}

/** @returns the files, or the reason why there are none @throws TooLarge */
function chosen(
  contents: Contents | undefined,
  room: Room,
  { what, items, optional, mode, modes }: Choice,
): Chosen {
  if (contents === undefined) return optional ? [] : `interLink sent no ${what}`;
  const file = (path: string, bits: number, content: Content): VolumeFile => {
    // One key may be as many files as the Pod likes, each with a line that names it.
    take(room, Buffer.byteLength(content.text, content.encoding) + Buffer.byteLength(path) + perFile);
    return { path, mode: bits, content };
  };
  const files: VolumeFile[] = [];
  if (items === undefined || items.length === 0) {
    for (const [path, content] of contents) files.push(file(path, modes?.get(path) ?? mode, content));
    return files;
  }
  const missing = items.find(({ key }) => !contents.has(key));
  if (missing !== undefined && !optional) return `${what} has no key ${shown(missing.key)}`;
  for (const { key, path, mode: own } of items) {
    const content = contents.get(key);
    if (content !== undefined) files.push(file(path, own ?? mode, content));
  }
  return files;
}

/** Modes of single files of a projected volume, by path. */
function projectedModes(sources: readonly Readonly<Record<string, unknown>>[]): ReadonlyMap<string, number> {
  const modes = new Map<string, number>();
  for (const source of sources)
    for (const one of Object.values(source)) {
      const items: unknown =
        typeof one === 'object' && one !== null && 'items' in one ? one.items : undefined;
      if (!Array.isArray(items)) continue;
      for (const item of items as readonly (Partial<KeyToPath> | null)[])
        if (typeof item?.path === 'string' && typeof item.mode === 'number') modes.set(item.path, item.mode);
    }
  return modes;
}

type Named = readonly [name: string, contents: Contents];

function contentsOfConfigMap({ metadata, data, binaryData }: ConfigMap): Named {
  const contents = [...contentsOf(data, 'utf8'), ...contentsOf(binaryData, 'base64')];
  return [metadata?.name ?? '', new Map(contents)];
}

function contentsOfSecret({ metadata, data }: Secret): Named {
  return [metadata?.name ?? '', new Map(contentsOf(data, 'base64'))];
}

function contentsOf(
  data: Readonly<Record<string, string>> | null | undefined,
  encoding: Content['encoding'],
) {
  return Object.entries(data ?? {}).map(([key, text]) => [key, { text, encoding }] as const);
}
