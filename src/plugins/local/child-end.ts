import type { ChildProcess } from 'node:child_process';

/** How a child ended, once it has; a child that could not be started has ended too. */
export function endOf(child: ChildProcess): { readonly value: string | undefined } {
  const end: { value: string | undefined } = { value: undefined };
  child.once('error', (error) => (end.value = error.message));
  child.once('exit', (code, signal) => (end.value ??= signal ?? `exit status ${code ?? '?'}`));
  return end;
}
