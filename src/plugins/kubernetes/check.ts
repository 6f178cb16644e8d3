import { brief } from '../../util/beginning.ts';
import { resolve } from 'node:path';
import { readAccess } from '../../clients/kubernetes/access.ts';
import { filesOf } from '../../clients/kubernetes/credentials.ts';
import { accessSource } from '../../clients/kubernetes/place.ts';
import type { FileKind } from '../../util/file-kinds.ts';
import { hasCode } from '../../util/files.ts';
import { whyUnreadable } from '../../util/operator-files.ts';
import { toPointer } from '../../util/pointer.ts';
import { withoutEnd } from '../../util/without-end.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { CheckContext } from '../contracts/definition.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { checkSizes } from '../contracts/sizes.ts';
import { templateOptions } from './queue-template.ts';
import { type K8sMonitorConfig, type K8sSubmitterConfig, namespaceOf, type Where } from './schema.ts';
import { badPendingRules } from './state/pending-rules.ts';
import { starterIn } from './template/fill.ts';
import { type KubernetesTemplate, loadTemplate } from './template/template.ts';

export async function checkSubmitter(
  config: K8sSubmitterConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  return [...(await checkWhere(config, context)), ...(await checkTemplateFile(config, context))];
}

export async function checkMonitor(
  config: K8sMonitorConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  return [...(await checkWhere(config, context)), ...badPendingRules(config.pendingRules)];
}

/** The names that a namespace may have. Source: RFC 1123, as Kubernetes' validation has it. */
const namespacePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export async function checkWhere(config: Where, context: CheckContext): Promise<DefinitionProblem[]> {
  const problems: DefinitionProblem[] = [];
  const namespace = namespaceOf(config);
  if (!namespacePattern.test(namespace)) {
    const pointer = namespace === config.k8s_namespace ? '/k8s_namespace' : '/k8s.namespace';
    const message = `${brief(JSON.stringify(namespace))} cannot be a namespace: at most 63 small letters, digits and inner dashes`;
    problems.push({ pointer, code: 'wrong-type', message });
  }
  try {
    const access = await readAccess(context.files, accessSource(config, context.configDir));
    for (const { file, kind } of filesOf(access)) {
      const why = await whyNoFile(context, file, kind);
      if (why === undefined) continue;
      // Only a warning: what writes a token may start after the daemon, and until then the queue waits with the reason.
      const message = `${access.source} names ${file}, which ${why}`;
      problems.push({ pointer: '/k8s_config_file', severity: 'warning', code: 'file-unreadable', message });
    }
  } catch (error) {
    const code =
      error instanceof ThresherError && error.code === 'kubeconfig-wrong' ? 'syntax' : 'file-unreadable';
    problems.push({ pointer: '/k8s_config_file', code, message: messageOf(error) });
  }
  return problems;
}

async function checkTemplateFile(
  config: K8sSubmitterConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  const file = resolve(context.configDir, config.k8s_yaml_file);
  const options = { ...templateOptions(config), namespace: namespaceOf(config) };
  const loaded = await loadTemplate(context.files, file, options);
  const found = loaded.ok ? loaded.warnings : loaded.problems;
  return [
    ...found.map((problem) =>
      problem.code === 'file-unreadable'
        ? { pointer: '/k8s_yaml_file', code: problem.code, message: `${brief(file)}: ${problem.message}` }
        : problem,
    ),
    ...(loaded.ok ? checkSizes(JSON.stringify(loaded.template.job), file, context) : []),
    ...(await checkProxy(config, context, loaded.ok ? loaded.template : undefined)),
    ...(loaded.ok ? checkDirectories(config, loaded.template) : []),
  ];
}

/** The end of a sentence that begins with the file's name; undefined for one that can be read, or may by the daemon's user. */
async function whyNoFile({ files }: CheckContext, file: string, kind: FileKind): Promise<string | undefined> {
  try {
    await files.read(file, kind);
    return undefined;
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM')) return undefined;
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return 'is not there: write it, or name the right one';
    return `cannot be used: ${whyUnreadable(error, kind)}`;
  }
}

/** Pilots that get no proxy fail one after the other, far away: said here as far as it can be seen. */
async function checkProxy(
  config: K8sSubmitterConfig,
  context: CheckContext,
  template: KubernetesTemplate | undefined,
): Promise<DefinitionProblem[]> {
  const { proxySecretPath: path, x509UserProxy } = config;
  if (path === undefined) {
    if (x509UserProxy === undefined) return checkStarted(config, template);
    const file = resolve(context.configDir, x509UserProxy);
    const why = await whyNoFile(context, file, 'proxy');
    if (why === undefined) return [];
    // The service that renews it may start after the daemon; until then the queue waits with the reason.
    const message = `the proxy ${brief(file)} ${why}`;
    return [{ pointer: '/x509UserProxy', severity: 'warning', code: 'file-unreadable', message }];
  }
  const idle: DefinitionProblem[] = [];
  if (x509UserProxy !== undefined) {
    const message =
      'x509UserProxy has no effect beside proxySecretPath: pilots read the proxy there; remove one of them';
    idle.push({ pointer: '/x509UserProxy', severity: 'notice', code: 'option-without-effect', message });
  }
  const pilot = template?.job.spec.template.spec.containers.find(({ name }) => name === template.pilot);
  const mounts = pilot?.volumeMounts ?? [];
  const serves = mounts.some(
    ({ mountPath }) => path === mountPath || path.startsWith(`${withoutEnd(mountPath, '/')}/`),
  );
  if (pilot === undefined || serves) return idle;
  const there =
    mounts.length === 0
      ? 'it mounts nothing'
      : `it mounts ${mounts.map(({ mountPath }) => mountPath).join(', ')}`;
  const message = `no volume of container ${pilot.name} holds ${path} (${there}): mount the proxy's Secret there`;
  return [{ pointer: '/proxySecretPath', severity: 'warning', code: 'template-risky', message }, ...idle];
}

/**
 * Directories of the pilot that its template sets otherwise. Harvester writes its own behind those of the template, and the last of several
 * variables of one name counts. Source: Harvester's k8s_utils.
 */
function checkDirectories(
  { 'k8s.volumes.pilot_dir_mount': directory }: K8sSubmitterConfig,
  { file, job, pilot, lineOf }: KubernetesTemplate,
): DefinitionProblem[] {
  const { containers } = job.spec.template.spec;
  return containers.flatMap(({ name: container, env = [] }, at) =>
    env.flatMap(({ name, value, valueFrom }, index): DefinitionProblem[] => {
      const isOther = (value ?? valueFrom) !== undefined && value !== directory && value !== `$${name}`;
      if (container !== pilot || !['TMPDIR', 'HOME'].includes(name) || !isOther) return [];
      const pointer = toPointer([...podContainers, at, 'env', index, 'value']);
      const is = typeof value === 'string' ? `is ${brief(value)} and not` : 'is not';
      const message = `${name} of the pilot ${is} ${directory}, by which Harvester replaces it: remove it from the template for that, or set k8s.volumes.pilot_dir_mount`;
      return [{ pointer, file, line: lineOf(pointer), severity: 'notice', code: 'template-risky', message }];
    }),
  );
}

const podContainers = ['spec', 'template', 'spec', 'containers'] as const;

/** The starter ends at once where it finds no credential. */
function checkStarted(
  config: K8sSubmitterConfig,
  template: KubernetesTemplate | undefined,
): DefinitionProblem[] {
  const { tokenDir, pandaTokenFilename, pandaTokenKeyFilename } = config;
  if (template === undefined || starterIn(template, config)?.ours !== true) return [];
  if ([tokenDir, pandaTokenFilename, pandaTokenKeyFilename].every((part) => part !== undefined)) return [];
  const message =
    'the template has no command, and the starter of pilots needs a proxy or a token: set proxySecretPath or x509UserProxy, or tokenDir, pandaTokenFilename and pandaTokenKeyFilename';
  return [{ pointer: '/proxySecretPath', severity: 'warning', code: 'template-risky', message }];
}
