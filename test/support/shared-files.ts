import type { Messenger } from '../../src/plugins/contracts/index.ts';
import { SharedFileMessenger } from '../../src/plugins/messengers/shared-file/index.ts';
import { files } from './operator-files.ts';

/** The messenger of a queue with these options. */
export function sharedFiles(options: { readonly accessPoint: string }): Messenger {
  return SharedFileMessenger.create(options, { configDir: '/', files } as never) as Messenger;
}
