import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The scripts as they ship with thresher: beside the sources as beside what was built of them. */
const directory = join(import.meta.dirname, '../../../../templates/htcjob');

let read: { readonly run: string; readonly sendEvent: string } | undefined;

/** The programs of every job, base64. */
export function jobScripts(): { readonly run: string; readonly sendEvent: string } {
  const content = (name: string) => readFileSync(join(directory, name)).toString('base64');
  read ??= { run: content('run.sh'), sendEvent: content('send-event.sh') };
  return read;
}
