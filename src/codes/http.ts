import type { Explanation } from './explanation.ts';

/** What the HTTP server says: at start, and in answers. */
export const httpErrors = {
  'http-port-in-use': {
    meaning: 'Another program listens on `http.host` and `http.port` already; nothing was started.',
    remedy: 'Set `http.port` to a free one (0: any), end the other program, or set `http.enabled: false`.',
  },
  'http-address': {
    meaning: 'The daemon cannot listen on `http.host` and `http.port`.',
    remedy: 'Name an address of this machine, and a port from 1024 on unless the daemon may use lower ones.',
  },
  'http-token-missing': {
    meaning: '`http.host` can be reached from other machines, and no token is asked for.',
    remedy: 'Set `http.tokenFile`, or `http.host: 127.0.0.1`.',
  },
  'http-token-unreadable': {
    meaning: 'The file with the token cannot be used. While the daemon runs, every request is refused.',
    remedy: 'Write one line with the token into it, readable by the user of the daemon.',
  },
  'http-token-refused': {
    meaning: 'A request brought no token, or a wrong one (401).',
    remedy: 'Send `Authorization: Bearer TOKEN`, or the token as the password in a browser.',
  },
  'http-host-refused': {
    meaning: 'A request without a token called the daemon by a name that may belong to a foreign site (403).',
    remedy:
      'Use 127.0.0.1 or localhost, or set that name as `http.host`; behind a proxy, set `http.tokenFile`.',
  },
  'http-not-found': { meaning: 'There is nothing at this path (404).', remedy: 'See `/api/openapi.json`.' },
  'http-method': {
    meaning: 'Only GET is answered (405).',
    remedy: 'Use the command line to change something.',
  },
  'http-request-wrong': {
    meaning: 'A parameter of a request is wrong or unknown (400).',
    remedy: 'Write what the message asks for; `/api/openapi.json` has all parameters.',
  },
  'http-failed': {
    meaning: 'A request could not be answered because of a defect (500).',
    remedy: "See the daemon's log, and report it.",
  },
  'log-busy': {
    meaning: 'So many log reads from this backend are under way that no further one is begun (503).',
    remedy: 'Try again; if it stays so, the backend does not answer.',
  },
} as const satisfies Record<string, Explanation>;
