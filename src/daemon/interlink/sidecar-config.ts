import { parse } from 'yaml';
import { interlinkSource } from '../../clients/interlink/source-name.ts';
import { builtInPlugins, Registry } from '../../plugins/registry.ts';
import { isObject } from '../../util/json.ts';
import { nearest, whatIsMeant } from '../../util/nearest.ts';
import { check } from '../../util/schema.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { keysWithoutEffect, mappedKeys, type KeyType } from './sidecar-keys.ts';

type Values = Readonly<Record<string, unknown>>;

/** A `SidecarConfig.yaml`, by thresher's names. */
export interface SidecarConfig {
  /** Those of `sources.interlink`. */
  readonly options: Values;
  /** DataRootFolder. */
  readonly dataRoot: string;
  /** Submit commands of all jobs. */
  readonly submit: Values;
  /** Options of the monitor. */
  readonly monitor: Values;
  /** `http` of the settings. */
  readonly http: Values;
  readonly logLevel?: 'debug' | 'error';
  /** Sentences on keys that have no effect. */
  readonly warnings: readonly string[];
}

const forms: Readonly<Record<KeyType, readonly [text: string, read: (value: unknown) => unknown]>> = {
  text: ['a text', (value) => (typeof value === 'string' ? value : undefined)],
  boolean: ['true or false', (value) => (typeof value === 'boolean' ? value : undefined)],
  texts: ['a list of texts', (value) => (isTexts(value) ? value : undefined)],
  port: ['a port', portOf],
  socket: [
    'the path of a socket',
    (value) => (typeof value === 'string' ? value.replace(/^unix:\/\//, '') : undefined),
  ],
  taints: ['a list of taints with key, effect and perhaps value', taintsOf],
};

/** The schema of the source's options. */
const schema = new Registry(builtInPlugins).sources.find(({ name }) => name === interlinkSource)?.config;
if (schema === undefined) throw new Error(`there is no source ${interlinkSource}`);
const optionNames = Object.keys((schema as { readonly properties?: object }).properties ?? {});
const checked = (options: Values) => check(schema, options);

const usualRoot = '.interlink';
/** Options that the command itself decides. */
const decided = ['dataRoot', 'queue', 'htcondor'];
const ownParts = ['submit', 'monitor', 'http'] as const;
const ownKey = 'thresher';
const levels = { VerboseLogging: 'debug', ErrorsOnlyLogging: 'error' } as const;

/** @throws ThresherError `interlink-config` */
export function readSidecarConfig(text: string, file: string): SidecarConfig {
  const value = parsed(text, file);
  const options: Record<string, unknown> = {};
  const warnings: string[] = [];
  const known = [...Object.keys(mappedKeys), ...Object.keys(levels), 'ContainerRuntime', ownKey];
  for (const [name, given] of Object.entries(value)) {
    // An empty value is the same as none.
    if (given === null || given === '' || known.includes(name)) continue;
    const why = Object.hasOwn(keysWithoutEffect, name) ? keysWithoutEffect[name] : undefined;
    if (why === undefined) warnings.push(`${file}: ${name} has no effect: ${unknownKey(name, known)}`);
    else if (given !== false) warnings.push(`${file}: ${name} has no effect: ${why}`);
  }
  for (const [name, { option, type }] of Object.entries(mappedKeys)) {
    const given = value[name];
    if (given === undefined || given === null || given === '') continue;
    const [form, read] = forms[type];
    const meant = read(given);
    if (meant === undefined) throw wrong(file, name, given, form);
    options[option] ??= meant;
  }
  requireApptainer(value['ContainerRuntime'], file);
  const { submit, monitor, http, ...own } = ownPart(value[ownKey] ?? {}, file);
  const { dataRoot = usualRoot, ...others } = options;
  const logLevel = levelIn(value, file);
  return {
    options: { ...others, ...own },
    dataRoot: String(dataRoot),
    submit,
    monitor,
    http,
    ...(logLevel && { logLevel }),
    warnings,
  };
}

function unknownKey(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  if (meant !== undefined) return `did you mean "${meant}"?`;
  return optionNames.includes(name)
    ? `thresher's own options stand below the key "${ownKey}"`
    : 'neither interLink nor thresher has such a key; remove it';
}

function ownPart(given: unknown, file: string) {
  if (!isObject(given)) throw wrong(file, ownKey, given, 'a list of options with values');
  const allowed = optionNames.filter((name) => !decided.includes(name));
  for (const name of Object.keys(given)) {
    if (decided.includes(name)) throw problem(file, `${ownKey}.${name} is not yours to set: ${whyDecided}`);
    if (allowed.includes(name) || ownParts.some((part) => part === name)) continue;
    const meant = whatIsMeant(name, [...allowed, ...ownParts]);
    throw problem(file, `${ownKey}.${name} is no option: ${meant}`);
  }
  const part = (name: (typeof ownParts)[number]): Values => {
    const value = given[name] ?? {};
    if (!isObject(value)) throw wrong(file, `${ownKey}.${name}`, value, 'a list of options with values');
    return value;
  };
  const parts = { submit: part('submit'), monitor: part('monitor'), http: part('http') };
  const options = Object.fromEntries(Object.entries(given).filter(([name]) => allowed.includes(name)));
  const found = checked(options);
  if (found.ok) return { ...options, ...parts };
  const [first] = found.problems;
  throw problem(
    file,
    `${ownKey}${(first?.pointer ?? '').replaceAll('/', '.')}: ${first?.message ?? 'is wrong'}`,
  );
}

const whyDecided =
  'DataRootFolder has the files, and the queue is the one of this command; run a daemon with settings of your own for another';

/** @throws ThresherError `interlink-config` */
function requireApptainer(given: unknown, file: string): void {
  if (given === undefined || given === null || given === '') return;
  if (given === 'singularity' || given === 'apptainer') return;
  throw wrong(
    file,
    'ContainerRuntime',
    given,
    '"singularity", which is apptainer, too: thresher has no other',
  );
}

/** Verbose wins, as there. */
function levelIn(value: Values, file: string): SidecarConfig['logLevel'] {
  for (const [name, level] of Object.entries(levels)) {
    const given = value[name] ?? false;
    if (typeof given !== 'boolean') throw wrong(file, name, given, 'true or false');
    if (given) return level;
  }
  return undefined;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function portOf(value: unknown): number | undefined {
  return /^\d{1,5}$/.test(String(value)) && Number(value) <= 65_535 ? Number(value) : undefined;
}

/** The slurm plugin writes its keys with capitals. */
function taintsOf(value: unknown) {
  if (!Array.isArray(value)) return undefined;
  const taints = value.map((one: unknown) => {
    if (!isObject(one)) return undefined;
    const { key = one['Key'], value: given = one['Value'], effect = one['Effect'] } = one;
    // YAML reads 1 and true as no texts.
    const isPlain = typeof given === 'string' || typeof given === 'number' || typeof given === 'boolean';
    return { key, ...(isPlain && { value: String(given) }), effect };
  });
  return checked({ taints }).ok ? taints : undefined;
}

function wrong(file: string, name: string, given: unknown, form: string): ThresherError {
  return problem(file, `${name} is ${JSON.stringify(given)}; it must be ${form}`);
}

function problem(file: string, message: string): ThresherError {
  return new ThresherError('interlink-config', `${file}: ${message}`, { file });
}

/** @throws ThresherError `interlink-config` */
function parsed(text: string, file: string): Values {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new ThresherError(
      'interlink-config',
      `${file} is no YAML: ${messageOf(error).split('\n')[0] ?? ''}`,
      { file },
    );
  }
  if (value === null || value === undefined) return {};
  if (!isObject(value))
    throw new ThresherError('interlink-config', `${file} must have keys and values`, { file });
  return value;
}
