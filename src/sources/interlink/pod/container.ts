import type { Container, PodSpec, VolumeMount } from '../../../clients/interlink/wire.ts';
import type { PodAnnotations } from './annotations.ts';
import type { Expand } from './environment.ts';
import type { PodImage } from './images.ts';
import { fieldsOf, isText, lineOf } from './lines.ts';
import { powerIn, securityOptions } from './options.ts';
import { actionLines } from './probes.ts';
import { type Findings, problem, shown } from './problem.ts';
import { gpuOptions } from './resources.ts';
import { type PodVolume, isBelow, isPlace, isRelative } from './volumes.ts';

/** A place that a container can write: it can put a link there, in the place of a directory. */
export interface Writer {
  readonly container: string;
  /** `volume NAME/SUBPATH` or `host PATH`, with a slash at its end. */
  readonly place: string;
  /** The option by which it can write whatever it mounts. */
  readonly power?: string;
}

export interface ContainerContext {
  readonly at: string;
  /** Those of the containers that run beside it, and its own if it is entered again while it runs. */
  readonly writers: readonly Writer[];
  /** Whether it has probes and hooks: init containers have none. */
  readonly hasActions: boolean;
  readonly variables: ReadonlyMap<string, string>;
  /** Puts their values into a text. */
  readonly expand: Expand;
  readonly volumes: ReadonlyMap<string, PodVolume>;
  readonly annotations: PodAnnotations;
  /** The operator's, for apptainer. */
  readonly options: readonly string[];
  readonly readOnlyImages: boolean;
  readonly pod: PodSpec;
}

/** Text of the file by which the runner starts a container. Options and mounts stand before words, as apptainer wants them. */
export function containerText(
  container: Container,
  image: PodImage | undefined,
  given: ContainerContext,
  findings: Findings,
): string {
  const { at, expand } = given;
  const written = [...(container.command ?? []), ...(container.args ?? [])];
  const command = (container.command ?? []).map(expand);
  const args = (container.args ?? []).map(expand);
  if (![...command, ...args].every(isText))
    findings.problems.push(
      problem(at, `a word of the command of ${container.name} has a NUL or half of a character`),
    );
  if (command[0] === '') findings.problems.push(problem(`${at}/command/0`, 'the program is empty'));
  if (image?.kind === 'host' && command.length + args.length === 0)
    findings.problems.push(problem(at, `container ${container.name} runs on the machine and has no command`));
  warnOfRelative([...command, ...args], written, container, image, findings);
  const lines = [
    // An image's own program gets the arguments when the Pod gives no other.
    fieldsOf('run', image?.kind === 'host' ? 'host' : command.length > 0 ? 'exec' : 'run'),
    ...directoryLines(container, at, findings),
    ...(image?.kind === 'host'
      ? onMachine(container, findings)
      : [
          ...optionsOf(container, given, findings).map((word) => lineOf('option', word)),
          ...bindLines(given, findings),
          ...mountLines(container, given, findings),
          ...lastWords(container, findings),
        ]),
    ...[...command, ...args].map((word) => lineOf('word', word)),
    ...(given.hasActions ? actionLines(container, at, expand, findings) : []),
  ];
  return `${lines.join('\n')}\n`;
}

/** A command of the machine has the machine's files, and no option of apptainer. */
function onMachine({ name, volumeMounts }: Container, { warnings }: Findings): readonly string[] {
  const mounts = volumeMounts ?? [];
  if (mounts.length > 0)
    warnings.push(
      `container ${name} runs on the machine, without its volumes: ${mounts.map((mount) => mount.name).join(', ')}`,
    );
  return [];
}

function optionsOf(container: Container, given: ContainerContext, findings: Findings): readonly string[] {
  const { annotations, options, pod, variables } = given;
  return [
    ...options,
    ...gpuOptions(container),
    ...securityOptions(pod.securityContext, container.securityContext, container.name, findings),
    ...writableOptions(container, given),
    ...annotations.options,
    ...homeOptions(container, variables, findings),
  ];
}

const file = /^[\w.][\w./-]*\.(?:c?js|jar|json|mjs|php|pl|py|R|rb|sh|toml|ts|ya?ml)$/;

/**
 * apptainer keeps no working directory of an image: programs and files that are named from it are not found.
 * @param written the words as the Pod has them: a value of a variable, which may be a Secret's, is in no message
 */
function warnOfRelative(
  words: readonly string[],
  written: readonly string[],
  { name, workingDir }: Container,
  image: PodImage | undefined,
  { warnings }: Findings,
): void {
  // A file of apptainer says what the registry said of the image.
  if ((workingDir ?? '') !== '' || image?.kind !== 'path' || image.path.endsWith('.sif')) return;
  const found = words.findIndex((word, index) => file.test(word) || (index === 0 && /^[^/]+\//.test(word)));
  if (found >= 0)
    warnings.push(
      `container ${name} starts in "/", whatever directory its image names: if ${shown(written[found] ?? '')} is not there, set workingDir`,
    );
}

/** In Kubernetes a root file system can be written unless its container says otherwise. */
function writableOptions(
  { securityContext }: Container,
  { options, readOnlyImages }: ContainerContext,
): readonly string[] {
  const isReadOnly = securityContext?.readOnlyRootFilesystem ?? readOnlyImages;
  const isSaid = options.some((word) => /^--(writable|overlay)\b/.test(word) || word === '-w');
  return isReadOnly || isSaid ? [] : ['--writable-tmpfs'];
}

/** apptainer lets no variable replace HOME, but takes it as an option. Without `--no-home` it would mount a directory there. */
function homeOptions(
  { name }: Container,
  variables: ReadonlyMap<string, string>,
  { warnings }: Findings,
): readonly string[] {
  const home = variables.get('HOME');
  if (home === undefined) return [];
  if (isPlace(home)) return ['--no-home', '--home', home];
  warnings.push(`container ${name}: the value of its HOME is no absolute path that apptainer can take`);
  return [];
}

/** Line `says PATH` for its terminationMessagePath, and `says-log` if its log counts when it said nothing there. */
function lastWords(container: Container, { warnings }: Findings): readonly string[] {
  const { name, terminationMessagePath: path = '', terminationMessagePolicy, volumeMounts } = container;
  const log = terminationMessagePolicy === 'FallbackToLogsOnError' ? [fieldsOf('says-log', 'yes')] : [];
  // apptainer mounts nothing in its own /dev, where Kubernetes' default is.
  if (path === '' || path.startsWith('/dev/')) return log;
  const mounts = (volumeMounts ?? []).map(({ mountPath }) => mountPath);
  if (isPlace(path) && !mounts.some((mount) => isBelow(path, [mount]))) return [lineOf('says', path), ...log];
  warnings.push(
    `container ${name}: its terminationMessagePath ${shown(path)} is in a volume, or no path that apptainer can take: its message is left out`,
  );
  return log;
}

/** Without a line, the container starts in the directory that its image names. */
function directoryLines({ workingDir }: Container, at: string, { problems }: Findings): readonly string[] {
  if (workingDir === undefined || workingDir === '') return [];
  if (isPlace(workingDir)) return [lineOf('cwd', workingDir)];
  problems.push(
    problem(`${at}/workingDir`, `${shown(workingDir)} is no absolute path that apptainer can take`),
  );
  return [];
}

function bindLine(mode: 'ro' | 'rw', of: 'host' | 'volume', source: string, target: string): string {
  return fieldsOf('bind', mode, of, source, target);
}

function placeOf(of: 'host' | 'volume', source: string): string {
  return `${of} ${source}/`.replaceAll(/\/+/g, '/');
}

/**
 * apptainer follows links, and between a look at the directory and its mount there is time for one.
 * @returns why it is not mounted, and what the mount could be instead
 */
function writerAbove(place: string, writers: readonly Writer[]) {
  const writer = writers.find((one) => place !== one.place && place.startsWith(one.place));
  if (writer === undefined) return undefined;
  const { container, power } = writer;
  const how = power === undefined ? 'for writing' : `with ${power}, so that readOnly does not bind it`;
  return {
    why: `container ${container} mounts what is above it ${how}, and could put a link in its place`,
    instead: power === undefined ? 'as a whole, or there with readOnly' : 'as a whole',
  };
}

function bindLines({ annotations, writers }: ContainerContext, { problems }: Findings): readonly string[] {
  return annotations.binds.map(({ mode, source, target }) => {
    const writer = writerAbove(placeOf('host', source), writers);
    if (writer !== undefined)
      problems.push(problem('/pod/metadata/annotations', `--bind ${source}: ${writer.why}`));
    return bindLine(mode, 'host', source, target);
  });
}

type Mounting = Pick<ContainerContext, 'volumes' | 'expand' | 'annotations' | 'options'>;

/** The places that a container can change. Files of ConfigMaps and the like are mounted for reading, which binds none that has capabilities. */
export function writersOf(
  { name, volumeMounts }: Container,
  { volumes, expand, annotations, options }: Mounting,
): readonly Writer[] {
  const power = powerIn([...options, ...annotations.options]);
  const binds = annotations.binds.filter(({ mode }) => power !== undefined || mode === 'rw');
  const mounts = (volumeMounts ?? []).filter(({ readOnly }) => power !== undefined || readOnly !== true);
  return [
    ...binds.map(({ source }) => placeOf('host', source)),
    ...mounts.flatMap((mount) => {
      const volume = volumes.get(mount.name);
      const below = `/${subPathOf(mount, expand)}`;
      if (volume?.kind === 'host') return [placeOf('host', `${volume.path}${below}`)];
      const isWritten = volume?.kind === 'empty' || (volume?.kind === 'files' && power !== undefined);
      return isWritten ? [placeOf('volume', `${mount.name}${below}`)] : [];
    }),
  ].map((place) => ({ container: name, place, ...(power !== undefined && { power }) }));
}

/** The same as a message shows it: without the values of variables, which may be those of a Secret. */
function writtenSubPath({ subPath, subPathExpr }: VolumeMount): string {
  return subPathExpr || (subPath ?? '');
}

function subPathOf({ subPath, subPathExpr }: VolumeMount, expand: Expand): string {
  const expression = subPathExpr ?? '';
  return expression === '' ? (subPath ?? '') : expand(expression);
}

/** Lines of the volumes: `bind ro|rw volume|host SOURCE TARGET`. */
function mountLines(
  container: Container,
  { at, volumes, expand, writers }: ContainerContext,
  { problems, warnings }: Findings,
): readonly string[] {
  return (container.volumeMounts ?? []).flatMap((mount, index) => {
    const where = `${at}/volumeMounts/${index}`;
    const volume = volumes.get(mount.name);
    const wrong = (message: string) => {
      problems.push(problem(where, message));
      return [];
    };
    if (volume === undefined) return wrong(`the Pod has no volume ${shown(mount.name)}`);
    if (!isPlace(mount.mountPath))
      return wrong(`${shown(mount.mountPath)} is no absolute path that apptainer can take`);
    const subPath = subPathOf(mount, expand);
    const written = `${mount.subPathExpr ? 'value of subPathExpr' : 'subPath'} ${shown(writtenSubPath(mount))}`;
    if (subPath !== '' && (!isRelative(subPath) || /[,:\\]/.test(subPath)))
      return wrong(`the ${written} is no path below the volume ${mount.name}`);
    if (volume.kind === 'left-out') return [];
    const place =
      volume.kind === 'host'
        ? placeOf('host', `${volume.path}/${subPath}`)
        : placeOf('volume', `${mount.name}/${subPath}`);
    const writer = writerAbove(place, writers);
    if (writer !== undefined) return wrong(`${writer.why}: mount ${mount.name} ${writer.instead}`);
    if (volume.kind === 'host') {
      if (subPath !== '')
        warnings.push(
          `the directory ${writtenSubPath(mount)} of volume ${mount.name} must be on the machine`,
        );
      const source = subPath === '' ? volume.path : `${volume.path}/${subPath}`;
      if (!isPlace(source))
        return wrong(
          `${shown(`${volume.path}/${writtenSubPath(mount)}`)} is no path that apptainer can take`,
        );
      return [bindLine(mount.readOnly === true ? 'ro' : 'rw', 'host', source, mount.mountPath)];
    }
    // Kubernetes mounts ConfigMaps, Secrets and projected volumes for reading only.
    const readOnly = mount.readOnly === true || volume.kind === 'files';
    const source = subPath === '' ? mount.name : `${mount.name}/${subPath}`;
    return [bindLine(readOnly ? 'ro' : 'rw', 'volume', source, mount.mountPath)];
  });
}
