/**
 * A source of a third party, as docs/plugins.md describes one: it asks for some named workers with payloads, and writes
 * what it hears of them into a journal, which is its own truth.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import {
  defineSource,
  type Desk,
  type Request,
  type Source,
  type SourceQueue,
  type WorkerNews,
} from '../../src/plugins/contracts/index.ts';

const ToyConfig = Type.Object({
  journal: Type.String({ description: 'File for what it hears, a line for each change.' }),
  workers: Type.Integer({ default: 3, minimum: 1, description: 'How many workers it asks for.' }),
});

/** A line of the journal. */
export interface Heard {
  /** Of the process that heard it: a sequence grows within a database, and the database may be a new one after a restart. */
  readonly pid: number;
  readonly sequence: number;
  readonly what: WorkerNews['what'];
  readonly index: number;
  readonly workerId: number | null;
  readonly status: string;
}

export class ToySource implements Source {
  readonly #config: Static<typeof ToyConfig>;
  /** Indexes of the workers that it knows to have ended: it asks for the others again and again. */
  readonly #ended = new Set<number>();

  constructor(config: Static<typeof ToyConfig>) {
    this.#config = config;
    for (const { index, status } of heard(config.journal)) if (isEnd(status)) this.#ended.add(index);
  }

  async wanted({ name }: SourceQueue) {
    const indexes = Array.from({ length: this.#config.workers }, (_, index) => index);
    const requests = indexes.filter((index) => !this.#ended.has(index)).map((index) => request(name, index));
    return { requests, groups: [], reasons: [] };
  }

  async told(news: readonly WorkerNews[]): Promise<void> {
    const lines = news.map(({ sequence, what, origin: { index }, worker: { workerId, status } }) => {
      if (isEnd(status)) this.#ended.add(index);
      const line: Heard = { pid: process.pid, sequence, what, index, workerId, status };
      return `${JSON.stringify(line)}\n`;
    });
    appendFileSync(this.#config.journal, lines.join(''));
  }

  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    for (const queue of desk.queues()) desk.wake(queue);
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
  }
}

/** Everything that a toy source ever heard. */
export function heard(journal: string): Heard[] {
  if (!existsSync(journal)) return [];
  const lines = readFileSync(journal, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Heard);
}

/** The text that a worker of a toy source gets in the file `task`. */
export function taskOf(index: number): string {
  return `task ${index}: "quotes", $(date) and\na second line`;
}

function request(queue: string, index: number): Request {
  const content = Buffer.from(taskOf(index)).toString('base64');
  return {
    origin: { uid: `toys for ${queue}`, index },
    groupId: 'toys',
    payload: { files: [{ name: 'task', mode: 0o644, content }], env: { TOY: String(index) } },
  };
}

function isEnd(status: string): boolean {
  return ['finished', 'failed', 'cancelled', 'missed', 'withdrawn'].includes(status);
}

export const toySource = defineSource({
  name: 'toy',
  module: 'toy',
  config: ToyConfig,
  payload: ['files', 'env'],
  create: (config, { configDir }) =>
    new ToySource({ ...config, journal: resolve(configDir, config.journal) }),
});
