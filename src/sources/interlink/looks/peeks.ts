import { Turns } from '../../../clients/htcondor/turns.ts';
import type { Desk } from '../../../plugins/contracts/index.ts';
import { isAtWork } from '../pods/facts.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';

/** Fewer than the commands that a schedd gets at once: submissions and questions for states must not wait for looks. */
const atOnce = 2;

/** Looks into the directories of running jobs through their backend: each look is a process, so there are few at once. */
export class Peeks {
  readonly #turns = new Turns(atOnce);
  #desk: Pick<Desk, 'peek'> | undefined;

  begin(desk: Pick<Desk, 'peek'>): void {
    this.#desk = desk;
  }

  /**
   * The end of a file of a Pod's job.
   * @returns undefined while the job does not run, or has no such file yet
   * @throws ThresherError `no-log` if the backend never gives it out, and why the backend gave no answer
   */
  async peek(
    pod: TrackedPod,
    file: string,
    mostBytes: number,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const desk = this.#desk;
    if (desk === undefined || !(await this.#turns.begin(signal))) return undefined;
    try {
      const { facts } = pod;
      if (facts === undefined || facts.workerId === null || !isAtWork(facts)) return undefined;
      return await desk.peek(facts.workerId, { file, mostBytes }, signal);
    } finally {
      this.#turns.end();
    }
  }
}
