import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Context, Observation, Worker } from '../../src/plugins/contracts/index.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import { type BackendParts, partOf } from './backend-parts.ts';
import type { ControlPlane, KubeObject, Namespace } from './kubernetes.ts';
import { pluginContext } from './plugin-context.ts';
import { workerOf } from './samples.ts';
import { temporaryDirectory } from './temporary.ts';

export { watch, type Watched } from './watched.ts';

const names = { submitter: 'K8sSubmitter', monitor: 'K8sMonitor', sweeper: 'K8sSweeper' } as const;

/** The Kubernetes plugins in this process, in one namespace and without a daemon. */
export class KubernetesBackend {
  readonly space: Namespace;
  readonly directory = temporaryDirectory();
  readonly context: Context;
  #lastId = 1000;

  constructor(plane: ControlPlane, space: Namespace, changes: Partial<Context> = {}) {
    this.space = space;
    this.context = pluginContext({ factoryId: 'factory-a', configDir: this.directory, ...changes });
    plane.writeKubeconfig(join(this.directory, 'kubeconfig'));
  }

  /** A plugin as a queue's section makes it. @throws if the section is not sound. */
  plugin<K extends keyof BackendParts>(
    kind: K,
    section: Readonly<Record<string, unknown>> = {},
    queue = 'Q',
  ): BackendParts[K] {
    const where = { k8s_config_file: 'kubeconfig', k8s_namespace: this.space.name };
    const definition = new Registry(builtInPlugins).find(kind, 'thresher/kubernetes', names[kind]);
    return partOf(definition, kind, { ...where, ...section }, { ...this.context, queue });
  }

  /** A file in the directory that queues count paths from: text, or a value as YAML. */
  write(name: string, content: unknown): void {
    writeFileSync(join(this.directory, name), typeof content === 'string' ? content : stringify(content));
  }

  /** A worker that was never used before. */
  worker(changes: Partial<Worker> = {}): Worker {
    const id = ++this.#lastId;
    const placement = `kubernetes:${join(this.directory, 'kubeconfig')}/${this.space.name}`;
    return workerOf(id, { name: `factory-a-${id}`, placement, ...changes });
  }

  /** Submits it by a template of its own. @throws if it was not accepted. */
  async submit(
    worker: Worker,
    template: Readonly<Record<string, unknown>>,
    section: Readonly<Record<string, unknown>> = {},
  ): Promise<Worker> {
    const k8s_yaml_file = `${worker.workerId}.yaml`;
    writeFileSync(join(this.directory, k8s_yaml_file), stringify(template));
    const submitter = this.plugin('submitter', { k8s_yaml_file, ...section }, worker.queue);
    const outcome = (await submitter.submit([worker], AbortSignal.timeout(90_000))).get(worker.workerId);
    if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
    return { ...worker, handle: outcome.handle };
  }

  /** The Job of a worker, as far as its name says it. */
  job({ name }: Worker): KubeObject {
    return { metadata: { name } };
  }
}

/**
 * One line for all that an observation says: "failed Error exit-status 3; node, start, end".
 * @throws if its times are not in order, or not of the last five minutes.
 */
export function brief({ status, nativeStatus, error, exitCode, ...rest }: Observation): string {
  const { node, startTime, endTime, observedAt } = rest;
  const words = [status, nativeStatus, error?.code, exitCode].filter((word) => word !== undefined);
  const there = Object.entries({ node, start: startTime, end: endTime });
  const known = there.flatMap(([name, value]) => (value === undefined ? [] : [name]));
  // The cluster's times are of whole seconds.
  const times = [observedAt - 300_000, startTime, endTime, observedAt + 1000].filter(
    (time) => time !== undefined,
  );
  if (times.some((time, index) => time < (times[index - 1] ?? 0)))
    throw new Error(`times out of order: ${JSON.stringify({ startTime, endTime, observedAt })}`);
  return [words.join(' '), ...(known.length > 0 ? [known.join(', ')] : [])].join('; ');
}
