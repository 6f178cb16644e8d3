import { daemonAuthorizations, mintToken } from '../../clients/htcondor/idtoken.ts';
import type { OriginKey, Reason } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';

export interface TokenParts {
  /** Absolute. */
  readonly keyFile: string;
  /** By which the pool knows the key. */
  readonly keyName: string;
  /** `USER@DOMAIN`; the domain is the `TRUST_DOMAIN` of the pool. */
  readonly identity: string;
  readonly files: Pick<OperatorFiles, 'read'>;
  readonly clock: Clock;
}

/** A wish may wait for hours: its token is made again after this part of its life. */
const oldAfter = 0.1;

interface Minted {
  readonly token: string;
  readonly lifetime: number;
  /** Monotonic ms. */
  readonly oldAt: number;
}

/** A token of its own for each worker that is asked for: it reads and advertises, for as long as its Pod can live. */
export class Tokens {
  readonly #parts: TokenParts;
  /** By uid. */
  readonly #minted = new Map<string, Minted>();
  #key: Uint8Array | undefined;
  #failure: Reason | undefined;

  constructor(parts: TokenParts) {
    this.#parts = parts;
  }

  /** Why there are no tokens; undefined where there are. */
  get failure(): Reason | undefined {
    return this.#failure;
  }

  /** Reads the key afresh, so that another key counts from now on. Until it was read there are no tokens. */
  async readKey(): Promise<void> {
    const { keyFile, files } = this.#parts;
    try {
      const { bytes } = await files.read(keyFile, 'token');
      if (bytes.length === 0) throw new Error('it is empty');
      if (this.#key !== undefined && !Buffer.from(this.#key).equals(bytes)) this.#minted.clear();
      this.#key = bytes;
      this.#failure = undefined;
    } catch (error) {
      // With the key of before new workers would start although an operator took it away.
      this.#key = undefined;
      this.#minted.clear();
      const message = `no tokens for new workers: ${keyFile}, the signing key: ${whyUnreadable(error, 'token')}`;
      this.#failure = { code: 'htcondor-idle-no-token', message };
    }
  }

  /** Forgets the tokens of all other workers. */
  keep(origins: readonly OriginKey[]): void {
    const kept = new Set(origins.map(({ uid }) => uid));
    for (const uid of this.#minted.keys()) if (!kept.has(uid)) this.#minted.delete(uid);
  }

  /** The token of a worker; undefined while there is no key. @param lifetime seconds */
  of({ uid }: OriginKey, lifetime: number): string | undefined {
    const key = this.#key;
    if (key === undefined) return undefined;
    const { clock, keyName, identity } = this.#parts;
    const monotonic = clock.monotonic();
    const known = this.#minted.get(uid);
    if (known?.lifetime === lifetime && monotonic < known.oldAt) return known.token;
    const issuer = identity.slice(identity.lastIndexOf('@') + 1);
    const { worker: authorizations } = daemonAuthorizations;
    const token = mintToken({ key, keyName, issuer, identity, authorizations, lifetime, now: clock.now() });
    this.#minted.set(uid, { token, lifetime, oldAt: monotonic + oldAfter * lifetime * 1000 });
    return token;
  }
}
