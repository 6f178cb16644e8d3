import { beginningOf, type Validity, whyUnusable } from '../../util/validity.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { WorkerError } from '../../worker/worker.ts';
import { type ReadCredential, readCredential } from './credential.ts';
import { exposure, readCredentialFile } from './files.ts';

/** A credential file as credential managers report it. Its path is its name. */
export type FileState =
  | {
      readonly kind: 'there';
      readonly facts: Omit<ReadCredential, 'secret'> & { readonly name: string };
      readonly warnings: readonly Reason[];
    }
  | { readonly kind: 'broken'; readonly name: string; readonly error: WorkerError };

export type RenewedFile =
  | { readonly kind: 'renewed' | 'unchanged'; readonly name: string }
  | { readonly kind: 'failed'; readonly name: string; readonly error: WorkerError };

/** Reads a credential file again. It never throws for a fault of the file. */
export async function inspectFile(path: string): Promise<FileState> {
  try {
    const file = await readCredentialFile(path);
    const { secret, ...facts } = readCredential(file.bytes, path);
    const exposed = secret ? exposure(path, file, process.geteuid?.()) : undefined;
    return {
      kind: 'there',
      facts: { name: path, ...facts },
      warnings: exposed === undefined ? [] : [exposed],
    };
  } catch (error) {
    return { kind: 'broken', name: path, error: asError(error) };
  }
}

/**
 * Whether a credential is to be made anew that should have `left` of its `lifetime`: a VO or issuer may give less than
 * requested, and then the credential is due at the same part of its life. One that cannot be used, or has no end, is due. All in ms.
 * @param now ms UTC
 */
export function isDue(
  credential: Validity,
  { left, lifetime }: { readonly left: number; readonly lifetime: number },
  now: number,
): boolean {
  const { expiresAt } = credential;
  if (expiresAt === undefined || whyUnusable(credential, now) !== undefined) return true;
  const whole = Math.min(lifetime, expiresAt - (beginningOf(credential, now) ?? -Infinity));
  return now >= expiresAt - (whole * left) / lifetime;
}

/**
 * The result of a renewal by a manager that only watches: a caller who asks for a new credential, or needs one, learns
 * that this manager makes none.
 * @param now ms UTC
 */
export function watchedOutcome(state: FileState, force: boolean, now: number): RenewedFile {
  if (state.kind === 'broken') return { kind: 'failed', name: state.name, error: state.error };
  const { name } = state.facts;
  const why = whyUnusable(state.facts, now);
  if (!force && why === undefined) return { kind: 'unchanged', name };
  const message = `${name} ${why === undefined ? '' : `${why}, and `}is only watched: the program that made it must renew it`;
  return { kind: 'failed', name, error: { code: 'credential-only-watched', message } };
}

/** The outcome of a renewal; an error that it throws on purpose is one, too. */
export async function outcomeOf(
  name: string,
  renew: () => Promise<'renewed' | 'unchanged'>,
): Promise<RenewedFile> {
  try {
    return { kind: await renew(), name };
  } catch (error) {
    return { kind: 'failed', name, error: asError(error) };
  }
}

/** @throws what is no ThresherError: a defect, whose message may hold anything. */
function asError(error: unknown): WorkerError {
  if (error instanceof ThresherError) return { code: error.code, message: messageOf(error) };
  throw error;
}
