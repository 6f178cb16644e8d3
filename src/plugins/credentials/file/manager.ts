import { type FileState, inspectFile } from '../../../clients/credentials/credential-file.ts';
import { fileVersion } from '../../../clients/credentials/files.ts';
import { isoTime } from '../../../util/clock.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';

/** Watches files that something else renews. */
export class FileManager implements CredentialManager {
  readonly #files: readonly string[];
  readonly #clock: Context['clock'];

  constructor(files: readonly string[], { clock }: Pick<Context, 'clock'>) {
    this.#files = files;
    this.#clock = clock;
  }

  inspect(): Promise<readonly CredentialState[]> {
    return Promise.all(this.#files.map(inspectFile));
  }

  /** There is nothing to do, and no lie about it: who asks for a new one learns that none comes from here. */
  async renew({ force }: { readonly force: boolean }): Promise<readonly RenewOutcome[]> {
    const states = await Promise.all(this.#files.map(inspectFile));
    return states.map((state) => this.#outcome(state, force));
  }

  async fingerprint(): Promise<string> {
    return (await Promise.all(this.#files.map(fileVersion))).join(', ');
  }

  #outcome(state: FileState, force: boolean): RenewOutcome {
    if (state.kind === 'broken') return { kind: 'failed', name: state.name, error: state.error };
    const { name, expiresAt = Infinity } = state.facts;
    const over = expiresAt <= this.#clock.now();
    if (!force && !over) return { kind: 'unchanged', name };
    const ended = over ? `ended at ${isoTime(expiresAt)}, and ` : '';
    const message = `${name} ${ended}is only watched: what made it must renew it`;
    return { kind: 'failed', name, error: { code: 'credential-only-watched', message } };
  }
}
