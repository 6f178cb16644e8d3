import type { Command } from 'commander';
import type { Environment } from './environment.ts';

/** Gives a command its arguments, options and action. */
type Complete = (command: Command, environment: Environment) => void;

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** The arguments, as the help shows them behind the options; default: none. The module defines them. */
  readonly takes?: string;
  readonly hidden?: true;
  /** Imports its module, and so all that it needs: a command pays for nothing that only others use. */
  readonly load: () => Promise<Complete>;
}

/** All subcommands, in the order of the help. */
export const subcommands: readonly Subcommand[] = [
  {
    name: 'run',
    summary: 'run the daemon in the foreground',
    load: async () => (await import('./run.ts')).addRun,
  },
  {
    name: 'status',
    summary: 'show on one screen the daemon, its queues, services and credentials, and all troubles',
    load: async () => (await import('./status.ts')).addStatus,
  },
  {
    name: 'queues',
    summary: 'show queues: counts by status, limits, and the reason for no more workers',
    load: async () => (await import('./queues.ts')).addQueues,
  },
  {
    name: 'workers',
    summary: 'show workers, newest first',
    load: async () => (await import('./workers.ts')).addWorkers,
  },
  {
    name: 'worker',
    takes: '<id>',
    summary: 'show all facts of a worker and its history',
    load: async () => (await import('./worker.ts')).addWorker,
  },
  {
    name: 'logs',
    takes: '<id>',
    summary: "print a worker's log",
    load: async () => (await import('./logs.ts')).addLogs,
  },
  {
    name: 'kill',
    takes: '[id...]',
    summary: 'end workers: the named ones, or all living ones of a queue',
    load: async () => (await import('./kill.ts')).addKill,
  },
  {
    name: 'submit',
    takes: '<queue> [-- arg...]',
    summary: 'ask for workers of a queue, with files and a command of their own',
    load: async () => (await import('./submit.ts')).addSubmit,
  },
  {
    name: 'requests',
    takes: '[request]',
    summary: 'show requests of operators, newest first, and why they wait',
    load: async () => (await import('./requests.ts')).addRequests,
  },
  {
    name: 'withdraw',
    takes: '<request>',
    summary: 'take a request back and end its workers',
    load: async () => (await import('./withdraw.ts')).addWithdraw,
  },
  {
    name: 'pause',
    takes: '<queue>',
    summary: 'submit no new workers to a queue; survives restarts',
    load: async () => (await import('./daemon-requests.ts')).addPause,
  },
  {
    name: 'resume',
    takes: '<queue>',
    summary: 'end a pause or a drain',
    load: async () => (await import('./daemon-requests.ts')).addResume,
  },
  {
    name: 'drain',
    takes: '<queue>',
    summary: 'submit no new workers and cancel those that have not started; running ones may end',
    load: async () => (await import('./daemon-requests.ts')).addDrain,
  },
  {
    name: 'sweep',
    summary: 'remove now the traces of ended workers whose keep time is over',
    load: async () => (await import('./daemon-requests.ts')).addSweep,
  },
  {
    name: 'orphans',
    summary: 'show objects with our mark that belong to no worker, as of the last listing',
    load: async () => (await import('./orphans.ts')).addOrphans,
  },
  {
    name: 'credentials',
    takes: '[command]',
    summary: 'show the credentials that managers renew or watch, and how long they last',
    load: async () => (await import('./credentials.ts')).addCredentials,
  },
  {
    name: 'panda',
    summary: 'show the link to the PanDA server: login, orders, commands, reports that wait, failures',
    load: async () => (await import('./panda.ts')).addPanda,
  },
  {
    name: 'cacher',
    takes: '[command]',
    summary: 'show the files that the daemon fetches, such as the queues of CRIC, or fetch them now',
    load: async () => (await import('./cacher.ts')).addCacher,
  },
  {
    name: 'check-config',
    takes: '[queue...]',
    summary: 'show every mistake in the settings and the queue file; start and change nothing',
    load: async () => (await import('./check-config.ts')).addCheckConfig,
  },
  {
    name: 'explain',
    takes: '<queue>',
    summary: 'show a queue as it counts: each value and its origin',
    load: async () => (await import('./explain.ts')).addExplain,
  },
  {
    name: 'render',
    takes: '<queue>',
    summary:
      'print the Job, submit text or command that thresher would send for a worker; send and write nothing',
    load: async () => (await import('./render.ts')).addRender,
  },
  {
    name: 'htcjob',
    takes: '[command]',
    summary: 'show HTCJobs and their logs; print what a cluster needs for them',
    load: async () => (await import('./htcjob.ts')).addHtcJob,
  },
  {
    name: 'interlink',
    summary: 'run Kubernetes Pods that interLink sends as jobs of HTCondor: a daemon with this one queue',
    load: async () => (await import('./interlink.ts')).addInterlink,
  },
  {
    name: 'pool',
    takes: '[command]',
    summary: 'make and look after a HTCondor pool on Kubernetes',
    load: async () => (await import('./pool.ts')).addPool,
  },
  {
    name: 'db',
    takes: '[command]',
    summary: 'back up, check or prune the database',
    load: async () => (await import('./db.ts')).addDb,
  },
  {
    name: 'completion',
    takes: '<shell>',
    summary: 'print a script with which the shell completes command lines',
    load: async () => (await import('./generated.ts')).addCompletion,
  },
  {
    name: '__complete',
    takes: '<what>',
    hidden: true,
    summary: 'print names that complete the typed text',
    load: async () => (await import('./complete.ts')).addComplete,
  },
  {
    name: 'man',
    summary: 'print the manual page, for man -l',
    load: async () => (await import('./generated.ts')).addMan,
  },
  {
    name: 'version',
    summary: 'show the versions of thresher and of its Node',
    load: async () => (await import('./version.ts')).addVersion,
  },
];
