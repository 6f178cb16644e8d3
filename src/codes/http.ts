import type { Explanation } from './explanation.ts';

/** Errors of the HTTP server: at start, and in answers. */
export const httpErrors = {
  'http-port-in-use': {
    meaning: 'Another program already listens on `http.host` and `http.port`; the daemon did not start.',
    remedy: 'Set `http.port` to a free port (0: any), end the other program, or set `http.enabled: false`.',
  },
  'http-address': {
    meaning: 'The daemon cannot listen on `http.host` and `http.port`.',
    remedy: 'Name an address of this machine, and a port from 1024 on unless the daemon may use lower ones.',
  },
  'http-token-missing': {
    meaning: 'Other machines can reach `http.host`, and no token protects it.',
    remedy: 'Set `http.tokenFile`, or `http.host: 127.0.0.1`.',
  },
  'http-token-unreadable': {
    meaning: 'The daemon cannot use the file with the token. While it runs, it refuses every request.',
    remedy: 'Write one line with the token into the file, and let the user of the daemon read it.',
  },
  'http-tokens-same': {
    meaning:
      'The two files with tokens hold the same one: every reader could ask for workers. The daemon does not start; while it runs, it refuses to change anything (503).',
    remedy: 'Write another token into the file that `http.writeTokenFile` names.',
  },
  'http-token-refused': {
    meaning: 'A request had no token, or a wrong one (401).',
    remedy: 'Send `Authorization: Bearer TOKEN`, or the token as the password in a browser.',
  },
  'http-host-refused': {
    meaning: 'A request without a token named the daemon by a name that may belong to a foreign site (403).',
    remedy:
      'Use 127.0.0.1 or localhost, or set that name as `http.host`; behind a proxy, set `http.tokenFile`.',
  },
  'http-not-found': {
    meaning: 'The server has nothing at this path (404).',
    remedy: 'See `/api/openapi.json`.',
  },
  'http-method': {
    meaning: 'The server answers only GET at this path (405).',
    remedy: 'Use the command line to change something; `/api/requests` alone takes POST and DELETE.',
  },
  'http-write-refused': {
    meaning:
      'A request would change something, and no token for that is set, or the request brought the token that only reads (403).',
    remedy: 'Set `http.writeTokenFile` and send its token, or use `thresher submit` and `thresher withdraw`.',
  },
  'http-foreign-page': {
    meaning: 'A page of another site made a browser send a request that would change something (403).',
    remedy: 'Send such requests by a program, without the headers `Origin` and `Sec-Fetch-Site`.',
  },
  'http-request-wrong': {
    meaning: 'A parameter of a request, or its body, is wrong or unknown (400).',
    remedy: 'Write the value that the message asks for; `/api/openapi.json` has all parameters.',
  },
  'http-body-too-long': {
    meaning: 'The body of a request is longer than the server takes (413).',
    remedy: 'Send at most 2 MiB, and let the worker fetch what is larger.',
  },
  'http-body-no-json': {
    meaning: 'The body of a request is said to be something else than JSON (415).',
    remedy: 'Send JSON with the header `Content-Type: application/json`.',
  },
  'http-failed': {
    meaning: 'The server could not answer a request because of a defect (500).',
    remedy: "See the daemon's log, and report the defect.",
  },
  'log-busy': {
    meaning: 'Too many log reads from this backend are running, so the server begins no further one (503).',
    remedy: 'Try again; if the error stays, the backend does not answer.',
  },
} as const satisfies Record<string, Explanation>;
