/** A client that asks as interLink does. Source: its Go client sends GET with a body, and takes exactly 200 for success. */
import { type IncomingMessage, request } from 'node:http';
import type { ContainerState, CreateStruct, PodStatus } from '../../src/clients/interlink/wire.ts';

export interface Answered {
  readonly status: number;
  readonly text: string;
}

export type Address = { readonly port: number } | { readonly socketPath: string };

/** A Pod of one container that runs a script. */
export function podOf(name: string, uid: string, script: string) {
  return {
    metadata: { name, namespace: 'default', uid, annotations: {} as Record<string, string> },
    spec: {
      containers: [
        {
          name: 'main',
          image: 'busybox',
          command: ['sh', '-c', script],
          env: null,
          resources: {},
        },
      ],
      initContainers: null,
      volumes: null,
    },
  };
}

export class InterlinkClient {
  readonly #address: Address;
  #sessions = 0;

  constructor(address: Address) {
    this.#address = address;
  }

  ask(method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answered> {
    const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const session = `${path.slice(1)}#${++this.#sessions}`;
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...this.#address,
          method,
          path,
          agent: false,
          headers: {
            'Content-Type': 'application/json',
            'InterLink-Http-Session': session,
            'Content-Length': Buffer.byteLength(text),
            ...headers,
          },
        },
        (answer) => {
          const pieces: Buffer[] = [];
          answer.on('data', (piece: Buffer) => pieces.push(piece));
          answer.on('end', () => {
            resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() });
          });
          answer.on('error', reject);
        },
      );
      sent.on('error', reject);
      sent.end(text);
    });
  }

  create(pod: unknown, more: object = {}): Promise<Answered> {
    const jobConfig = { SingularityHubProxy: {}, ApptainerOptions: {}, Volumes: {} };
    return this.ask('POST', '/create', { pod, container: null, jobConfig, ...more });
  }

  /** @throws Error for anything but 200 */
  async created(pod: unknown): Promise<CreateStruct> {
    const { status, text } = await this.create(pod);
    if (status !== 200) throw new Error(`/create answered ${status}: ${text}`);
    return JSON.parse(text) as CreateStruct;
  }

  remove(pod: unknown): Promise<Answered> {
    return this.ask('POST', '/delete', pod);
  }

  /** As the virtual kubelet asks: one Pod in a list, and the first element of the answer. */
  async status(pod: unknown): Promise<PodStatus> {
    const { status, text } = await this.ask('GET', '/status', [pod]);
    if (status !== 200) throw new Error(`/status answered ${status}: ${text}`);
    const [first] = JSON.parse(text) as PodStatus[];
    if (first === undefined) throw new Error('/status answered an empty list');
    return first;
  }

  /** State of the first container. */
  async state(pod: unknown): Promise<ContainerState> {
    const [first] = (await this.status(pod)).containers;
    if (first === undefined) throw new Error('/status lists no container');
    return first.state;
  }

  logs(uid: string, opts: object = {}, container = 'main'): Promise<Answered> {
    return this.ask('GET', '/getLogs', logRequest(uid, opts, container));
  }

  /** Follows a log as it comes. */
  follow(uid: string, opts: object = {}, container = 'main'): Promise<FollowedLog> {
    const text = JSON.stringify(logRequest(uid, { Follow: true, ...opts }, container));
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    return new Promise((resolve, reject) => {
      const sent = request(
        { ...this.#address, method: 'GET', path: '/getLogs', agent: false, headers },
        (answer) => {
          resolve(new FollowedLog(answer));
        },
      );
      sent.on('error', reject);
      sent.end(text);
    });
  }
}

/** A log that is followed, from the head of its answer on. */
export class FollowedLog {
  readonly status: number;
  text = '';
  /** Whether the answer has come to its end, and was not broken off. */
  hasEnded = false;
  readonly #answer: IncomingMessage;

  constructor(answer: IncomingMessage) {
    this.#answer = answer;
    this.status = answer.statusCode ?? 0;
    answer.on('data', (piece: Buffer) => (this.text += piece.toString()));
    answer.on('end', () => {
      this.hasEnded = true;
    });
    answer.on('error', () => undefined);
  }

  stop(): void {
    this.#answer.destroy();
  }
}

function logRequest(uid: string, opts: object, container: string): object {
  const unset = { Tail: 0, Bytes: 0, Timestamps: false, Follow: false, Previous: false, SinceSeconds: 0 };
  const Opts = { ...unset, SinceTime: '0001-01-01T00:00:00Z', ...opts };
  const named = { Namespace: 'default', PodUID: uid, PodName: 'pod', ContainerName: container };
  return { ...named, Opts };
}
