import { chmodSync, writeFileSync } from 'node:fs';
import type { Site } from './site.ts';

const script = `#!/bin/sh
printf '%s|' "$@"
printf '%s|%s\\n' "$GREETING" "$(cat "$THRESHER_PAYLOAD_DIR/key")"
exit 7
`;
/** Each of these would be something else to a shell. */
const odd = ["it's", 'a "b" c', '$(id)', '`id`', '*', 'two\nlines', ''];

export const operatorSecret = 'secret of the operator';
/** The standard output of the script, if its worker gets everything as the operator gave it. */
export const operatorOutput = `${odd.join('|')}|good  day|${operatorSecret}\n`;
/** With this status the script ends. */
export const operatorStatus = 7;

/**
 * Writes a script and a secret file that an operator sends to queue `Q`.
 * @returns the arguments of `thresher submit`, with these options
 */
export function submitScript(site: Site, ...options: readonly string[]): string[] {
  writeFileSync(site.path('run.sh'), script);
  chmodSync(site.path('run.sh'), 0o755);
  writeFileSync(site.path('key'), operatorSecret);
  const files = ['--file', site.path('run.sh'), '--secret-file', site.path('key')];
  return ['submit', 'Q', ...files, '--env', 'GREETING=good  day', ...options, '--', './run.sh', ...odd];
}
