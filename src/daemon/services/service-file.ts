import { readFileSync } from 'node:fs';
import type { Log } from '../../plugins/contracts/index.ts';
import { writeFileAtomically } from '../../util/files.ts';
import { messageOf } from '../../worker/errors.ts';
import type { StateDir } from '../state-dir.ts';
import { type ServiceHealth, serviceStates } from './service.ts';

/**
 * Writes the states of the services into the state directory, where `thresher status` reads them beside the daemon, also after its
 * end. Written only when a state changes; writes that come faster than the disk become one.
 */
export class ServiceFile {
  readonly #path: string;
  readonly #log: Log;
  #next: readonly ServiceHealth[] | undefined;
  #writing: Promise<void> | undefined;

  constructor(dir: StateDir, log: Log) {
    this.#path = dir.services;
    this.#log = log;
  }

  write(services: readonly ServiceHealth[]): void {
    this.#next = services;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Everything that was to be written is written, or has failed. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#next; next !== undefined; next = this.#next) {
      this.#next = undefined;
      try {
        await writeFileAtomically(this.#path, `${JSON.stringify(next)}\n`);
      } catch (error) {
        this.#log.warn('the states of the services could not be written', { error: messageOf(error) });
      }
    }
  }
}

/** The services as the daemon wrote them down last; empty where it never did, or where the file is damaged. */
export function readServices(dir: StateDir): readonly ServiceHealth[] {
  try {
    const written: unknown = JSON.parse(readFileSync(dir.services, 'utf8'));
    return Array.isArray(written) ? written.filter(isHealth) : [];
  } catch {
    return [];
  }
}

function isHealth(value: unknown): value is ServiceHealth {
  if (typeof value !== 'object' || value === null) return false;
  const { name, state, since } = value as Partial<Record<keyof ServiceHealth, unknown>>;
  return (
    typeof name === 'string' &&
    typeof since === 'number' &&
    (serviceStates as readonly unknown[]).includes(state)
  );
}
