import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PayloadFile } from '../../../worker/payload.ts';

/** The scripts as they ship with thresher: beside the sources as beside what was built of them. */
const directory = join(import.meta.dirname, '../../../../templates/htcjob');

let read: { readonly run: PayloadFile; readonly sendEvent: PayloadFile } | undefined;

/** The programs of every job: the same objects each time, so that they are checked once. */
export function jobScripts(): { readonly run: PayloadFile; readonly sendEvent: PayloadFile } {
  const file = (name: string): PayloadFile => {
    return { name, mode: 0o755, content: readFileSync(join(directory, name)).toString('base64') };
  };
  read ??= { run: file('run.sh'), sendEvent: file('send-event.sh') };
  return read;
}
