import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import { NotStarted, type ProgramEnd, runProgram } from '../program.ts';
import { fromOutside, withoutOwn } from '../../util/own-secrets.ts';
import { withoutKeys } from '../../util/secrets.ts';
import { withoutSecrets } from './redact.ts';

/** A program that makes a credential. */
export interface ToolCall {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment: the program gets nothing of the daemon's own. */
  readonly environment: Readonly<Record<string, string>>;
  /** Its standard input, which then ends, so that no program waits for an answer. Never shown. */
  readonly input?: string;
  /** Other texts that are never shown. */
  readonly secrets?: readonly string[];
  /** ms */
  readonly timeLimit: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** characters */
const outputLimit = 64 * 1024;
/** Lines, and characters of each, of a program's complaint that are shown. */
const shownLines = 3;
const shownLength = 200;

/**
 * Runs a program without a shell, in a process group of its own, which is killed as a whole at the limit.
 * @returns its standard output.
 * @throws ThresherError `credential-tool` with its last words, from which secrets are removed.
 */
export async function runTool(call: ToolCall): Promise<string> {
  const { secrets = [], ...program } = call;
  const fail = (what: string, cause?: unknown) =>
    new ThresherError('credential-tool', `${call.command} ${what}`, { command: call.command }, { cause });
  let end: ProgramEnd;
  try {
    end = await runProgram({ ...program, outputLimit });
  } catch (error) {
    throw error instanceof NotStarted ? fail(error.message, error.cause) : error;
  }
  const words = lastWords(end, [...secrets, ...(call.input?.split('\n') ?? [])]);
  if (end.killed === 'given-up') throw fail(`was ended, because the daemon gave it up${words}`);
  if (end.killed === 'time')
    throw fail(`did not end within ${call.timeLimit / 1000} s and was killed${words}`);
  if (end.killed === 'output') throw fail(`wrote more than ${outputLimit / 1024} kB and was killed`);
  if (end.endedBy !== null) throw fail(`was ended by ${end.endedBy}${words}`);
  if (end.status !== 0) throw fail(`ended with exit status ${end.status ?? '?'}${words}`);
  return end.stdout;
}

/** The end of its error output, in one line. */
function lastWords({ stdout, stderr }: ProgramEnd, secrets: readonly string[]): string {
  const from = (text: string) =>
    // A key has lines, the last of which may be short.
    withoutKeys(withoutOwn(text))
      .split(/[\r\n]+/)
      .map((line) => fromOutside(withoutSecrets(line.trim(), secrets)))
      // Dots and pluses show that a key is being looked for.
      .filter((line) => /[A-Za-z]/.test(line))
      .slice(-shownLines)
      .map((line) => (line.length > shownLength ? `${line.slice(0, shownLength)}...` : line));
  const complained = from(stderr);
  const said = complained.length > 0 ? complained : from(stdout);
  return said.length === 0 ? '' : `: ${said.join('; ')}`;
}
