import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../failure.ts';

/** A process that is still the same one: ids are used again, a start time (clock ticks since boot) with them is not. */
export interface Recorded {
  readonly pid: number;
  readonly startTicks: number;
}

/** @returns undefined if there is no such process, or only its zombie. */
export function recordOf(pid: number): Recorded | undefined {
  const fields = statOf(String(pid));
  return fields.length === 0 || fields[0] === 'Z' ? undefined : { pid, startTicks: Number(fields[19]) };
}

export function isAlive(recorded: Recorded): boolean {
  return recordOf(recorded.pid)?.startTicks === recorded.startTicks;
}

export interface NamedProcess extends Recorded {
  /** As the kernel has it: 15 characters at most. */
  readonly program: string;
  readonly hasTerminal: boolean;
  /** Matches in its command line and its environment. */
  readonly matches: readonly RegExpExecArray[];
}

/** All processes with a text in their command line or environment, without this one and those above it. */
export function processesNaming(text: string | RegExp): NamedProcess[] {
  const escaped = typeof text === 'string' ? text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&') : text.source;
  const pattern = new RegExp(escaped, 'g');
  const own = ancestry(process.pid);
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry) || own.has(Number(entry))) return [];
    try {
      const of = (name: string) => readFileSync(`/proc/${entry}/${name}`, 'latin1');
      const matches = [...`${of('cmdline')}\0${of('environ')}`.matchAll(pattern)];
      const recorded = recordOf(Number(entry));
      if (matches.length === 0 || recorded === undefined) return [];
      return [{ ...recorded, program: of('comm').trim(), hasTerminal: statOf(entry)[4] !== '0', matches }];
    } catch {
      // The process has ended meanwhile, or belongs to another user.
      return [];
    }
  });
}

/** A process and all above it. */
function ancestry(pid: number): Set<number> {
  const found = new Set<number>();
  for (let one = pid; one > 0 && !found.has(one);) {
    found.add(one);
    one = Number(statOf(String(one))[1]);
  }
  return found;
}

/** The fields behind the name: state, parent, group, session, terminal ... Empty for a process that has ended. */
function statOf(pid: string): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

/** Starts a program that outlives this one, with its output at the end of `log`. */
export async function startDetached(
  command: string,
  args: readonly string[],
  log: string,
  directory: string,
): Promise<Recorded> {
  const output = openSync(log, 'a');
  try {
    const child = spawn(command, args, { cwd: directory, detached: true, stdio: ['ignore', output, output] });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        reject(new Failure(`${command} cannot be started: ${error.message}`));
      });
    });
    child.unref();
    const pid = child.pid ?? 0;
    // One that ended at once is recorded as what it is: not alive.
    return recordOf(pid) ?? { pid, startTicks: 0 };
  } finally {
    closeSync(output);
  }
}

/** Kills processes; their state is thrown away, so nothing is gained by asking. Comes back when they are gone. */
export async function killAll(processes: readonly Recorded[]): Promise<void> {
  for (const one of processes) {
    try {
      if (isAlive(one)) process.kill(one.pid, 'SIGKILL');
    } catch (error) {
      // The process has ended between the look and the signal.
      if (isAlive(one)) throw error;
    }
  }
  const end = performance.now() + 10_000;
  while (processes.some(isAlive)) {
    if (performance.now() > end) {
      const left = processes.filter(isAlive).map(({ pid }) => pid);
      throw new Failure(`processes ${left.join(', ')} do not end, though they were killed`);
    }
    await sleep(10);
  }
}
