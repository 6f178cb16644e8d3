/** The configurations that one pass may adopt workers with. */
export interface Hold {
  keep(configId: number): void;
  /** The workers of the pass are written down, or there are none. */
  release(): void;
}

/**
 * Configurations that a listing was given and may not have adopted workers with yet. No row names them so far, so a reload
 * would end their loops.
 */
export class HeldConfigs {
  readonly #holds = new Set<ReadonlySet<number>>();
  readonly #released = new Set<number>();

  open(): Hold {
    const kept = new Set<number>();
    this.#holds.add(kept);
    return {
      keep: (configId) => {
        kept.add(configId);
      },
      release: () => {
        if (!this.#holds.delete(kept)) return;
        for (const configId of kept) this.#released.add(configId);
      },
    };
  }

  /**
   * The configurations that are held, and those that were released since the last call: a reload reads what is in use before
   * it asks here, and an adoption in between is in neither.
   */
  take(): ReadonlySet<number> {
    const taken = new Set([...this.#released, ...[...this.#holds].flatMap((kept) => [...kept])]);
    this.#released.clear();
    return taken;
  }
}
