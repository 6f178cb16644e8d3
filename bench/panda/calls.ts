import { subscribe } from 'node:diagnostics_channel';

/** Counts the calls of a server that this process makes, by the last part of their paths. */
export class CallCounter {
  readonly #counts = new Map<string, number>();

  install(): this {
    subscribe('undici:request:create', (message) => {
      const { path } = (message as { request: { path: string } }).request;
      const name = path.replace(/\?.*$/, '').split('/').at(-1) ?? path;
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    });
    return this;
  }

  reset(): void {
    this.#counts.clear();
  }

  get all(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
