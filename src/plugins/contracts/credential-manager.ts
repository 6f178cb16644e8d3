import type { Reason } from '../../worker/reason.ts';
import type { WorkerError } from '../../worker/worker.ts';

/** Known facts of one credential. None of them is secret. */
export interface CredentialFacts {
  /**
   * Its name for operators and queues: a path on this machine, or `CLUSTER/NAMESPACE/SECRET/KEY` for a key of a Secret
   * as the connection of its queue names it. Unique in the daemon.
   */
  readonly name: string;
  readonly kind: 'x509' | 'token' | 'token-key' | 'kerberos';
  /** Distinguished name, subject of a token, client of a token's key, Kerberos principal. */
  readonly subject: string;
  readonly issuer?: string;
  readonly vo?: string;
  /** ms UTC; undefined: it has no end. */
  readonly expiresAt?: number;
  readonly notBefore?: number;
  /** When it was made, by its own word: no bound of its validity. */
  readonly issuedAt?: number;
  /** SHA-256 of the content, hex: whether two are the same. */
  readonly digest: string;
}

export type CredentialState =
  | {
      readonly kind: 'there';
      readonly facts: CredentialFacts;
      /** An operator should know them, but the credential can be used: others can read it, its source ends soon. */
      readonly warnings: readonly Reason[];
    }
  /** Missing, unreadable, rubbish, or not where it is to be. An expired one is `there`. */
  | { readonly kind: 'broken'; readonly name: string; readonly error: WorkerError };

export type RenewOutcome =
  /** A new one is in place. */
  | { readonly kind: 'renewed'; readonly name: string }
  /** The one in place is good for long enough, or what is to be copied is there already. */
  | { readonly kind: 'unchanged'; readonly name: string }
  /** The last good one is still in place. */
  | { readonly kind: 'failed'; readonly name: string; readonly error: WorkerError };

/** A file or Secret that a manager writes, as an operator would look for it. */
export type WriteTarget =
  | { readonly kind: 'file'; readonly path: string }
  /** `cluster` as credentials are named: `kubernetes:/etc/thresher/kubeconfig`. */
  | { readonly kind: 'secret'; readonly cluster: string; readonly namespace: string; readonly name: string };

/**
 * Keeps credentials fresh, or watches those that something else renews.
 *
 * It puts a credential in place as a whole or not at all: written beside, made sure of, renamed; 0600. After any
 * failure the last good one stays. No private key, token or password appears in an error, a log line or a process
 * argument.
 */
export interface CredentialManager {
  /** Looks at all credentials afresh and changes nothing. One state per credential it is configured for. */
  inspect(signal: AbortSignal): Promise<readonly CredentialState[]>;
  /**
   * Renews what is due; all of it with `force`. One outcome per credential. Does not retry by itself.
   */
  renew(options: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]>;
  /**
   * A cheap look, many times a minute, at what it reads: another text than before asks for a `renew`. Absent where
   * nothing but time makes one due.
   */
  fingerprint?(signal: AbortSignal): Promise<string>;
}
