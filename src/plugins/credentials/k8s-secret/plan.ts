import { basename, dirname, resolve } from 'node:path';
import { readAccess } from '../../../clients/kubernetes/access.ts';
import { accessSource, type ClusterPlace } from '../../../clients/kubernetes/place.ts';
import { type Located, toPointer } from '../../../util/located.ts';
import { readJsonFile } from '../../../util/located-file.ts';
import { whatIsMeant } from '../../../util/nearest.ts';
import type { OperatorFiles } from '../../../util/operator-files.ts';
import { check } from '../../../util/schema.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import type { CheckContext } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { type K8sSecretConfig, K8sSecretPlan } from './schema.ts';

export type Loaded =
  | {
      readonly ok: true;
      readonly plan: K8sSecretPlan;
      readonly directory: string;
      readonly warnings: readonly DefinitionProblem[];
    }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** Harvester's examples have an empty kubeconfig and an empty namespace for "none". */
export function placeOf({ k8s_config_file: file, k8s_context: context }: K8sSecretPlan): ClusterPlace {
  return { ...(file && { k8s_config_file: file }), ...(context !== undefined && { k8s_context: context }) };
}

export function namespacesOf({ k8s_namespace }: K8sSecretPlan): string[] {
  return [...new Set([k8s_namespace].flat().map((name) => name || 'default'))];
}

/** The options of a section, or of the file it names, and where its relative paths count from. */
export async function loadPlan(
  config: K8sSecretConfig,
  { configDir, files }: Pick<CheckContext, 'configDir' | 'files'>,
): Promise<Loaded> {
  const { certFile, inCertFile, ...own } = config;
  const named = inCertFile ?? certFile;
  if (named === undefined) {
    if (own.proxy_files === undefined) {
      const message = 'it is missing: name the files, or in certFile a JSON file with proxy_files in it';
      return { ok: false, problems: [{ pointer: '/proxy_files', code: 'wrong-type', message }] };
    }
    return whole(
      { ...own, proxy_files: own.proxy_files },
      { directory: configDir, files },
      (problem) => problem,
    );
  }
  if (own.proxy_files !== undefined) {
    const message = `${named} says which files: take this one away, or the other`;
    return { ok: false, problems: [{ pointer: '/proxy_files', code: 'wrong-type', message }] };
  }
  const located = await readJsonFile(files, resolve(configDir, named), 'options');
  const inFile = (problem: DefinitionProblem) => ({ ...problem, ...placeIn(located, problem.pointer) });
  if (located.value === undefined) {
    const problems = located.problems.map(({ code, message, line }): DefinitionProblem => {
      const isSyntax = code === 'syntax';
      return { ...inFile({ pointer: '', code: isSyntax ? code : 'file-unreadable', message }), line };
    });
    return { ok: false, problems };
  }
  const found = check(K8sSecretPlan, located.value);
  if (!found.ok) {
    const problems = found.problems.map(({ pointer, code, message }) =>
      inFile({ pointer, code, message: `${pointer.slice(1) || 'the file'}: ${message}` }),
    );
    return { ok: false, problems };
  }
  const loaded = await whole(found.value, { directory: dirname(located.file), files }, inFile);
  const known = Object.keys(K8sSecretPlan.properties);
  const unread = Object.keys(located.value as object)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const message = `K8sSecretCredManager does not read "${key}"; ${whatIsMeant(key, known)}`;
      return inFile({ pointer: toPointer([key]), code: 'unread-option', severity: 'warning', message });
    });
  if (!loaded.ok) return { ok: false, problems: [...loaded.problems, ...unread] };
  return { ...loaded, warnings: unread };
}

function placeIn(located: Located, pointer: string) {
  return { file: located.file, line: located.lineOf(pointer) };
}

interface PlanPlace {
  readonly directory: string;
  readonly files: OperatorFiles;
}

async function whole(
  plan: K8sSecretPlan,
  place: PlanPlace,
  placed: (problem: DefinitionProblem) => DefinitionProblem,
): Promise<Loaded> {
  const { directory } = place;
  const problems = (await unfitting(plan, place)).map(placed);
  return problems.length === 0 ? { ok: true, plan, directory, warnings: [] } : { ok: false, problems };
}

/** Mistakes that no schema shows. */
async function unfitting(plan: K8sSecretPlan, { directory, files }: PlanPlace): Promise<DefinitionProblem[]> {
  const problems: DefinitionProblem[] = [];
  for (const namespace of namespacesOf(plan)) {
    if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) continue;
    const message = `${JSON.stringify(namespace)} cannot be a namespace: at most 63 small letters, digits and inner dashes`;
    problems.push({ pointer: '/k8s_namespace', code: 'wrong-type', message });
  }
  const keys = plan.proxy_files.map((file) => basename(file));
  for (const [index, key] of keys.entries()) {
    const pointer = `/proxy_files/${index}`;
    if (keys.indexOf(key) !== index) {
      const message = `two files have the name ${key}, under which each is kept in the Secret: give one another name`;
      problems.push({ pointer, code: 'wrong-type', message });
    } else if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
      const message = `${JSON.stringify(key)} cannot be a key of a Secret: letters, digits, "-", "_" and "." only`;
      problems.push({ pointer, code: 'wrong-type', message });
    }
  }
  try {
    await readAccess(files, accessSource(placeOf(plan), directory));
  } catch (error) {
    const isWrong = error instanceof ThresherError && error.code === 'kubeconfig-wrong';
    const code = isWrong ? 'syntax' : 'file-unreadable';
    problems.push({ pointer: '/k8s_config_file', code, message: messageOf(error) });
  }
  return problems;
}
