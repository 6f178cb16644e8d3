/** Where a code turns up. `reason`: why no worker is submitted; `worker`: what became of one worker. */
export type ErrorKind = 'config' | 'store' | 'daemon' | 'cli' | 'reason' | 'worker';

export interface CatalogueEntry {
  readonly kind: ErrorKind;
  readonly meaning: string;
  readonly remedy: string;
}

/**
 * Every code this program shows. Codes are never renamed or reused. `docs/errors.md` is generated from this table,
 * and a test holds every code in the sources against it.
 */
export const errorCatalogue = {
  // --- configuration -------------------------------------------------------------------------------------------
  'file-unreadable': {
    kind: 'config',
    meaning: 'A configuration or template file does not exist or may not be read.',
    remedy: 'Check the path (relative paths count from the file that names them) and its permissions.',
  },
  syntax: {
    kind: 'config',
    meaning: 'A file is not valid JSON or YAML.',
    remedy: 'Mend the place named; for JSON, look for a missing comma or quote just before it.',
  },
  'duplicate-key': {
    kind: 'config',
    meaning: 'A JSON object has the same key twice. The last one counts, as in Harvester.',
    remedy: 'Remove the one that is not meant.',
  },
  'wrong-type': {
    kind: 'config',
    meaning: 'A value has the wrong type or is out of bounds.',
    remedy: 'Write what the message asks for.',
  },
  'unknown-setting': {
    kind: 'config',
    meaning: 'thresher.yaml has a key that this version does not know.',
    remedy: 'Look for a spelling mistake; docs/configuration.md lists all keys.',
  },
  'unread-option': {
    kind: 'config',
    meaning: 'A plugin section has an option that its plugin does not read. It is kept and has no effect.',
    remedy: 'Remove it, or look for a spelling mistake.',
  },
  'unknown-template-queue': {
    kind: 'config',
    meaning: '`templateQueueName` names a queue that is not in the file.',
    remedy: 'Name an existing entry, or remove `templateQueueName`.',
  },
  'implicit-template': {
    kind: 'config',
    meaning: 'A queue is used as a template without saying so; it counts as one and submits nothing itself.',
    remedy: 'Add `"isTemplateQueue": true` to it, or end its name in `_TEMPLATE`.',
  },
  'nested-template': {
    kind: 'config',
    meaning: 'A template names a template of its own, which is not followed, as in Harvester.',
    remedy: 'Copy the options into the template itself.',
  },
  'missing-section': {
    kind: 'config',
    meaning: 'A queue has no section for a plugin it cannot do without.',
    remedy: 'Add the section with `name` and `module`.',
  },
  'unknown-plugin': {
    kind: 'config',
    meaning: 'No plugin goes by this `module` and `name`.',
    remedy: 'Check the spelling; docs/plugins.md lists what there is.',
  },
  'plugin-not-loaded': {
    kind: 'config',
    meaning: "A third-party plugin's module could not be imported, or exports no matching definition.",
    remedy: 'See docs/plugins.md: the module must export what definePlugin() returned.',
  },
  'throttler-not-applied': {
    kind: 'config',
    meaning: 'The queue asks for a throttler that this version accepts but does not apply yet.',
    remedy: 'Nothing to do; mind that it does not slow the queue.',
  },
  'connection-not-shared': {
    kind: 'config',
    meaning: 'Submitter, monitor and sweeper of a queue do not look at the same place.',
    remedy: 'Put the options that say where (such as `workDir`) into `common`.',
  },
  'unknown-placeholder': {
    kind: 'config',
    meaning: 'A template uses a `${placeholder}` that does not exist.',
    remedy: 'Use a known one (docs/configuration.md), or write `$${` for a literal `${`.',
  },
  'access-point-shared': {
    kind: 'config',
    meaning:
      'The `accessPoint` has no `${workerID}`, so all workers share the directory; it is never removed.',
    remedy: 'Put `${workerID}` into its last component.',
  },
  'template-wrong': {
    kind: 'config',
    meaning: 'A worker template is not what its backend expects.',
    remedy: 'See the message; templates/ has working ones.',
  },
  'queue-refused': {
    kind: 'reason',
    meaning: 'The configuration of this queue has errors; it submits nothing.',
    remedy: 'Mend what the messages at start name.',
  },
  // --- store -----------------------------------------------------------------------------------------------------
  'state-dir-network': {
    kind: 'store',
    meaning: 'The state directory is on a network file system, where SQLite loses data.',
    remedy: 'Choose a local disk with `master.stateDir` or `--state-dir`.',
  },
  'state-dir-unusable': {
    kind: 'store',
    meaning: 'The state directory cannot be made or written.',
    remedy: 'Check owner, permissions and that the disk is mounted read-write.',
  },
  'store-full': {
    kind: 'store',
    meaning: 'The disk with the database is full. Nothing is submitted meanwhile and nothing is lost.',
    remedy: 'Free space; the daemon goes on by itself.',
  },
  'store-readonly': {
    kind: 'store',
    meaning: 'The database cannot be written.',
    remedy: 'Check owner and permissions of the state directory and that the disk is mounted read-write.',
  },
  'store-corrupt': {
    kind: 'store',
    meaning: 'The database file is damaged or is not a database.',
    remedy: 'Move it away and start again: living workers are found by their mark and adopted.',
  },
  'store-newer': {
    kind: 'store',
    meaning: 'The database was written by a newer version of thresher.',
    remedy: 'Start that version again, or give this one another state directory.',
  },
  'store-missing': {
    kind: 'store',
    meaning: 'There is no database in the state directory: no daemon ever ran there.',
    remedy: 'Check `--config` and `--state-dir`, or start the daemon.',
  },
  'store-failed': {
    kind: 'store',
    meaning: 'The database refused an operation for another reason.',
    remedy: 'See the message.',
  },
  // --- daemon ----------------------------------------------------------------------------------------------------
  'already-running': {
    kind: 'daemon',
    meaning: 'Another daemon works on this state directory.',
    remedy: 'Stop that one, or give this one another `--state-dir`.',
  },
  'factory-id-changed': {
    kind: 'daemon',
    meaning:
      '`master.factoryId` differs from the id in the state directory: living workers would be forgotten.',
    remedy: 'Set the old id again, or drain first and then remove the file `factory`.',
  },
  'plugin-timeout': {
    kind: 'reason',
    meaning: 'A call of a plugin did not come back in time.',
    remedy: 'Look at the endpoint it speaks to; other queues go on.',
  },
  'plugin-failed': {
    kind: 'reason',
    meaning: 'A call of a plugin failed as a whole.',
    remedy: 'See the message; it is tried again with growing pauses.',
  },
  // --- command line ----------------------------------------------------------------------------------------------
  usage: { kind: 'cli', meaning: 'The command line is wrong.', remedy: 'See `thresher --help`.' },
  'no-such-worker': { kind: 'cli', meaning: 'No worker has this id.', remedy: 'See `thresher workers`.' },
  'no-such-queue': { kind: 'cli', meaning: 'No queue has this name.', remedy: 'See `thresher queues`.' },
  'no-log': {
    kind: 'cli',
    meaning: 'The log of a worker is not there: it never started, was swept, or its backend keeps none.',
    remedy: 'See `thresher worker ID`; raise `sweeper.keepFinished` and its like to keep logs longer.',
  },
  // --- reasons not to submit ---------------------------------------------------------------------------------------
  'daemon-not-running': {
    kind: 'reason',
    meaning: 'No daemon runs on this state directory; what is shown is the last known state.',
    remedy: 'Start it.',
  },
  'demand-none': {
    kind: 'reason',
    meaning: 'Nothing asks for workers of this queue.',
    remedy: 'Set `"demand": "fill"` for the queue, or `submitter.defaultDemand: fill`.',
  },
  'demand-push': {
    kind: 'reason',
    meaning:
      'The queue is a push queue (`mapType` is not `NoJob`): its workers need jobs from the PanDA server.',
    remedy: 'Set `"mapType": "NoJob"` if its pilots fetch their own jobs.',
  },
  'demand-slave': {
    kind: 'reason',
    meaning: '`runMode` is `slave`: the PanDA server says how many workers there are to be.',
    remedy: 'Set `"runMode": "self"` to fill the queue without the server.',
  },
  'queue-status': {
    kind: 'reason',
    meaning: '`queueStatus` is not `online`.',
    remedy: 'Set it to `online` when the queue is to work again.',
  },
  paused: { kind: 'reason', meaning: 'An operator paused the queue.', remedy: '`thresher resume QUEUE`.' },
  draining: {
    kind: 'reason',
    meaning: 'An operator drains the queue: what has not started is cancelled, what runs may end.',
    remedy: '`thresher resume QUEUE`.',
  },
  'queue-limit': {
    kind: 'reason',
    meaning: 'As many workers are queued (pending, submitted, idle) as `nQueueLimitWorker` allows.',
    remedy: 'Usual where the resource is full; otherwise look why queued workers do not start.',
  },
  'max-workers': {
    kind: 'reason',
    meaning: 'As many workers are alive as `maxWorkers` allows (unset counts as 0, as in Harvester).',
    remedy: 'Raise `maxWorkers` if the resource can take more.',
  },
  'max-new-per-cycle': {
    kind: 'reason',
    meaning:
      '`maxNewWorkersPerCycle` or `submitter.maxNewWorkers` cut this cycle; the rest follows in the next.',
    remedy: 'Usual while a queue fills up.',
  },
  'backend-room': {
    kind: 'reason',
    meaning: 'The backend has no room for more workers now.',
    remedy: 'Usual where the resource is full; see the message for its limit.',
  },
  'not-listed': {
    kind: 'reason',
    meaning:
      'What lives on the backend has not been listed since the daemon started: it could be submitted twice.',
    remedy: 'Usual for a moment after the start; otherwise see the message.',
  },
  'status-unknown': {
    kind: 'reason',
    meaning:
      'The last status query failed, was partial or is too old. Unknown is not zero: nothing is submitted.',
    remedy: 'Look at the backend; submission goes on with the next complete answer.',
  },
  preflight: {
    kind: 'reason',
    meaning: 'The submitter found something that would make every submission fail.',
    remedy: 'See the message.',
  },
  'submit-backoff': {
    kind: 'reason',
    meaning: 'The last pass failed; the next waits a growing time.',
    remedy: 'See the message.',
  },
  'shutting-down': { kind: 'reason', meaning: 'The daemon is stopping.', remedy: 'Start it again.' },
  'queue-removed': {
    kind: 'reason',
    meaning: 'The queue is no longer in the configuration; its workers are followed to their end.',
    remedy: 'Put it back to submit again.',
  },
  // --- workers ---------------------------------------------------------------------------------------------------
  'submit-failed': {
    kind: 'worker',
    meaning: 'The backend refused the worker, as often as `maxSubmissionAttempts` allows.',
    remedy: 'See the message.',
  },
  'never-started': {
    kind: 'worker',
    meaning: 'The submission left nothing behind (the daemon died in it, or the backend lost it).',
    remedy: 'Nothing to do: another takes its place.',
  },
  'no-free-slot': {
    kind: 'worker',
    meaning: 'The last free slot of this machine went to another queue in the same moment.',
    remedy: 'Nothing to do: it is tried again.',
  },
  'spawn-failed': {
    kind: 'worker',
    meaning: 'The process could not be started.',
    remedy: 'See the message: a process limit, missing memory or a missing directory.',
  },
  'access-point-failed': {
    kind: 'worker',
    meaning: "The worker's accessPoint directory could not be made.",
    remedy: 'Check owner, permissions and space.',
  },
  'exit-status': {
    kind: 'worker',
    meaning: 'The worker ended with an exit status other than 0; 128+n usually means signal n.',
    remedy: '`thresher logs ID` and `thresher logs ID --stderr`.',
  },
  'exit-status-lost': {
    kind: 'worker',
    meaning:
      'The worker is gone and left no exit status: the machine restarted, or it was killed from outside.',
    remedy: "Look at the machine's log for a restart or the out-of-memory killer.",
  },
  walltime: {
    kind: 'worker',
    meaning: 'The worker ran longer than its `maxWalltime` and was ended.',
    remedy: 'Raise `maxWalltime` if that is too short.',
  },
  killed: {
    kind: 'worker',
    meaning: 'An operator or the factory asked for its end.',
    remedy: 'None needed.',
  },
  lost: {
    kind: 'worker',
    meaning: 'The backend no longer knows the worker, and a fresh look by name confirmed it.',
    remedy: 'Somebody removed it behind the factory, or the backend lost it.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

/** An error an operator can act on. `message` is one whole sentence; `facts` are shown beside it in logs. */
export class ThresherError extends Error {
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, facts: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ThresherError';
    this.code = code;
    this.facts = facts;
  }
}

/** The sentence of whatever was thrown, for a reason or a log line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
