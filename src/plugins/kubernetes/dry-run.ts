import { fromOutside } from '../../util/own-secrets.ts';
import { toReason } from '../../worker/errors.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { toPointer } from '../../util/located.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { asFence } from './fence.ts';
import type { FilledJob } from './template/fill.ts';
import type { K8sNamespace } from './namespace.ts';
import type { Needs, Rights } from './rights.ts';
import type { KubernetesTemplate } from './template/template.ts';

/** A field as the API server names it: `spec.template.spec.containers[0].image`. */
const field = /\b(?:spec|metadata)(?:\.[A-Za-z]\w*|\[\d+\])+/;

export interface DryRunParts {
  readonly namespace: K8sNamespace;
  readonly rights: Rights;
  readonly needs: Needs;
}

/** Has the API server check a Job by its own schema and admission, without keeping it. */
export async function dryRun(
  { namespace, rights, needs }: DryRunParts,
  template: KubernetesTemplate,
  job: FilledJob,
  signal: AbortSignal,
): Promise<DefinitionProblem[]> {
  try {
    const missing = await rights.missing(needs, signal);
    if (missing.length > 0)
      return missing.map(({ message }) => ({ pointer: '/k8s_config_file', code: 'server-refused', message }));
    const missed = await rights.missed(signal);
    const forFiles =
      needs.files === 'sometimes' ? await rights.missingForFiles(['ConfigMap', 'Secret'], signal) : [];
    const { warnings } = await namespace.client.dryRun(namespace.jobs, job, { signal });
    // The API server must also admit the fence, which takes a worker's place after a crash.
    await namespace.client.dryRun(namespace.jobs, asFence(job, 1), { signal });
    const warned = { severity: 'warning', code: 'server-warned' } as const;
    return [
      ...missed.map(({ message }) => ({ ...warned, pointer: '/k8s_config_file', message })),
      ...forFiles.map(({ message }) => ({
        pointer: '/k8s_config_file',
        severity: 'notice' as const,
        code: 'server-warned' as const,
        message: `${message}; without it no worker of this queue gets files, as \`thresher submit --file\` sends them`,
      })),
      ...warnings.map((message) => ({
        ...placeOf(message, template),
        ...warned,
        message: `the API server warns: ${fromOutside(message)}`,
      })),
    ];
  } catch (error) {
    const { code, message } = toReason(error);
    const where = `namespace ${namespace.name}: ${message} (${code})`;
    if (isKubernetesError(error, 'kubernetes-quota')) {
      const warned = `the API server would not take its Job now: ${where}`;
      return [{ ...placeOf('', template), severity: 'warning', code: 'server-warned', message: warned }];
    }
    if (isKubernetesError(error, 'kubernetes-unauthorized'))
      return [{ pointer: '/k8s_config_file', code: 'server-refused', message: where }];
    const said = isKubernetesError(error) && error.status !== undefined && error.status < 500;
    if (!said) return [{ pointer: '/k8s_config_file', code: 'server-unknown', message: where }];
    return [
      {
        ...placeOf(message, template),
        code: 'server-refused',
        message: `the API server would refuse its Job: ${where}`,
      },
    ];
  }
}

/** Finds the field of a message in the template. A field that thresher added gets the nearest place above. */
function placeOf(message: string, { file, lineOf }: KubernetesTemplate) {
  const named = field.exec(message)?.[0] ?? '';
  const pointer = named === '' ? '' : toPointer(named.split(/[.[\]]+/).filter((part) => part !== ''));
  return { file, pointer, line: lineOf(pointer) };
}
