import type {
  ConfigMap,
  KeyToPath,
  RetrievedPodData,
  Secret,
  Volume,
} from '../../../clients/interlink/wire.ts';
import { fieldsOf, isText } from './lines.ts';
import { type Findings, problem, shown } from './problem.ts';

export interface VolumeFile {
  /** Relative to the volume. */
  readonly path: string;
  readonly mode: number;
  /** Base64. */
  readonly content: string;
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

/** A Pod's volumes by name, of those that a container mounts. interLink gives their objects per container: equal names are one object. */
export function volumesOf(
  data: RetrievedPodData,
  mounted: ReadonlySet<string>,
  rules: VolumeRules,
  findings: Findings,
): ReadonlyMap<string, PodVolume> {
  const containers = data.container ?? [];
  const sources: Sources = {
    configMaps: named(containers.flatMap(({ configMaps }) => configMaps ?? [])),
    secrets: named(containers.flatMap(({ secrets }) => secrets ?? [])),
    projected: named(containers.flatMap(({ projectedvolumemaps }) => projectedvolumemaps ?? [])),
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
      const bytes = Buffer.from(content, 'base64');
      const bits = (mode & 0o777).toString(8).padStart(4, '0');
      lines.push(fieldsOf('file', offset, bytes.length, bits, `${name}/${path}`));
      parts.push(bytes);
      offset += bytes.length;
    }
  }
  return { lines, content: Buffer.concat(parts).toString('base64') };
}

interface Sources {
  readonly configMaps: ReadonlyMap<string, ConfigMap>;
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly projected: ReadonlyMap<string, ConfigMap>;
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
  const files: Chosen = configMap
    ? chosen(contentOfConfigMap(sources.configMaps.get(configMap.name ?? '')), {
        what: `ConfigMap ${configMap.name ?? ''}`,
        items: configMap.items ?? undefined,
        optional: configMap.optional === true,
        mode,
      })
    : secret
      ? chosen(contentOfSecret(sources.secrets.get(secret.secretName ?? '')), {
          what: `Secret ${secret.secretName ?? ''}`,
          items: secret.items ?? undefined,
          optional: secret.optional === true,
          mode,
        })
      : chosen(contentOfConfigMap(sources.projected.get(name)), {
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

/** A host path ends at no directory that the operator did not allow, by `..` neither. */
export function isBelow(path: string, prefixes: readonly string[]): boolean {
  if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.')) return false;
  const plain = (text: string) => text.replaceAll(/\/+/g, '/').replace(/\/$/, '');
  return prefixes.some((prefix) => `${plain(path)}/`.startsWith(`${plain(prefix)}/`));
}

/** apptainer ends the path of a bind at a comma or colon, and takes a backslash for an escape. */
export function isPlace(path: string): boolean {
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
  const allowed =
    hostPaths.length === 0 ? 'the operator allows none' : `the operator allows ${hostPaths.join(', ')}`;
  problems.push(problem(at, `the path ${shown(path)} of the machine cannot be mounted: ${allowed}`));
  return leftOut;
}

type Content = ReadonlyMap<string, string>;
type Chosen = readonly VolumeFile[] | string;

interface Choice {
  readonly what: string;
  readonly items: readonly KeyToPath[] | undefined;
  readonly optional: boolean;
  readonly mode: number;
  readonly modes?: ReadonlyMap<string, number>;
}

/** @returns the files, or the reason why there are none */
function chosen(content: Content | undefined, { what, items, optional, mode, modes }: Choice): Chosen {
  if (content === undefined) return optional ? [] : `interLink sent no ${what}`;
  if (items === undefined || items.length === 0)
    return [...content].map(([path, one]) => ({ path, mode: modes?.get(path) ?? mode, content: one }));
  const missing = items.find(({ key }) => !content.has(key));
  if (missing !== undefined && !optional) return `${what} has no key ${shown(missing.key)}`;
  return items.flatMap(({ key, path, mode: own }) => {
    const one = content.get(key);
    return one === undefined ? [] : [{ path, mode: own ?? mode, content: one }];
  });
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

function contentOfConfigMap(object: ConfigMap | undefined): Content | undefined {
  if (object === undefined) return undefined;
  const texts = Object.entries(object.data ?? {}).map(
    ([key, text]) => [key, Buffer.from(text).toString('base64')] as const,
  );
  return new Map([...texts, ...plainBase64(object.binaryData)]);
}

function contentOfSecret(object: Secret | undefined): Content | undefined {
  return object === undefined ? undefined : new Map(plainBase64(object.data));
}

/** Go's base64 has its padding; the detour makes that of others the same. */
function plainBase64(data: Readonly<Record<string, string>> | null | undefined) {
  return Object.entries(data ?? {}).map(
    ([key, text]) => [key, Buffer.from(text, 'base64').toString('base64')] as const,
  );
}

function named<T extends ConfigMap | Secret>(objects: readonly T[]): ReadonlyMap<string, T> {
  return new Map(objects.map((one) => [one.metadata?.name ?? '', one]));
}
