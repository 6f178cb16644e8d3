/** Workers whose refusals are remembered. */
const mostRemembered = 10_000;

/**
 * Workers that a schedd refused by a rule of its administrators (`SUBMIT_REQUIREMENT_NAMES`). The rule may be about the job of one worker, or
 * about the template of the queue, and so about all of them: which of both it is shows when the schedd takes others.
 */
export class RefusedByRule {
  /** Jobs that the schedd has taken, by queue and CE. */
  readonly #taken = new Map<string, number>();
  /** By worker: how many of its place had been taken before it was refused for the first time. */
  readonly #refused = new Map<number, number>();

  /** How many jobs of a place were taken. */
  takenOf(place: string): number {
    return this.#taken.get(place) ?? 0;
  }

  took(place: string, workerIds: readonly number[]): void {
    this.#taken.set(place, this.takenOf(place) + workerIds.length);
    for (const workerId of workerIds) this.#refused.delete(workerId);
  }

  /**
   * Notes the refusal of a worker that was submitted by itself.
   * @param before how many jobs of its place had been taken when its submission began
   * @returns whether it is for good: others of its place have been taken since it was refused first
   */
  isForGood(workerId: number, place: string, before: number): boolean {
    const first = this.#refused.get(workerId);
    if (first === undefined) {
      if (this.#refused.size >= mostRemembered) this.#refused.clear();
      this.#refused.set(workerId, before);
      return false;
    }
    if (this.takenOf(place) <= first) return false;
    this.#refused.delete(workerId);
    return true;
  }
}
