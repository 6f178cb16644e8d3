import type { Log } from '../../plugins/contracts/index.ts';
import type { StateDir } from '../state-dir.ts';
import { readStateFile, StateFile } from '../state-file.ts';
import { type ServiceHealth, serviceStates } from './service.ts';

/** Writes the states of the services into the state directory, for `thresher status`. */
export class ServiceFile {
  readonly #file: StateFile;

  constructor(dir: StateDir, log: Log) {
    this.#file = new StateFile(dir.services, {
      failure: 'the states of the services could not be written',
      log,
    });
  }

  write(services: readonly ServiceHealth[]): void {
    this.#file.write(() => services);
  }

  /** Everything that was to be written is written, or has failed. */
  written(): Promise<void> {
    return this.#file.stop();
  }
}

/** The services as the daemon wrote them down last. */
export function readServices(dir: StateDir): readonly ServiceHealth[] {
  return readStateFile(dir.services).filter(isHealth);
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
