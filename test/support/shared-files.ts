import type { Messenger } from '../../src/plugins/contracts/index.ts';
import { SharedFileMessenger } from '../../src/plugins/messengers/shared-file/index.ts';

/** The messenger of a queue with these options. */
export function sharedFiles(options: { readonly accessPoint: string }): Messenger {
  return SharedFileMessenger.create(options, { configDir: '/' } as never) as Messenger;
}
