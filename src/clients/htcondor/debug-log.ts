/** Characters of one command that are logged. Their end tells of a failure. */
const longest = 8000;

/** Logs all that HTCondor's commands say where `_CONDOR_TOOL_DEBUG` asks for more than errors. */
export function debugLog(log: { info(message: string, facts: Readonly<Record<string, unknown>>): void }) {
  return (command: string, said: string): void => {
    log.info('a command of HTCondor said', { command, said: said.trim().slice(-longest) });
  };
}
