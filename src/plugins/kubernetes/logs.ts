import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { LogReader, LogRequest } from '../contracts/log-reader.ts';
import type { K8sNamespace } from './namespace.ts';
import { pilotAnnotation, workerIdLabel } from './marks.ts';
import { factsOf, hasBegun } from './state/pod-facts.ts';
import { keepPod } from './following/records.ts';
import { LogTimes } from './log-times.ts';
import type { Pod } from './state/types.ts';

/** The container whose log is read. */
interface Source {
  readonly pod: string;
  readonly container: string;
  /** Whether its container may still begin. */
  readonly waits: boolean;
  /** Whether it may still say something. */
  readonly runs: boolean;
  readonly why: string;
}

/** So much of a log is read for its end, characters. */
const mostRead = 4 * 2 ** 20;
/** Between two looks for a container that has not begun, ms. */
const beginInterval = 1000;

/** Reads the pilot's log from its Pod, through the API server. */
export class K8sLogs implements LogReader {
  readonly #namespace: K8sNamespace;
  readonly #clock: Clock;

  constructor(namespace: K8sNamespace, clock: Clock) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  async *read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { workerId } = worker;
    if (request.stream === 'job-log') {
      const message = `Kubernetes writes no log of a Job: thresher worker ${workerId} shows what became of it, kubectl get events what happened of late`;
      throw new ThresherError('no-log', message);
    }
    if (request.stream === 'stderr') {
      const message = `Kubernetes keeps both outputs of worker ${workerId} in one log: leave out --stderr`;
      throw new ThresherError('no-log', message);
    }
    const encoder = new TextEncoder();
    const { follow, tail } = request;
    const times = new LogTimes();
    let hasSpoken = false;
    while (!signal.aborted) {
      try {
        const source = await this.#source(workerId, signal);
        if (source === undefined) {
          // It was read to its end before the Pod went.
          if (hasSpoken) return;
          const message = `worker ${workerId} has no Pod in ${this.#namespace.name}: none was made yet, or its log went with it`;
          throw new ThresherError('no-log', message);
        }
        if (source.waits && !follow) {
          const message = `the pilot of worker ${workerId} has not begun: ${source.why}`;
          throw new ThresherError('no-log', message);
        }
        if (!source.waits) {
          const first = tail === undefined ? {} : { tailLines: tail };
          const from = times.since === undefined ? first : { sinceTime: times.since };
          times.begin();
          for await (const piece of this.#log(source, { ...from, follow, timestamps: follow, signal })) {
            hasSpoken = true;
            const text = follow ? times.take(piece) : piece;
            if (text !== '') yield encoder.encode(text);
          }
          // A stream may end before its pilot, by the node's own limit.
          if (!follow || !source.runs) return;
          hasSpoken = true;
        }
      } catch (error) {
        // The API server that it went through is away, or the way to it; what was said since comes with the next stream.
        const mayComeBack = isKubernetesError(error, 'kubernetes-unreachable', 'kubernetes-server-error');
        if (!follow || !mayComeBack || !hasSpoken) throw error;
      }
      await this.#clock.sleep(beginInterval, signal);
    }
  }

  /**
   * The end of a log: so many lines, and of these so many bytes.
   * @throws ThresherError where there is none to be had.
   */
  async end(workerId: number, lines: number, bytes: number, signal: AbortSignal): Promise<string> {
    const source = await this.#source(workerId, signal);
    if (source === undefined || source.waits) return '';
    let text = '';
    let read = 0;
    // The server would cut at the end, and the end is what is wanted; a line may be as long as the whole log.
    for await (const piece of this.#log(source, { tailLines: lines, signal })) {
      text = (text + piece).slice(-bytes);
      read += piece.length;
      if (read > mostRead) break;
    }
    return text;
  }

  async *#log(
    { pod, container }: Source,
    options: {
      readonly follow?: boolean;
      readonly tailLines?: number;
      readonly sinceTime?: number;
      readonly timestamps?: boolean;
      readonly signal: AbortSignal;
    },
  ): AsyncGenerator<string> {
    const { client } = this.#namespace;
    try {
      yield* client.logs(this.#namespace.pod(pod, 'log'), { container, ...options });
    } catch (error) {
      // The caller wants no more lines.
      if (options.signal.aborted) return;
      if (isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-refused'))
        throw new ThresherError('no-log', `the log of Pod ${pod} cannot be had: ${error.message}`);
      throw error;
    }
  }

  /** The newest Pod of the worker. */
  async #source(workerId: number, signal: AbortSignal): Promise<Source | undefined> {
    const { client, factoryId, selector, pods } = this.#namespace;
    const labelSelector = `${selector},${workerIdLabel}=${workerId}`;
    const { items } = await client.list(pods, { labelSelector, signal }, (object) => {
      const kept = keepPod(object, factoryId);
      return kept && (JSON.parse(kept.text) as Pod);
    });
    const facts = factsOf(undefined, items);
    const { pod, pilot, phase } = facts;
    if (pod === undefined) return undefined;
    const over = phase === 'Succeeded' || phase === 'Failed';
    const { metadata, spec } = pod;
    return {
      pod: metadata?.name ?? '',
      container: pilot?.name ?? metadata?.annotations?.[pilotAnnotation] ?? spec?.containers?.[0]?.name ?? '',
      waits: !hasBegun(facts) && !over,
      runs: !over && Boolean(pilot?.state.running),
      why: pilot?.state.waiting?.reason ?? (phase || 'Pending'),
    };
  }
}
