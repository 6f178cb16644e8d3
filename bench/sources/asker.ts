/**
 * A source that asks for the requests the benchmark gives it, loaded by its path as any third party's. The benchmark imports this
 * module, too: it is the same instance that the daemon got.
 */
import Type from 'typebox';
import {
  type Desk,
  defineSource,
  type Request,
  type Source,
  type WorkerNews,
} from '../../src/plugins/contracts/index.ts';

class Asker {
  /** By queue. */
  readonly requests = new Map<string, readonly Request[]>();
  desk: Desk | undefined;
  onNews: (news: readonly WorkerNews[]) => void = () => undefined;

  ask(queue: string, requests: readonly Request[]): void {
    this.requests.set(queue, requests);
    this.desk?.wake(queue);
  }

  stop(): void {
    this.requests.clear();
  }
}

export const asker = new Asker();

export const requestsOf = (uid: string, count: number): Request[] =>
  Array.from({ length: count }, (_, index) => ({ origin: { uid, index } }));

export const plugins = [
  defineSource({
    name: 'bench',
    module: 'bench',
    everyQueue: true,
    config: Type.Object({}),
    create: (): Source => ({
      wanted: async ({ name }) => ({ requests: asker.requests.get(name) ?? [], groups: [], reasons: [] }),
      told: async (news) => {
        asker.onNews(news);
      },
      run: async (desk, signal) => {
        asker.desk = desk;
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            resolve();
          });
        });
      },
    }),
  }),
];
