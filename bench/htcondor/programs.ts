import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';

/** Is told of every program that this process starts from now on, with whichever function of Node. */
export function onProgram(started: (file: string) => void): void {
  subscribe('child_process', (message) => {
    const { process: child } = message as { readonly process: ChildProcess };
    // It is told before the child knows what it will be.
    queueMicrotask(() => {
      started(child.spawnfile);
    });
  });
}
