import { brief } from '../../util/beginning.ts';
import { dirname, resolve } from 'node:path';
import type { Problem } from '../../util/located.ts';
import { toPointer } from '../../util/located.ts';
import { managersInLists } from './credential-lists.ts';
import { unreadOption } from './manager-options.ts';
import type { ChoiceProblem, ManagerEntry } from './manager-entry.ts';
import type { CheckContext } from '../../plugins/contracts/index.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { check } from '../../util/schema.ts';
import { judgeAbsent } from './absent-plugin.ts';
import { linkOff } from './demand.ts';
import { isObject, type JsonObject } from '../../util/json.ts';
import type { CredentialManagerChoice, PluginCatalogue, QueueConfig } from './queue-config.ts';
import { SectionHead } from './queue-schema.ts';
import type { SourcesOfSettings } from './sources.ts';
import type { LoadedSettings } from '../settings/settings.ts';

/** A manager's options, checked; no `choice` where they cannot be used, or thresher has no such manager. */
export interface Choice {
  readonly choice?: CredentialManagerChoice;
  readonly problems: readonly ChoiceProblem[];
}

/** The section that names a manager, and the settings from which Harvester would take values for it. */
interface Surroundings extends Pick<CheckContext, 'configDir' | 'stateDir' | 'files'> {
  /** `pandaURLSSL` of `[pandacon]`, for managers that have such an option. */
  readonly pandaURLSSL?: string | undefined;
  /** The PanDA server of the settings, for managers that call it. */
  readonly sources?: ServerOfSettings | undefined;
}

type ServerOfSettings = Pick<SourcesOfSettings, 'pandaServer' | 'linkIsOff'>;

/** The section in which Harvester's managers are looked up, for settings and queues alike. */
const managerSection = {
  ...({ section: 'credmanager', harvesterKind: 'credmanager', kind: 'credmanager' } as const),
  pull: true,
};

/** @returns undefined where thresher has no such manager */
export async function chooseManager(
  { name, module, ...options }: ManagerEntry,
  { configDir, stateDir, files, pandaURLSSL, sources }: Surroundings,
  catalogue: PluginCatalogue,
): Promise<Choice | undefined> {
  const definition = catalogue.find('credmanager', module, name);
  if (definition === undefined) return undefined;
  const own = Object.keys((definition.config as { properties?: object }).properties ?? {});
  const written: JsonObject = { ...(pandaURLSSL !== undefined && { pandaURLSSL }), ...options };
  const given = Object.fromEntries(
    Object.entries(written).filter(([key, value]) => own.includes(key) && value !== null),
  );
  const unread = Object.keys(options)
    .filter((key) => !own.includes(key))
    .map((key) => unreadOption(name, key, own));
  const checked = check(definition.config, given);
  if (!checked.ok) {
    return {
      problems: checked.problems.map(({ pointer, message }) => ({ pointer, code: 'wrong-type', message })),
    };
  }
  const found = await definition.check(checked.value, { queue: '', stateDir, configDir, files });
  const problems = [
    ...unread,
    ...(definition.needsServer ? lackingServer(name, sources) : []),
    ...found.map(({ file, line, message, ...problem }): ChoiceProblem => {
      const where = file === undefined ? '' : `${file}:${line ?? 0}: `;
      return { ...problem, message: `${where}${message}` };
    }),
  ];
  if (problems.some(({ severity }) => (severity ?? 'error') === 'error')) return { problems };
  return { choice: { name, module, config: checked.value as JsonObject, configDir }, problems };
}

/** The mistake of a manager that calls the PanDA server, where the settings have none for it. */
function lackingServer(
  manager: string,
  { pandaServer, linkIsOff = false }: ServerOfSettings = {},
): readonly ChoiceProblem[] {
  if (pandaServer !== undefined) return [];
  const why = linkIsOff
    ? linkOff
    : 'the settings name none with a login: in pandacon set server_api_url_ssl, and cert_file and key_file, or auth_type: oidc with auth_token and auth_origin';
  return [{ pointer: '', code: 'panda-server-off', message: `${manager} asks the PanDA server, and ${why}` }];
}

/** An entry of a queue's `credmanagers`. A queue is incomplete without a manager of Harvester's that thresher lacks. */
export async function chooseOfQueue(
  value: unknown,
  names: Parameters<typeof fillEntry>[1],
  surroundings: Surroundings,
  catalogue: PluginCatalogue,
): Promise<Choice> {
  const head = check(SectionHead, value);
  if (!head.ok) return { problems: head.problems.map((problem) => ({ ...problem, code: 'wrong-type' })) };
  const { name, module } = head.value;
  const filled = fillEntry(value, names) as ManagerEntry;
  const open = placeholdersIn(filled);
  if (open.length > 0) return { problems: [{ pointer: '', ...toFillIn([{ keys: open, entry: filled }]) }] };
  // A credential that is missing stops the queue by its own reason, and not before.
  const chosen = await chooseManager(filled, surroundings, catalogue);
  if (chosen !== undefined) return chosen;
  const finding = judgeAbsent({ ...managerSection, name, module }, catalogue);
  if (finding === undefined) return { problems: [] };
  // Only Harvester's names and our own can be told from misspelt ones.
  if (/^(pandaharvester\.|thresher\/)/.test(module)) return { problems: [finding] };
  const message = `thresher does not run ${brief(name)} of ${brief(module)}, a credential manager of a third party: keep its credentials fresh by other means`;
  const notice = { pointer: '', code: 'credmanager-not-applied', message } as const;
  return { problems: [{ ...notice, severity: 'notice', subject: brief(name) }] };
}

/** The keys of an entry that still have `FIXME`, the placeholder of Harvester's template. */
function placeholdersIn(entry: JsonObject): readonly string[] {
  return Object.keys(entry).filter((key) => JSON.stringify(entry[key] ?? null).includes('FIXME'));
}

/** The word on entries that a site has not filled in yet. Neither their plugins nor their files are judged: both may be placeholders. */
function toFillIn(
  found: readonly { readonly keys: readonly string[]; readonly entry: { readonly name: string } }[],
): Omit<ChoiceProblem, 'pointer'> {
  const named = found.map(
    ({ keys, entry }) => `${brief(entry.name)} (${keys.map((key) => brief(key)).join(', ')})`,
  );
  const [beginning, rest] =
    named.length === 1
      ? ['a credential manager is', 'it does']
      : [`${named.length} credential managers are`, 'they do'];
  const message = `${beginning} still to fill in, and ${rest} not run until then: ${named.join(', ')}; write the values of your site in place of FIXME, or remove the entries`;
  return { code: 'template-placeholder', severity: 'warning', message };
}

/** An entry of the settings, before it is checked. */
interface Entry {
  readonly pointer: string;
  readonly value: ManagerEntry;
}

/** The credential managers of the settings. */
export interface ManagersOfSettings {
  readonly choices: readonly CredentialManagerChoice[];
  readonly problems: readonly Problem[];
}

/** The managers of the settings' section `credmanager`: its parallel lists, and `pluginConfigs`. */
export async function managersOf(
  settings: LoadedSettings,
  catalogue: PluginCatalogue,
  files: OperatorFiles,
  sources: ServerOfSettings,
): Promise<ManagersOfSettings> {
  const section: unknown = settings.values.credmanager;
  const problems: Problem[] = [];
  const choices: CredentialManagerChoice[] = [];
  if (!isObject(section)) return { choices, problems };
  const add = ({ pointer, code, message, severity = 'error' }: ChoiceProblem) => {
    problems.push({ ...settings.placeOf(`/credmanager${pointer}`), severity, code, message });
  };
  const listed = managersInLists(section);
  for (const problem of listed.problems) add(problem);
  const all = [
    ...listed.entries.map((value): Entry => ({ pointer: '', value })),
    ...fromPluginConfigs(section, add),
  ];
  const open = all.flatMap(({ value }) => {
    const keys = placeholdersIn(value);
    return keys.length === 0 ? [] : [{ keys, entry: value }];
  });
  if (open.length > 0) add({ pointer: '', ...toFillIn(open) });
  const entries = all.filter(({ value }) => open.every(({ entry }) => entry !== value));
  const surroundings = {
    configDir: dirname(settings.file),
    stateDir: settings.stateDir,
    files,
    pandaURLSSL: settings.values.pandacon.pandaURLSSL,
    sources,
  };
  for (const { pointer, value } of entries) {
    const chosen = await chooseManager(value, surroundings, catalogue);
    if (chosen === undefined) {
      const absent = absentManager(value, catalogue);
      if (absent !== undefined) add({ ...absent, pointer });
      continue;
    }
    for (const problem of chosen.problems) add({ ...problem, pointer: pointer + problem.pointer });
    if (chosen.choice !== undefined) choices.push(chosen.choice);
  }
  return { choices, problems };
}

type Add = (problem: ChoiceProblem) => void;

/**
 * A manager that thresher does not have. One of Harvester's is incomplete, and the others go on; any other is a mistake.
 * Undefined for Harvester's Dummy, whose task is to do nothing.
 */
function absentManager(
  { name, module }: ManagerEntry,
  catalogue: PluginCatalogue,
): Pick<ChoiceProblem, 'code' | 'severity' | 'message'> | undefined {
  if (module.startsWith('pandaharvester.')) {
    const finding = judgeAbsent({ ...managerSection, name, module }, catalogue);
    if (finding === undefined) return undefined;
    const message = `incomplete: ${finding.message}; its credentials must be kept fresh by other means`;
    return { code: 'credmanager-not-applied', severity: 'warning', message };
  }
  const names = catalogue.names('credmanager').join(', ');
  const message = `there is no credential manager ${brief(name)} of ${brief(module)}; there is ${names}`;
  return { code: 'unknown-plugin', severity: 'error', message };
}

function fromPluginConfigs(section: JsonObject, add: Add): Entry[] {
  const { pluginConfigs } = section;
  if (pluginConfigs === undefined || pluginConfigs === null || pluginConfigs === '') return [];
  const wrong = (pointer: string, message: string) => {
    add({ pointer, code: 'wrong-type', message });
    return [];
  };
  if (!Array.isArray(pluginConfigs))
    return wrong('/pluginConfigs', 'pluginConfigs must be a list of {"module", "name", "configs"}');
  return (pluginConfigs as unknown[]).flatMap((one, index): Entry[] => {
    const at = toPointer(['pluginConfigs', index]);
    if (!isObject(one) || typeof one.module !== 'string' || typeof one.name !== 'string')
      return wrong(at, 'it must have "module" and "name"');
    const { module, name, configs } = one;
    if (!isObject(configs))
      return wrong(at, 'it must have "configs": an object with options by a name of your own');
    return Object.entries(configs).flatMap(([setup, options]): Entry[] => {
      const pointer = `${at}${toPointer(['configs', setup])}`;
      if (!isObject(options)) return wrong(pointer, `configs.${setup} must be an object with options`);
      return [{ pointer, value: { ...options, module, name } }];
    });
  });
}

/** `${harvesterID}`, `${queueName}` and `${common.KEY}` in a queue's entry. Source: Harvester's credential manager. */
export function fillEntry(
  value: unknown,
  names: { readonly queueName: string; readonly harvesterID: string; readonly common: JsonObject },
): unknown {
  if (typeof value === 'string') {
    const whole = /^\$\{common\.([^}]+)\}$/.exec(value)?.[1];
    if (whole !== undefined && names.common[whole] !== undefined) return names.common[whole];
    return value
      .replaceAll('${queueName}', () => names.queueName)
      .replaceAll('${harvesterID}', () => names.harvesterID)
      .replaceAll(/\$\{common\.([^}]+)\}/g, (text, key: string) => {
        const found = names.common[key];
        if (found === undefined) return text;
        return typeof found === 'string' ? found : JSON.stringify(found);
      });
  }
  if (Array.isArray(value)) return value.map((item) => fillEntry(item, names));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillEntry(inner, names)]));
}

/**
 * The credentials that a queue's own list `credentials` names. Paths ("/...", "./...", "../...") count from its file;
 * undefined without a list.
 */
export function namedCredentials({
  options,
  configDir,
}: Pick<QueueConfig, 'options' | 'configDir'>): string[] | undefined {
  return options.credentials?.map((name) => (isPath(name) ? resolve(configDir, name) : name));
}

/** Whether the managers of a queue in this state run. Source: Harvester's cred_manager, which skips `offline` alone. */
export function runsManagers(queueStatus: string): boolean {
  return queueStatus !== 'offline';
}

/** The managers of a queue that run; none while it is offline. */
export function managersRunBy({
  options,
  credmanagers = [],
}: Pick<QueueConfig, 'options' | 'credmanagers'>): readonly CredentialManagerChoice[] {
  return runsManagers(options.queueStatus) ? credmanagers : [];
}

/**
 * All managers: these, those that queues name, and a watch for the files that queues need and no manager keeps or
 * watches, one for each directory: a site may have hundreds of tokens. An expired proxy stops its queue even if another program renews it.
 */
export function allManagers(
  choices: readonly CredentialManagerChoice[],
  queues: readonly QueueConfig[],
  catalogue: PluginCatalogue,
): CredentialManagerChoice[] {
  const named = [...choices, ...queues.flatMap(managersRunBy)].map(withElements(queues));
  const kept = new Set(named.flatMap(filesKeptBy));
  const filled = new Set(named.flatMap(directoryFilledBy));
  const needed = new Map(
    queues.flatMap((queue) => filesOf(queue, catalogue).map((file) => [file, queue] as const)),
  );
  const watched = [...needed].filter(([file]) => !kept.has(file) && !filled.has(dirname(file)));
  const byDirectory = [...Map.groupBy(watched, ([file]) => dirname(file)).values()];
  return [
    ...named,
    ...byDirectory.map((some) => {
      const watcher = { name: 'FileCredManager', module: 'thresher/credentials' };
      const files = some.map(([file]) => file).toSorted();
      return { ...watcher, config: { files }, configDir: some[0]?.[1].configDir ?? '/' };
    }),
  ];
}

/**
 * Gives a manager that gets tokens for computing elements those of all queues: equal entries of several queues stay one manager.
 * Source: Harvester's iam_token_cred_manager, which takes those of all queues of CRIC that are not offline.
 */
export function withElements(
  queues: readonly QueueConfig[],
): (choice: CredentialManagerChoice) => CredentialManagerChoice {
  const texts = queues.filter(({ options }) => runsManagers(options.queueStatus)).flatMap(elementsOf);
  const ce_targets = [...new Set(texts)].toSorted().map((text) => JSON.parse(text) as JsonObject);
  return (choice) => {
    const { config } = choice;
    if (config.ce_targets === undefined || (config.target_type ?? 'ce') !== 'ce') return choice;
    return { ...choice, config: { ...config, ce_targets } };
  };
}

/** The computing elements of a queue as targets, each as JSON. */
function elementsOf({ plugins }: QueueConfig): string[] {
  const { ceList, ceEndpoint, tokenDir } = plugins.submitter?.config ?? {};
  const listed = (Array.isArray(ceList) ? ceList : []) as readonly JsonObject[];
  if (listed.length > 0)
    return listed.map(({ ce_endpoint, ce_flavour }) => JSON.stringify({ endpoint: ce_endpoint, ce_flavour }));
  if (tokenDir === undefined) return [];
  return [ceEndpoint].flat().flatMap((endpoint) => (endpoint ? [JSON.stringify({ endpoint })] : []));
}

function isPath(name: string): boolean {
  return /^\.{0,2}\//.test(name);
}

/** Files whose lifetime a manager says itself, by the options that all of them share. */
function filesKeptBy({ config, configDir }: CredentialManagerChoice): string[] {
  const { files, outCertFile, ccache, token_key_file } = config;
  return [files, outCertFile, ccache, token_key_file]
    .flat()
    .flatMap((file) => (typeof file === 'string' ? [resolve(configDir, file)] : []));
}

/** The directory in which a manager makes a file for each of its targets. */
function directoryFilledBy({ config: { out_dir }, configDir }: CredentialManagerChoice): string[] {
  return typeof out_dir === 'string' ? [resolve(configDir, out_dir)] : [];
}

function filesOf(queue: QueueConfig, catalogue: PluginCatalogue): string[] {
  const named = namedCredentials(queue)?.filter(isPath);
  if (named !== undefined) return named;
  const { submitter } = queue.plugins;
  if (submitter === undefined) return [];
  const { name, module, config } = submitter;
  const { x509UserProxy, proxySecretPath } = config;
  const more = catalogue.find('submitter', module, name)?.credentialFiles(config, queue.configDir) ?? [];
  // Harvester: x509UserProxy only counts without proxySecretPath.
  if (typeof x509UserProxy !== 'string' || x509UserProxy === '' || Boolean(proxySecretPath)) return [...more];
  return [resolve(queue.configDir, x509UserProxy), ...more];
}

/** Equal managers are one manager, whether settings or queues name them. */
export function keyOf({ name, module, config, configDir }: CredentialManagerChoice): string {
  return JSON.stringify([module, name, resolve(configDir), config]);
}
