import type { ErrorCode } from '../codes/codes.ts';
import type { WorkerStatus } from '../worker/status.ts';

/** An operator's request to a running daemon. */
export type Command =
  | { readonly kind: 'pause'; readonly queue: string; readonly reason: string }
  | { readonly kind: 'drain'; readonly queue: string; readonly reason: string }
  | { readonly kind: 'resume'; readonly queue: string }
  | { readonly kind: 'kill'; readonly ids: readonly number[] }
  | {
      readonly kind: 'kill-queue';
      readonly queue: string;
      readonly statuses?: readonly WorkerStatus[] | undefined;
    }
  | { readonly kind: 'sweep'; readonly orphans: boolean };

export interface CommandResult {
  readonly ok: boolean;
  /** One sentence for the operator. */
  readonly message: string;
  /** Why it was not done, where that has a code of its own. */
  readonly code?: ErrorCode;
}

export interface OpenCommand {
  readonly id: number;
  readonly command: Command;
}

/** Commands wait here until the daemon takes them up: they outlive both sides. */
export interface CommandStore {
  /** @returns the id by which the result is asked for */
  add(command: Command, at: number): Promise<number>;
  /** Commands without a result, in the order they came: also those that a daemon took up and died on. */
  open(): Promise<OpenCommand[]>;
  /** @returns when a daemon first took it up, ms UTC: `at`, unless one died on it before */
  take(id: number, at: number): Promise<number>;
  finish(id: number, result: CommandResult): Promise<void>;
  result(id: number): Promise<CommandResult | undefined>;
}
