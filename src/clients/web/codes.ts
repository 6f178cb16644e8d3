import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Why a file could not be fetched by HTTP. */
export const webErrors = {
  'web-unreachable': {
    meaning:
      'No connection to the server of a URL came about, or it broke off before the whole file was there.',
    remedy:
      'See the message; check the URL, the network and the certificate authorities (`ca_cert` of `pandacon` counts beside those of the system).',
  },
  'web-late': {
    meaning: 'The server of a URL did not send the whole file in time.',
    remedy: 'Look at the server. `cacher.timeout` says how long thresher waits.',
  },
  'web-refused': {
    meaning: 'The server of a URL answers with an HTTP status that brings no file.',
    remedy: 'Open the URL by hand. It may have moved, or may need a login that thresher does not have.',
  },
  'web-redirect': {
    meaning: 'The server of a URL leads elsewhere too often, or from https: to another protocol.',
    remedy: 'Write the URL at which the file is.',
  },
  'web-too-large': {
    meaning: 'The file at a URL is larger than any that thresher takes.',
    remedy: 'Name the right file.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof webErrors> {}
}
