import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of the PanDA server, or of the way to it. */
export const pandaErrors = {
  'panda-unreachable': {
    meaning: 'No connection to the PanDA server came about.',
    remedy:
      'See the message; check the address of the server, the network and the certificate authorities (`ca_cert`).',
  },
  'panda-no-answer': {
    meaning:
      'The PanDA server answered too late, or only half. It may have carried the call out all the same.',
    remedy: 'thresher sends the same again. If it goes on, ask the operators of the server.',
  },
  'panda-no-api': {
    meaning:
      'An answer is not one of the API `/api/v1/`: another program answers there, or the server is older than 0.8.',
    remedy: 'Check `server_api_url_ssl`; it ends in `/api/v1`.',
  },
  'panda-certificate': {
    meaning: 'The PanDA server saw no client certificate that it trusts.',
    remedy:
      'Check `cert_file` and `key_file`: the server refuses limited proxies and certificates that have ended.',
  },
  'panda-role': {
    meaning:
      'The certificate or token lacks the production role, without which the server gives no commands and takes no acknowledgements.',
    remedy:
      'With x509 use a proxy with `/Role=production`; with tokens set `auth_origin` to `VO.production` and have the client put into that group.',
  },
  'panda-token': {
    meaning: 'The PanDA server refuses the token.',
    remedy:
      'See the message: a token may have ended, `auth_origin` may be missing, or the client may be unknown to the server.',
  },
  'panda-credentials': {
    meaning: 'thresher cannot use the certificate, key or token that the settings name for the PanDA server.',
    remedy: 'See the message; check the file and its permissions.',
  },
  'panda-database': {
    meaning:
      'The database of the PanDA server does not answer, or refused the data. Part of a batch may be stored.',
    remedy: 'thresher sends the same again. If one call fails for ever, its data are wrong: report it.',
  },
  'panda-busy': {
    meaning: 'The PanDA server could not do it in time, or another client holds its rows.',
    remedy: 'thresher tries again.',
  },
  'panda-empty': {
    meaning: 'The PanDA server has nothing to give.',
    remedy: 'Nothing is wrong.',
  },
  'panda-argument': {
    meaning: 'The PanDA server does not take an argument of the call.',
    remedy: 'The versions may not fit each other: report it with the message.',
  },
  'panda-worker-id': {
    meaning:
      'The PanDA server names a highest worker id of this instance that is none, or that leaves no room for further ones, such as a pilot with a broken id makes. thresher counts by its own ids.',
    remedy:
      "Have the row with that id taken out of the server's table `harvester_workers`. Nothing waits for it: thresher asks again with its heartbeats.",
  },
  'panda-token-key': {
    meaning:
      'The PanDA server gives the login no key of a token for this client, or an answer that is no key, which is a UUID. The key in the file stays.',
    remedy:
      "See the message. At the server the user of the login needs `t` in GRIDPREF, and `client_name` must be a client of the server's token cache that has `use_token_key`.",
  },
  'panda-server-error': {
    meaning: 'The PanDA server failed inside.',
    remedy: 'thresher tries again; ask the operators of the server.',
  },
  'panda-refused': {
    meaning: 'The PanDA server refused a call for a reason that thresher does not know.',
    remedy: 'See the message.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof pandaErrors> {}
}
