import type { SecurityContext } from '../../../clients/interlink/wire.ts';
import { isBelow, isPlace } from './volumes.ts';
import { type Findings, problem, shown } from './problem.ts';

/**
 * Options of apptainer that a Pod may give. Absent: refused. None of them gives a program capabilities (see `powerIn`): a Pod could undo
 * by them what keeps it out of the files of others.
 */
export const podOptions: Readonly<Record<string, 'flag' | 'value' | 'bind' | 'always'>> = {
  '--nv': 'flag',
  '--nvccli': 'flag',
  '--rocm': 'flag',
  '--writable-tmpfs': 'flag',
  '--no-home': 'flag',
  '--no-privs': 'flag',
  '--no-init': 'flag',
  '--no-umask': 'flag',
  '--userns': 'flag',
  '-u': 'flag',
  '--uts': 'flag',
  '--unsquash': 'flag',
  '--disable-cache': 'flag',
  '--no-mount': 'value',
  '--hostname': 'value',
  '--bind': 'bind',
  '-B': 'bind',
  // The runner always does what these do, but by means of its own: the container's variables would be lost with them.
  '--cleanenv': 'always',
  '-e': 'always',
  '--contain': 'always',
  '-c': 'always',
  '--containall': 'always',
  '-C': 'always',
  '--no-eval': 'always',
  '--ipc': 'always',
  '-i': 'always',
  '--pid': 'always',
  '-p': 'always',
};

/** Of one word with several short options, those behind a letter that takes a value are that value. */
const power = /^(?:--(?:fakeroot|add-caps|keep-privs|allow-setuid|oci)(?![^=])|-[^-=BHSWo]*f)/;

/**
 * The first of these options of apptainer, without its value, by which a container may have capabilities. One call makes its mounts
 * for reading into ones for writing then; without it apptainer's mounts are locked, in a user namespace of the container's own, too.
 */
export function powerIn(options: readonly string[]): string | undefined {
  return options.find((word) => power.test(word))?.split('=', 1)[0];
}

/** A warning for the first such option of an administrator, at `runtimeOptions` of the settings. */
export function powerProblems(options: readonly string[]) {
  const found = powerIn(options);
  if (found === undefined) return [];
  const index = options.findIndex((word) => powerIn([word]) !== undefined);
  return [
    {
      pointer: `/runtimeOptions/${index}`,
      code: 'interlink-capabilities' as const,
      severity: 'warning' as const,
      message: `${found} gives containers of Pods capabilities: no mount is for reading only to them`,
    },
  ];
}

/** A directory or file of the machine that `--bind` names. */
export interface Bind {
  readonly mode: 'ro' | 'rw';
  readonly source: string;
  readonly target: string;
}

/** Characters of the options of one annotation, and how many words of apptainer they may be: each container has all of them. */
const longestOptions = 65_536;
const mostOptions = 100;

interface Options {
  readonly options: readonly string[];
  readonly binds: readonly Bind[];
}

/** Words of an annotation such as "--nv --bind /cvmfs:/cvmfs". A directory that it binds must be one that a Pod may mount. */
export function containerOptions(
  text: string,
  at: string,
  hostPaths: readonly string[],
  { problems }: Findings,
): Options {
  const options: string[] = [];
  const binds: Bind[] = [];
  const refused = (message: string): Options => {
    problems.push(problem(at, message));
    return { options: [], binds: [] };
  };
  if (text.length > longestOptions)
    return refused(`the options have ${text.length} characters; they may have ${longestOptions}`);
  const words = text.split(/\s+/).filter((word) => word !== '');
  for (let index = 0; index < words.length; index++) {
    const [name, inline] = splitOnce(words[index] ?? '');
    const kind = podOptions[name];
    if (powerIn([name]) !== undefined)
      return refused(
        `the option ${shown(name)} is not taken: no mount would be for reading only. The operator may give it to all containers (runtimeOptions)`,
      );
    if (kind === undefined)
      return refused(
        `the option ${shown(name)} is not taken; it may be ${Object.keys(podOptions).join(', ')}`,
      );
    if (kind === 'always') continue;
    if (kind === 'flag') {
      options.push(name);
      continue;
    }
    const value = inline ?? words[++index];
    if (value === undefined || value === '' || (inline === undefined && value.startsWith('-')))
      return refused(`the option ${name} has no value`);
    if (kind === 'value') {
      options.push(name, value);
      continue;
    }
    for (const one of value.split(',')) {
      const bind = bindOf(one);
      const says = `the option ${name} names ${shown(one)}, which`;
      if (bind === undefined) return refused(`${says} is not SOURCE, SOURCE:TARGET or SOURCE:TARGET:ro`);
      if (!isBelow(bind.source, hostPaths)) return refused(`${says} the operator does not allow to mount`);
      binds.push(bind);
    }
  }
  if (options.length > mostOptions)
    return refused(`the options have ${options.length} words; they may have ${mostOptions}`);
  return { options, binds };
}

/** apptainer takes a backslash for the escape of what follows it: the place would end elsewhere than here. */
function bindOf(text: string): Bind | undefined {
  const [source = '', target = source, mode = 'rw', ...rest] = text.split(':');
  const isBind = isPlace(source) && isPlace(target) && rest.length === 0;
  return isBind && (mode === 'ro' || mode === 'rw') ? { mode, source, target } : undefined;
}

function splitOnce(word: string): readonly [string, string | undefined] {
  const equals = word.indexOf('=');
  return equals < 0 ? [word, undefined] : [word.slice(0, equals), word.slice(equals + 1)];
}

/** Parts of a security context that apptainer has no like of. */
const foreignKeys = [
  'seLinuxOptions',
  'seccompProfile',
  'appArmorProfile',
  'windowsOptions',
  'sysctls',
  'procMount',
];
const securityKeys = [
  ...['privileged', 'runAsUser', 'runAsGroup', 'fsGroup', 'supplementalGroups', 'capabilities'],
  ...['allowPrivilegeEscalation', ...foreignKeys],
];

/** The options that a security context means to apptainer. The rest is named in warnings: a job runs as HTCondor's user for it. */
export function securityOptions(
  pod: SecurityContext | null | undefined,
  container: SecurityContext | null | undefined,
  name: string,
  { warnings }: Findings,
): readonly string[] {
  const contexts = [container ?? {}, pod ?? {}];
  // A copy of all keys of the Pod's one for each container could take a long time.
  const both: SecurityContext = Object.fromEntries(
    securityKeys.map((key) => [key, contexts.find((one) => Object.hasOwn(one, key))?.[key]]),
  );
  const without: string[] = [];
  if (both.privileged === true) without.push('privileged');
  if (typeof both.runAsUser === 'number') without.push('runAsUser');
  if (typeof both.runAsGroup === 'number') without.push('runAsGroup');
  if (typeof both.fsGroup === 'number') without.push('fsGroup');
  if ((both.supplementalGroups ?? []).length > 0) without.push('supplementalGroups');
  if ((both.capabilities?.add ?? []).length > 0) without.push('capabilities.add');
  for (const key of foreignKeys) if (both[key] !== undefined && both[key] !== null) without.push(key);
  if (without.length > 0)
    warnings.push(
      `container ${name} runs as the user of the job: apptainer has no ${without.join(', ')} of its securityContext`,
    );
  const unprivileged =
    both.allowPrivilegeEscalation === false || (both.capabilities?.drop ?? []).includes('ALL');
  return unprivileged ? ['--no-privs'] : [];
}
