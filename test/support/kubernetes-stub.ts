import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Context } from '../../src/plugins/contracts/index.ts';
import { K8sConnection } from '../../src/plugins/kubernetes/connection.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import { type BackendParts, connectionAt, partOf } from './backend-parts.ts';
import { type KubeRequest, readKubeRequest } from './kube-request.ts';
import { kubeconfig, writeKubeconfig } from './kubernetes-client.ts';
import { pluginContext } from './plugin-context.ts';
import {
  json,
  type ScriptedServer,
  type SeenRequest,
  startScriptedServer,
  status,
} from './scripted-server.ts';
import { temporaryDirectory } from './temporary.ts';

const names = { submitter: 'K8sSubmitter', monitor: 'K8sMonitor', sweeper: 'K8sSweeper' } as const;

export interface StubObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [part: string]: unknown;
}

/** What a test does with a request itself: true where it has answered, or will. */
export type Answer = (response: ServerResponse, asked: KubeRequest, seen: SeenRequest) => boolean;

/**
 * Jobs and Pods behind an API, as objects that a test writes by itself: for what counts requests, or needs states and
 * logs that no controller makes. It knows lists by label, watches that tell nothing, deletions by uid, and creations that it
 * forgets; everything else is for `answer`. How a real server behaves is not to be learnt from it.
 */
export class KubernetesStub {
  readonly jobs = new Map<string, StubObject>();
  readonly pods = new Map<string, StubObject>();
  readonly requests: KubeRequest[] = [];
  readonly directory = temporaryDirectory();
  readonly context: Context;
  answer: Answer = () => false;
  readonly #server: ScriptedServer;

  static async start(changes: Partial<Context> = {}): Promise<KubernetesStub> {
    return new KubernetesStub(await startScriptedServer(), changes);
  }

  private constructor(server: ScriptedServer, changes: Partial<Context>) {
    this.#server = server;
    this.context = pluginContext({ factoryId: 'factory', configDir: this.directory, ...changes });
    writeKubeconfig(kubeconfig({ server: server.url }), this.directory);
    server.always((response, seen) => {
      const asked = readKubeRequest(seen.method, seen.url);
      this.requests.push(asked);
      if (!this.answer(response, asked, seen)) this.#answer(response, asked, seen);
    });
  }

  /** A plugin as a queue's section makes it. @throws if the section is not sound. */
  plugin<K extends keyof BackendParts>(
    kind: K,
    section: Readonly<Record<string, unknown>> = {},
    changes: Partial<Context> = {},
  ): BackendParts[K] {
    const definition = new Registry(builtInPlugins).find(kind, 'thresher/kubernetes', names[kind]);
    return partOf(definition, kind, { ...this.#where, ...section }, { ...this.context, ...changes });
  }

  /** The connection that these plugins are of. */
  connection(): K8sConnection {
    const definition = new Registry(builtInPlugins).find('monitor', 'thresher/kubernetes', names.monitor);
    if (definition === undefined) throw new Error('the backend is not there');
    const connection = connectionAt(definition, this.#where, this.context);
    if (connection instanceof K8sConnection) return connection;
    throw new Error('it is of another backend');
  }

  get #where() {
    return { k8s_config_file: join(this.directory, 'kubeconfig'), k8s_namespace: 'grid' };
  }

  get url(): string {
    return this.#server.url;
  }

  count(verb: KubeRequest['verb'], resource: string): number {
    return this.requests.filter((one) => one.verb === verb && one.resource === resource).length;
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  #answer(response: ServerResponse, asked: KubeRequest, seen: SeenRequest): void {
    const { verb, resource, name } = asked;
    const all =
      resource === 'jobs' ? this.jobs : resource === 'pods' ? this.pods : new Map<string, StubObject>();
    const found = all.get(name);
    const missing = status(404, 'NotFound', `${resource} "${name}" not found`, { name, kind: resource });
    switch (verb) {
      case 'list': {
        const selector = new URL(seen.url, 'http://stub').searchParams.get('labelSelector') ?? '';
        const ids = /thresher\/worker-id(?: in \(([\d,]*)\)|=(\d+))/.exec(selector);
        const wanted = ids && new Set((ids[1] ?? ids[2] ?? '').split(','));
        const items = [...all.values()].filter(
          ({ metadata }) => wanted?.has(metadata.labels['thresher/worker-id'] ?? '') ?? true,
        );
        json(200, { metadata: { resourceVersion: '1' }, items })(response, seen);
        return;
      }
      case 'watch':
        response.writeHead(200, { 'content-type': 'application/json' });
        response.flushHeaders();
        return;
      case 'get':
        (found === undefined ? missing : json(200, found))(response, seen);
        return;
      case 'delete': {
        const { preconditions } = JSON.parse(seen.body) as { preconditions?: { uid?: string } };
        const other = preconditions?.uid !== undefined && preconditions.uid !== found?.metadata.uid;
        if (found !== undefined && !other) all.delete(name);
        (found === undefined ? missing : other ? status(409, 'Conflict', 'another uid') : json(200, found))(
          response,
          seen,
        );
        return;
      }
      case 'create':
        json(201, JSON.parse(seen.body))(response, seen);
        return;
      case 'update':
      case 'patch':
      case 'deletecollection':
      case 'other':
        status(405, 'MethodNotAllowed', `the stub does not ${verb} ${resource}`)(response, seen);
    }
  }
}

/** Marks of a worker's Job or Pod, as `factory` makes them. */
export function marked(
  workerId: number,
  changes: { readonly name?: string; readonly queue?: string; readonly configId?: number } = {},
): StubObject['metadata'] {
  const { name = `factory-${workerId}`, queue = 'Q', configId = 1 } = changes;
  return {
    name,
    uid: `uid-of-${name}`,
    creationTimestamp: new Date(Date.now() - 60_000).toISOString(),
    labels: {
      'thresher/factory': 'factory',
      'thresher/worker-id': String(workerId),
      'thresher/queue': queue,
      'batch.kubernetes.io/job-name': `factory-${workerId}`,
      'batch.kubernetes.io/controller-uid': `uid-of-factory-${workerId}`,
    },
    annotations: { 'thresher/queue': queue, 'thresher/config': String(configId) },
  };
}
