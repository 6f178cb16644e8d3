import { inspectFile, watchedOutcome } from '../../../clients/credentials/credential-file.ts';
import { fileVersion } from '../../../clients/credentials/files.ts';
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

  async renew({ force }: { readonly force: boolean }): Promise<readonly RenewOutcome[]> {
    const states = await Promise.all(this.#files.map(inspectFile));
    return states.map((state) => watchedOutcome(state, force, this.#clock.now()));
  }

  async fingerprint(): Promise<string> {
    return (await Promise.all(this.#files.map(fileVersion))).join(', ');
  }
}
