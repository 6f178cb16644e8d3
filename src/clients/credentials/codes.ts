import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Faults of a credential, or of its renewal. */
export const credentialErrors = {
  'credential-missing': {
    meaning: 'The file of a credential does not exist, or thresher cannot read it.',
    remedy: 'Check the path, its permissions, and the program that should put the file there.',
  },
  'credential-wrong': {
    meaning:
      'A file is no usable credential: it is empty, truncated or garbage, its key does not fit, or its chain has a gap.',
    remedy: 'Make a new one; the message names the fault.',
  },
  'credential-exposed': {
    meaning: 'Other users than that of the daemon can read or change a secret file.',
    remedy: 'Give the file to the user of the daemon and `chmod 600` it; otherwise Grid tools refuse it.',
  },
  'credential-source-ending': {
    meaning: 'The source of a credential ends so soon that the new credential would be too short.',
    remedy: 'Replace the long-lived proxy or certificate that the message names.',
  },
  'credential-only-watched': {
    meaning: 'The manager of this credential only watches it, and cannot renew it.',
    remedy: 'Renew the credential with the program that made it, or let another credential manager do so.',
  },
  'credential-targets-missing': {
    meaning: 'A manager gets tokens for the computing elements of the queues, and no queue names any.',
    remedy:
      'Name the endpoints in `ceList` of the queues, or in `target_list` or `target_list_file` of the manager. Those of CRIC need `useCRICGridCE` and `panda_queues.json` in `cacher.data`.',
  },
  'credential-old': {
    meaning:
      'The key of a token in use is older than `refresh_interval`: its renewal fails, or no daemon renews it. Queues go on: the server takes a key for days.',
    remedy: 'See `credential not renewed` in the log, or run `thresher credentials renew NAME`.',
  },
  'credential-tool': {
    meaning: 'The program that makes a credential is missing, failed, or did not end in time.',
    remedy: "See the program's own words in the message; run the program by hand as the user of the daemon.",
  },
  'credential-unfit': {
    meaning:
      'A new credential differs from the requested one: too short a lifetime, a missing VO, another subject. thresher keeps the last good one.',
    remedy: 'See the message; ask the VO or the issuer, or change the options.',
  },
  'credential-unwritable': {
    meaning: 'thresher cannot put a new credential in place, and keeps the last good one.',
    remedy: 'Check the directory, its permissions and the space on its disk.',
  },
  'credential-secret': {
    meaning:
      'The content of a Secret differs from the one that thresher applied: another client writes the same key.',
    remedy:
      'Find the other writer (`kubectl get secret -o yaml --show-managed-fields`), or use a key of your own.',
  },
  'credential-issuer': {
    meaning:
      'The token issuer does not answer, or refuses, or what it gives is no token (a JWT). The last one stays.',
    remedy: 'See the message; check issuer, client, scopes and audience.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof credentialErrors> {}
}
