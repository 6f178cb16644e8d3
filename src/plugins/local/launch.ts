import { identityVariable } from './marked-processes.ts';
import type { FilledTemplate } from './template.ts';
import type { Marked } from './worker-files.ts';

/** A pilot inherits these variables from the daemon; any other may be the daemon's own secret. */
export const inherited = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

/** Carries the PATH of a command past the scripts that start it. */
const commandPath = 'THRESHER_COMMAND_PATH';

/** The words and variables that the shim of a worker is started with. */
export interface Launch {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A command that has another PATH than the daemon gets it in the last moment: the scripts before it need programs of the
 * machine.
 */
export function launchOf({ command, args, env }: FilledTemplate, marked: Marked): Launch {
  const base = Object.fromEntries(
    inherited.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
  const words = [command, ...args];
  const whole = { ...base, ...env, ...identityOf(marked) };
  const own = base['PATH'];
  if (env['PATH'] === undefined || own === undefined) return { words, env: whole };
  const setPath = `PATH=$${commandPath}; unset ${commandPath}; exec "$@"`;
  return {
    words: ['/bin/sh', '-c', setPath, 'sh', ...words],
    env: { ...whole, PATH: own, [commandPath]: env['PATH'] },
  };
}

/** The variables that processes of a worker carry, so that they can say who they are when their directory is gone. */
function identityOf(marked: Marked): Record<string, string> {
  return { [identityVariable]: JSON.stringify(marked), THRESHER_FACTORY: marked.factory };
}
