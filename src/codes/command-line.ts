import type { Explanation } from './explanation.ts';

/** Errors of the command line. */
export const commandLineErrors = {
  'command-refused': {
    meaning: 'The daemon could not carry out the command.',
    remedy: 'See the message.',
  },
  usage: { meaning: 'The command line is wrong.', remedy: 'See `thresher --help`.' },
  'no-such-worker': {
    meaning: 'No worker has this id, or its row was deleted long after its end.',
    remedy: 'See `thresher workers`; raise `sweeper.keepFinished` and its like to keep rows longer.',
  },
  'no-such-request': {
    meaning: 'No request has this id, or its row was deleted long after its last worker.',
    remedy: 'See `thresher requests`.',
  },
  'request-wrong': {
    meaning: 'A request for workers asks for something that cannot be.',
    remedy: 'Write the value that the message asks for.',
  },
  'request-key-taken': {
    meaning: 'Another request has the key that the asker gave, and asks for something else (409).',
    remedy: 'Take a new key for each request; only a repeated request may have the key of the first.',
  },
  'requests-full': {
    meaning:
      'Too many requests wait for workers: more than 10,000, for more than 100,000 workers, or with more than 128 MiB of payloads (429).',
    remedy:
      'Ask again when some of them have their workers, ask for many workers in one request (`--count`) and not in many, or withdraw requests that are needed no more.',
  },
  'no-such-credential': {
    meaning: 'No credential, and no manager of credentials, has this name.',
    remedy: 'See `thresher credentials` for all names.',
  },
  'no-such-queue': { meaning: 'No queue has this name.', remedy: 'See `thresher queues`.' },
  'no-render': {
    meaning:
      'The submitter of a queue cannot show what it would send, or the configuration of a worker is gone.',
    remedy: 'See the message; a plugin needs the method `render` for this (docs/plugins.md).',
  },
  'no-log': {
    meaning:
      'The log of a worker does not exist: the worker never started, thresher has swept it, or its backend keeps no logs.',
    remedy: 'See `thresher worker ID`; raise `sweeper.keepFinished` and its like to keep logs longer.',
  },
} as const satisfies Record<string, Explanation>;
