import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../util/clock.ts';
import { hasCode } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { withoutSecrets } from './redact.ts';

/** A program that makes a credential. */
export interface ToolCall {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing of the daemon's own is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** What it reads; then its input ends, so that none waits for an answer. Never shown. */
  readonly input?: string;
  /** Other texts that are never shown. */
  readonly secrets?: readonly string[];
  /** ms */
  readonly timeLimit: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** bytes */
const outputLimit = 64 * 1024;
/** Lines, and characters of each, of a program's complaint that are shown. */
const shownLines = 3;
const shownLength = 200;
/** How long its pipes may stay open in other hands once it ended, ms. */
const closingTime = 500;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
  readonly endedBy: NodeJS.Signals | null;
  readonly overflow: boolean;
}

/**
 * Runs a program without a shell, in a process group of its own, which is killed as a whole at the limit.
 * @returns what it wrote to its standard output.
 * @throws ThresherError `credential-tool` with its last words, in which nothing looks like a secret.
 */
export async function runTool(call: ToolCall): Promise<string> {
  const fail = (what: string, cause?: unknown) =>
    new ThresherError('credential-tool', `${call.command} ${what}`, { command: call.command }, { cause });
  if (call.signal.aborted) throw fail('was not started, because the daemon gave it up');
  const over = new AbortController();
  let child: Child;
  try {
    child = await start(call);
  } catch (error) {
    throw fail(whyNotStarted(error), error);
  }
  const killed: { why?: string } = {};
  const limit = call.clock.sleep(call.timeLimit, AbortSignal.any([call.signal, over.signal])).then(() => {
    if (over.signal.aborted) return;
    killed.why = call.signal.aborted
      ? 'was ended, because the daemon gave it up'
      : `did not end within ${call.timeLimit / 1000} s and was killed`;
    killGroup(child);
  });
  const ended = await follow(child, call);
  over.abort();
  await limit;
  const words = lastWords(ended, [...(call.secrets ?? []), ...(call.input?.split('\n') ?? [])]);
  if (killed.why !== undefined) throw fail(`${killed.why}${words}`);
  if (ended.overflow) throw fail(`wrote more than ${outputLimit / 1024} kB and was killed`);
  if (ended.endedBy !== null) throw fail(`was ended by ${ended.endedBy}${words}`);
  if (ended.status !== 0) throw fail(`ended with exit status ${ended.status ?? '?'}${words}`);
  return ended.stdout;
}

function start({ command, args, environment }: ToolCall): Promise<Child> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...environment }, cwd: '/', detached: true } as const;
    const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
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

function follow(child: Child, { input }: ToolCall): Promise<Ended> {
  return new Promise((resolve) => {
    let overflow = false;
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length + text.length > outputLimit) {
        overflow = true;
        killGroup(child);
      } else stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-outputLimit);
    });
    // One that does not read its input closes it; that is for its exit status to tell.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    child.once('exit', (status, endedBy) => {
      const closing = setTimeout(() => {
        // What it left behind holds the pipes, and perhaps a key.
        killGroup(child);
        child.stdout.destroy();
        child.stderr.destroy();
      }, closingTime);
      child.once('close', () => {
        clearTimeout(closing);
        resolve({ stdout, stderr, status, endedBy, overflow });
      });
    });
  });
}

function killGroup({ pid }: Child): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}

/** The end of what it complained of, in one line. */
function lastWords({ stdout, stderr }: Ended, secrets: readonly string[]): string {
  const from = (text: string) =>
    text
      .split(/[\r\n]+/)
      .map((line) => withoutSecrets(line.trim(), secrets))
      // Dots and pluses show that a key is being looked for.
      .filter((line) => /[A-Za-z]/.test(line))
      .slice(-shownLines)
      .map((line) => (line.length > shownLength ? `${line.slice(0, shownLength)}...` : line));
  const complained = from(stderr);
  const said = complained.length > 0 ? complained : from(stdout);
  return said.length === 0 ? '' : `: ${said.join('; ')}`;
}
