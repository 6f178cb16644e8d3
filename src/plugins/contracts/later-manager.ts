import type { CredentialManager, CredentialState, RenewOutcome } from './credential-manager.ts';

/**
 * A manager whose options stand in a file: it is made when it is first asked, since `create` may not wait for a disk.
 * After a failure the next call makes it anew.
 */
export class LaterManager implements CredentialManager {
  readonly #make: () => Promise<CredentialManager>;
  #made: Promise<CredentialManager> | undefined;

  constructor(make: () => Promise<CredentialManager>) {
    this.#make = make;
  }

  async inspect(signal: AbortSignal): Promise<readonly CredentialState[]> {
    return (await this.#manager()).inspect(signal);
  }

  async renew(options: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    return (await this.#manager()).renew(options, signal);
  }

  async fingerprint(signal: AbortSignal): Promise<string> {
    return (await (await this.#manager()).fingerprint?.(signal)) ?? '';
  }

  #manager(): Promise<CredentialManager> {
    this.#made ??= this.#make().catch((error: unknown) => {
      this.#made = undefined;
      throw error;
    });
    return this.#made;
  }
}
