import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { CreateStruct, PodStatus } from '../../src/clients/interlink/wire.ts';
import type { BenchPod } from './pods.ts';

/** Asks as interLink's server does, which keeps its connections open. */
export class Kubelet {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  readonly #socketPath: string;
  #sessions = 0;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** @throws Error for anything but 200 */
  async create({ data }: BenchPod): Promise<CreateStruct> {
    return (await this.#ask('POST', '/create', data)) as CreateStruct;
  }

  /** One Pod in a request, of which the first answer counts. @throws Error for anything but 200 */
  async status({ pod, uid }: BenchPod): Promise<PodStatus> {
    const [first] = (await this.#ask('GET', '/status', [pod])) as readonly PodStatus[];
    if (first?.UID !== uid) throw new Error(`/status answered for another Pod than ${uid}`);
    return first;
  }

  async remove({ pod }: BenchPod): Promise<void> {
    await this.#ask('POST', '/delete', pod);
  }

  /** @throws Error while the backend gives no answer */
  async ping(): Promise<void> {
    await this.#ask('GET', '/status', []);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #ask(method: string, path: string, body: unknown): Promise<unknown> {
    const text = JSON.stringify(body);
    const headers = {
      'Content-Type': 'application/json',
      'InterLink-Http-Session': `${path.slice(1)}#${++this.#sessions}`,
      'Content-Length': Buffer.byteLength(text),
    };
    const sent = request({ socketPath: this.#socketPath, agent: this.#agent, method, path, headers });
    const { status, answer } = await answered(sent, text);
    if (status !== 200) throw new Error(`${path} was answered with ${status}: ${answer}`);
    return JSON.parse(answer);
  }
}

function answered(
  sent: ClientRequest,
  text: string,
): Promise<{ readonly status: number; readonly answer: string }> {
  return new Promise((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (message: IncomingMessage) => {
      const pieces: Buffer[] = [];
      message.on('data', (piece: Buffer) => pieces.push(piece));
      message.on('error', reject);
      message.on('end', () => {
        resolve({ status: message.statusCode ?? 0, answer: Buffer.concat(pieces).toString() });
      });
    });
    sent.end(text);
  });
}
