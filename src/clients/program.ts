import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../util/clock.ts';
import { hasCode } from '../util/files.ts';
import { messageOf } from '../worker/errors.ts';

/** A program of others. */
export interface ProgramCall {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment: the program gets nothing of the daemon's own. */
  readonly environment: Readonly<Record<string, string>>;
  /** Its standard input, which then ends, so that no program waits for an answer. */
  readonly input?: string;
  /** Default "/". */
  readonly directory?: string;
  /** ms */
  readonly timeLimit: number;
  /**
   * Maximum of characters of its standard output; a program that writes more is killed. With `onOutput` nothing of it is kept here, and it counts
   * all the same: who takes it keeps what he makes of it.
   */
  readonly outputLimit: number;
  /** `latin1`: each character of its standard output is one byte. Default: text in UTF-8. */
  readonly encoding?: 'latin1';
  /** Takes the standard output piece by piece. An error that it throws ends the program. */
  readonly onOutput?: (text: string) => void;
  /** Is told as soon as it runs: it leads a process group of its own, and outlives a daemon that is killed. */
  readonly onStart?: (pid: number) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface ProgramEnd {
  readonly stdout: string;
  /** The end of it. */
  readonly stderr: string;
  readonly status: number | null;
  readonly endedBy: NodeJS.Signals | null;
  /** Why it was killed here. */
  readonly killed?: 'time' | 'given-up' | 'output';
}

/** How long a program's pipes may stay open in other hands once it ended, ms. */
const closingTime = 500;
/** Characters of the standard error that are kept. */
const errorLimit = 64 * 1024;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Why a program could not be started at all: it has done nothing. */
export class NotStarted extends Error {
  readonly missing: boolean;

  constructor(message: string, missing: boolean, options?: ErrorOptions) {
    super(message, options);
    this.missing = missing;
  }
}

/**
 * Runs a program without a shell, in a process group of its own, which is killed as a whole at the limit.
 * @throws NotStarted if it never ran, and what `onOutput` throws.
 */
export async function runProgram(call: ProgramCall): Promise<ProgramEnd> {
  if (call.signal.aborted) throw new NotStarted('was not started, because the daemon gave it up', false);
  const over = new AbortController();
  let child: Child;
  try {
    child = await start(call);
  } catch (error) {
    throw new NotStarted(whyNotStarted(error), hasCode(error, 'ENOENT'), { cause: error });
  }
  const killed: { why?: 'time' | 'given-up' | 'output' } = {};
  const limit = call.clock.sleep(call.timeLimit, AbortSignal.any([call.signal, over.signal])).then(() => {
    if (over.signal.aborted) return;
    killed.why = call.signal.aborted ? 'given-up' : 'time';
    killGroup(child);
  });
  const { thrown, overflow, ...end } = await follow(child, call);
  over.abort();
  await limit;
  if (thrown !== undefined) throw thrown.error;
  const why = killed.why ?? (overflow ? 'output' : undefined);
  return { ...end, ...(why && { killed: why }) };
}

function start({ command, args, environment, directory = '/', onStart }: ProgramCall): Promise<Child> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...environment }, cwd: directory, detached: true } as const;
    const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    if (child.pid !== undefined) onStart?.(child.pid);
    child.once('spawn', () => {
      resolve(child);
    });
    child.once('error', reject);
  });
}

function whyNotStarted(error: unknown): string {
  if (hasCode(error, 'ENOENT')) return 'was not found: install it, or name it with its path';
  if (hasCode(error, 'EACCES')) return 'may not be executed';
  return `cannot be started: ${messageOf(error)}`;
}

interface Followed extends ProgramEnd {
  readonly overflow: boolean;
  readonly thrown?: { readonly error: unknown };
}

function follow(child: Child, { input, outputLimit, encoding, onOutput }: ProgramCall): Promise<Followed> {
  return new Promise((resolve) => {
    let overflow = false;
    let thrown: { error: unknown } | undefined;
    let written = 0;
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding(encoding ?? 'utf8').on('data', (text: string) => {
      if (overflow || thrown !== undefined) return;
      written += text.length;
      if (written > outputLimit) {
        overflow = true;
        killGroup(child);
      } else if (onOutput !== undefined) {
        try {
          onOutput(text);
        } catch (error) {
          thrown = { error };
          killGroup(child);
        }
      } else stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-errorLimit);
    });
    // One that does not read its input closes it; that is for its exit status to tell.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    child.once('exit', (status, endedBy) => {
      const closing = setTimeout(() => {
        // Processes that it left behind hold the pipes, and perhaps a key.
        killGroup(child);
        child.stdout.destroy();
        child.stderr.destroy();
      }, closingTime);
      child.once('close', () => {
        clearTimeout(closing);
        resolve({ stdout, stderr, status, endedBy, overflow, ...(thrown && { thrown }) });
      });
    });
  });
}

function killGroup({ pid }: Child): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has no process left.
  }
}
