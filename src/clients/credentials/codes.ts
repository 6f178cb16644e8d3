import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** What is wrong with a credential, or kept it from being renewed. */
export const credentialErrors = {
  'credential-missing': {
    meaning: 'The file of a credential is not there, or cannot be read.',
    remedy: 'Check the path and its permissions, and whatever is to put it there.',
  },
  'credential-wrong': {
    meaning:
      'A file is no usable credential: empty, cut off, rubbish, with a key that does not fit or a chain with a gap.',
    remedy: 'Make it anew; the message says what is wrong with it.',
  },
  'credential-exposed': {
    meaning: 'Others than the user of the daemon can read or change a secret file.',
    remedy: 'Give it to the user of the daemon and `chmod 600` it; Grid tools refuse it otherwise.',
  },
  'credential-source-ending': {
    meaning: 'What credentials are made from ends so soon that they are shorter than they should be.',
    remedy: 'Replace the long-lived proxy or certificate named.',
  },
  'credential-only-watched': {
    meaning: 'A credential is to be renewed, but this manager only watches it.',
    remedy: 'Renew it by what made it, or let another credential manager do so.',
  },
  'credential-tool': {
    meaning: 'The program that makes a credential is missing, failed, or did not end in time.',
    remedy: "See the program's own words in the message; run it by hand as the user of the daemon.",
  },
  'credential-unfit': {
    meaning:
      'What was made anew is not what was asked for: too short a lifetime, no such VO, somebody else. The last good one stays.',
    remedy: 'See the message; ask the VO or the issuer, or change the options.',
  },
  'credential-unwritable': {
    meaning: 'A new credential cannot be put in place. The last good one stays.',
    remedy: 'Check the directory, its permissions and the room on its disk.',
  },
  'credential-secret': {
    meaning: 'A Secret is not what was applied: something else writes the same key.',
    remedy:
      'Find the other writer (`kubectl get secret -o yaml --show-managed-fields`), or use a key of your own.',
  },
  'credential-issuer': {
    meaning: 'The token issuer cannot be reached, or refused.',
    remedy: 'See the message; check issuer, client, scopes and audience.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof credentialErrors> {}
}
