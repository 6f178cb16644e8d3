import { resolve } from 'node:path';
import { hostname } from 'node:os';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerToStart } from '../../worker/worker.ts';
import type { ConnectedQueue } from '../contracts/backend.ts';
import type { Host } from '../contracts/context.ts';
import type { ProxySecret } from './proxy-secrets.ts';
import type { K8sDaemon, K8sSubmitterConfig } from './schema.ts';
import { fill, type FilledJob } from './template/fill.ts';
import { type KubernetesTemplate, loadTemplate } from './template/template.ts';

/** The template of a queue as one configuration chooses it. */
export interface TemplateChoice {
  readonly config: K8sSubmitterConfig;
  readonly configDir: string;
}

/** The template of a queue, and the Jobs that it makes. */
export class QueueTemplate {
  readonly file: string;
  readonly #config: K8sSubmitterConfig;
  readonly #daemon: Host;

  constructor({ config, configDir }: TemplateChoice, daemon: Host) {
    this.file = resolve(configDir, config.k8s_yaml_file);
    this.#config = config;
    this.#daemon = daemon;
  }

  /** Read anew each time: an operator's edit counts at once, and a broken one stops the queue with its reason. */
  async read(): Promise<KubernetesTemplate | Reason[]> {
    const loaded = await loadTemplate(this.#daemon.files, this.file, templateOptions(this.#config));
    if (loaded.ok) return loaded.template;
    return loaded.problems.map(({ file, line, message }) => ({
      code: 'preflight',
      message: `${file ?? ''}:${line ?? 0}: ${message}`,
    }));
  }

  jobOf(template: KubernetesTemplate, worker: WorkerToStart, proxySecret?: ProxySecret): FilledJob {
    return this.filler(template, proxySecret)(worker);
  }

  /** `jobOf` for many workers. */
  filler(template: KubernetesTemplate, proxySecret?: ProxySecret): (worker: WorkerToStart) => FilledJob {
    const { factoryId, harvesterId, logServer } = this.#daemon;
    const options = {
      factoryId,
      harvesterId,
      hostname: hostname(),
      config: this.#config,
      ...(logServer && { logServer }),
      ...(proxySecret && { proxySecret }),
    };
    return (worker) => fill(template, worker, options);
  }
}

/** Where nothing runs, the values that a template wants of a payload are stood in for: "1" is a label, a number and a quantity. */
export function withStandIns(worker: WorkerToStart, { payloadKeys }: KubernetesTemplate): WorkerToStart {
  if (payloadKeys.size === 0) return worker;
  const standIns = Object.fromEntries([...payloadKeys].map((key) => [key, '1']));
  return { ...worker, payload: { ...worker.payload, values: { ...standIns, ...worker.payload?.values } } };
}

/** The Job of a worker of whatever queue, as its submitter would make it; undefined where its template is broken or unknown. */
export type JobMaker = (worker: Worker) => Promise<FilledJob | undefined>;

/** Makes the Jobs of many workers: the template of each queue is read once, when it is first needed. */
export function jobMaker(daemon: K8sDaemon): JobMaker {
  const templates = new Map<ConnectedQueue, Promise<(worker: Worker) => FilledJob | undefined>>();
  return async (worker) => {
    const queue = daemon.queue(worker.queue, worker.configId);
    if (queue?.submitter === undefined) return undefined;
    const made = templates.get(queue) ?? readJobs({ ...queue, config: queue.submitter }, daemon);
    templates.set(queue, made);
    return (await made)(worker);
  };
}

async function readJobs(
  choice: TemplateChoice,
  daemon: Host,
): Promise<(worker: Worker) => FilledJob | undefined> {
  const ofQueue = new QueueTemplate(choice, daemon);
  const template = await ofQueue.read();
  if (Array.isArray(template)) return () => undefined;
  return (worker) => ofQueue.jobOf(template, withStandIns(worker, template));
}

export function templateOptions(config: K8sSubmitterConfig) {
  const { pilotContainer, onlyPilotContainer, pilotsStarterConfigMap } = config;
  const hostImage = config['k8s.host_image'];
  return {
    ...(pilotContainer !== undefined && { pilotContainer }),
    ...(onlyPilotContainer && { onlyPilotContainer }),
    ...(hostImage !== undefined && { hostImage }),
    ...(pilotsStarterConfigMap !== undefined && { pilotsStarterConfigMap }),
  };
}
