import { posix } from 'node:path';
import type { ContainerShape, PodSpecShape } from './template-shape.ts';

/** Harvester mounts its starter here, and so thresher its own. */
export const executableDirectory = '/scratch/executables';
/** Volume and ConfigMap of the starter, as Harvester calls both. */
export const starterName = 'pilots-starter';

/** From which ConfigMap a pilot gets its starter. */
export interface StarterUse {
  readonly configMap: string;
  /** thresher makes and sweeps it; otherwise the operator does. */
  readonly ours: boolean;
}

/** The words of a shell that name the starter's directory. */
const names = /\$\{?EXEC_DIR|\/scratch\/executables/;

/**
 * Whether a pilot needs a starter. Harvester mounts its own into every Pod and starts it where the template has no command.
 * @param named the queue's `pilotsStarterConfigMap`: another ConfigMap, or "" for no starter
 */
export function starterOf(
  { volumes = [] }: Pick<PodSpecShape, 'volumes'>,
  { command, args = [], volumeMounts = [] }: Pick<ContainerShape, 'command' | 'args' | 'volumeMounts'>,
  named: string | undefined,
): StarterUse | undefined {
  if (named === '') return undefined;
  if (named !== undefined) return { configMap: named, ours: false };
  const ours: StarterUse = { configMap: starterName, ours: true };
  if (volumes.some((volume) => configMapOf(volume) === starterName)) return ours;
  const mounted = volumeMounts.some(
    ({ mountPath }) => !posix.relative(executableDirectory, mountPath).startsWith('..'),
  );
  if (mounted) return undefined;
  return command === undefined || namesStarter({ command, args }) ? ours : undefined;
}

/** Whether a command of the template reaches for a starter. */
export function namesStarter({ command = [], args = [] }: Pick<ContainerShape, 'command' | 'args'>): boolean {
  return [...command, ...args].some((word) => names.test(word));
}

/** Bash becomes Python, so that a signal to the Pod reaches the starter. One of Harvester's leaves orphans to bash. */
export function starterCommand({ ours }: StarterUse): Required<Pick<ContainerShape, 'command' | 'args'>> {
  const start = 'python3 $EXEC_DIR/pilots_starter.py';
  return { command: ['/usr/bin/bash'], args: ['-c', ours ? `cd; exec ${start}` : `cd; ${start}`] };
}

function configMapOf(volume: object): unknown {
  return (volume as { readonly configMap?: { readonly name?: unknown } }).configMap?.name;
}
