import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { LogReader, LogRequest } from '../contracts/log-reader.ts';
import type { KubernetesHub } from './hub.ts';
import { pilotAnnotation, workerIdLabel } from './marks.ts';
import { timeOf } from './pod-facts.ts';
import type { Pod } from './types.ts';

/** Whose log is read. */
interface Source {
  readonly pod: string;
  readonly container: string;
  /** Whether its container may still begin. */
  readonly waits: boolean;
  readonly why: string;
}

/** Between two looks for a container that has not begun, ms. */
const beginInterval = 1000;

/** Reads the pilot's log from its Pod, through the API server. */
export class K8sLogs implements LogReader {
  readonly #hub: KubernetesHub;
  readonly #clock: Clock;

  constructor(hub: KubernetesHub, clock: Clock) {
    this.#hub = hub;
    this.#clock = clock;
  }

  async *read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { workerId } = worker;
    if (request.stream === 'stderr') {
      const message = `Kubernetes keeps both outputs of worker ${workerId} in one log: leave out --stderr`;
      throw new ThresherError('no-log', message);
    }
    const encoder = new TextEncoder();
    while (!signal.aborted) {
      const source = await this.#source(workerId, signal);
      if (source === undefined) {
        const message = `worker ${workerId} has no Pod in ${this.#hub.namespace} (any more): its log went with it`;
        throw new ThresherError('no-log', message);
      }
      if (!source.waits) {
        const { follow, tail } = request;
        const options = { follow, signal, ...(tail !== undefined && { tailLines: tail }) };
        for await (const piece of this.#log(source, options)) yield encoder.encode(piece);
        return;
      }
      if (!request.follow) {
        throw new ThresherError('no-log', `the pilot of worker ${workerId} has not begun: ${source.why}`);
      }
      await this.#clock.sleep(beginInterval, signal);
    }
  }

  /** The last lines; empty where there are none to be had. */
  async end(workerId: number, lines: number, limitBytes: number, signal: AbortSignal): Promise<string> {
    try {
      const source = await this.#source(workerId, signal);
      if (source === undefined || source.waits) return '';
      let text = '';
      // The server cuts at the end, and the end is what is wanted.
      for await (const piece of this.#log(source, { tailLines: lines, signal })) text += piece;
      return text.slice(-limitBytes);
    } catch {
      return '';
    }
  }

  async *#log(
    { pod, container }: Source,
    options: { readonly follow?: boolean; readonly tailLines?: number; readonly signal: AbortSignal },
  ): AsyncGenerator<string> {
    const { client } = this.#hub;
    try {
      yield* client.logs(this.#hub.pod(pod, 'log'), { container, ...options });
    } catch (error) {
      // Whoever asked does not want any more.
      if (options.signal.aborted) return;
      if (isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-refused'))
        throw new ThresherError('no-log', `the log of Pod ${pod} cannot be had: ${error.message}`);
      throw error;
    }
  }

  /** The newest Pod of the worker. */
  async #source(workerId: number, signal: AbortSignal): Promise<Source | undefined> {
    const { client, selector, pods } = this.#hub;
    const labelSelector = `${selector},${workerIdLabel}=${workerId}`;
    const { items } = await client.list(pods, { labelSelector, signal }, (object) => object as Pod);
    const age = ({ metadata }: Pod) => timeOf(metadata?.creationTimestamp) ?? 0;
    const pod = items.toSorted((a, b) => age(b) - age(a))[0];
    if (pod === undefined) return undefined;
    const { metadata, spec, status } = pod;
    const container = metadata?.annotations?.[pilotAnnotation] ?? spec?.containers?.[0]?.name ?? '';
    const of = status?.containerStatuses?.find(({ name }) => name === container);
    const begun = Boolean(of?.state?.running ?? of?.state?.terminated ?? of?.lastState?.terminated);
    const over = status?.phase === 'Succeeded' || status?.phase === 'Failed';
    const why = of?.state?.waiting?.reason ?? status?.phase ?? 'Pending';
    return { pod: metadata?.name ?? '', container, waits: !begun && !over, why };
  }
}
