import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What a command of HTCondor does in place of its work.
 * - `lost`: it did its work, and its answer is lost.
 * - `refused`: it could not connect.
 * - `empty`: it ends well and has written nothing.
 * - `cut`: it ends well in the middle of its answer.
 * - `late`: it answers after a second.
 * - `hanging`: it does not answer for a minute.
 */
export type ToolFault = 'lost' | 'refused' | 'empty' | 'cut' | 'late' | 'hanging';

export const wrapped = ['condor_q', 'condor_status', 'condor_drain'] as const;
export type Wrapped = (typeof wrapped)[number];

/** Executables that stand before those of HTCondor in the PATH of a daemon. */
export class FaultyTools {
  readonly directory: string;

  constructor(directory: string, programs: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
    for (const tool of wrapped) {
      const file = join(directory, tool);
      writeFileSync(
        file,
        script(join(programs, tool), join(directory, `${tool}.fault`), join(directory, `${tool}.calls`)),
      );
      chmodSync(file, 0o755);
    }
  }

  /** @param only a fault strikes calls with this word among their arguments alone */
  set(tool: Wrapped, fault: ToolFault, only = ''): void {
    writeFileSync(join(this.directory, `${tool}.fault`), `${fault} ${only}\n`);
  }

  heal(): void {
    for (const tool of wrapped) rmSync(join(this.directory, `${tool}.fault`), { force: true });
  }

  /** How often a command was called since the bed stands: its arguments, a line each. */
  calls(tool: Wrapped): readonly string[] {
    try {
      return readFileSync(join(this.directory, `${tool}.calls`), 'utf8')
        .trim()
        .split('\n');
    } catch {
      return [];
    }
  }
}

const script = (real: string, fault: string, calls: string) => `#!/bin/sh
echo "$*" >>'${calls}'
fault= only=
[ ! -e '${fault}' ] || read -r fault only <'${fault}'
case " $* " in *" $only "*) ;; *) [ -z "$only" ] || fault= ;; esac
case $fault in
  lost) '${real}' "$@" >/dev/null 2>&1; echo 'ERROR: Failed to connect to the daemon' >&2; exit 1 ;;
  refused) echo 'ERROR: Failed to connect to the daemon' >&2; exit 1 ;;
  empty) exit 0 ;;
  cut) answer=$('${real}' "$@"); printf '%.*s' $((\${#answer} / 2)) "$answer"; exit 0 ;;
  late) sleep 1 ;;
  hanging) sleep 60 ;;
esac
exec '${real}' "$@"
`;
