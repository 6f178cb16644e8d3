/**
 * Tells events to everyone who subscribed to them. `Map` names each event and its facts. A listener that throws is reported and
 * harms neither the other listeners nor the one who emits; so nothing that must succeed may depend on a listener.
 * Model: graphile-worker's `GlobalEventMap` and `safeEmit`.
 */
export class Events<Map extends object> {
  readonly #listeners: { [Name in keyof Map]?: Set<(facts: Map[Name]) => void> } = {};
  readonly #failed: (event: keyof Map, error: unknown) => void;

  /** `failed` hears of listeners that threw. */
  constructor(failed: (event: keyof Map, error: unknown) => void) {
    this.#failed = failed;
  }

  /** Listeners run at once and in the order in which they subscribed: they must be cheap. @returns the end of the subscription */
  on<Name extends keyof Map>(event: Name, listener: (facts: Map[Name]) => void): () => void {
    const listeners = (this.#listeners[event] ??= new Set());
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }

  emit<Name extends keyof Map>(event: Name, facts: Map[Name]): void {
    for (const listener of [...(this.#listeners[event] ?? [])]) {
      try {
        listener(facts);
      } catch (error) {
        this.#failed(event, error);
      }
    }
  }
}
