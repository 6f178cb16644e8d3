import { fromOutside, withoutOwn } from '../../util/own-secrets.ts';
import { withoutKeys } from '../../util/secrets.ts';

/** Characters of one command that are logged. Their end tells of a failure. */
const longest = 8000;

/** Logs all that HTCondor's commands say where `_CONDOR_TOOL_DEBUG` asks for more than errors. */
export function debugLog(log: { info(message: string, facts: Readonly<Record<string, unknown>>): void }) {
  return (command: string, said: string): void => {
    // A key has lines, and nothing in one of them tells what it is.
    const shown = withoutKeys(withoutOwn(said)).trim();
    const isCut = shown.length > longest;
    // Half a line may have half a secret.
    const lines = shown
      .slice(-longest)
      .split('\n')
      .slice(isCut ? 1 : 0);
    log.info('a command of HTCondor said', { command, said: lines.map(fromOutside).join('\n') });
  };
}
