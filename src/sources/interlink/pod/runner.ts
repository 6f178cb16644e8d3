import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The programs of every job, as they ship with thresher: beside the sources as beside what was built of them. */
const directory = join(import.meta.dirname, '../../../../templates/interlink');

/** The runner and its parts, which it reads at its start. */
const runner = [
  'run.sh',
  'state.sh',
  'container.sh',
  'actions.sh',
  'enter.sh',
  'look-after.sh',
  'images.sh',
  'around.sh',
  'prefix.sh',
] as const;

interface Script {
  readonly name: string;
  readonly mode: number;
  /** Base64. */
  readonly content: string;
}

let read: { readonly runner: readonly Script[]; readonly sendReport: Script } | undefined;

export function podScripts(): { readonly runner: readonly Script[]; readonly sendReport: Script } {
  const script = (name: string): Script => {
    const content = readFileSync(join(directory, name)).toString('base64');
    return { name, mode: 0o755, content };
  };
  read ??= { runner: runner.map(script), sendReport: script('send-report.sh') };
  return read;
}
