import type { Command } from 'commander';
import type { Environment } from './environment.ts';

/** Gives a command its arguments, options and action. */
type Complete = (command: Command, environment: Environment) => void;

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** As the help shows it behind the options; default: nothing. The module says what it means. */
  readonly takes?: string;
  readonly hidden?: true;
  /** Imports its module, and so all that it needs: a command pays for nothing that only others use. */
  readonly load: () => Promise<Complete>;
}

/** All subcommands, in the order of the help. */
export const subcommands: readonly Subcommand[] = [
  {
    name: 'run',
    summary: 'the daemon, in the foreground',
    load: async () => (await import('./run.ts')).addRun,
  },
  {
    name: 'queues',
    summary: 'counts by status, limits, and why no more workers are submitted',
    load: async () => (await import('./queues.ts')).addQueues,
  },
  {
    name: 'workers',
    summary: 'workers, newest first',
    load: async () => (await import('./workers.ts')).addWorkers,
  },
  {
    name: 'worker',
    takes: '<id>',
    summary: 'all facts of a worker and its history',
    load: async () => (await import('./worker.ts')).addWorker,
  },
  {
    name: 'logs',
    takes: '<id>',
    summary: "a worker's log",
    load: async () => (await import('./logs.ts')).addLogs,
  },
  {
    name: 'kill',
    takes: '[id...]',
    summary: 'end workers: these, or all living ones of a queue',
    load: async () => (await import('./kill.ts')).addKill,
  },
  {
    name: 'pause',
    takes: '<queue>',
    summary: 'submit no new workers to a queue; survives restarts',
    load: async () => (await import('./pause.ts')).addPause,
  },
  {
    name: 'resume',
    takes: '<queue>',
    summary: 'end a pause or a drain',
    load: async () => (await import('./resume.ts')).addResume,
  },
  {
    name: 'drain',
    takes: '<queue>',
    summary: 'submit no new workers and cancel those that have not started; running ones may end',
    load: async () => (await import('./drain.ts')).addDrain,
  },
  {
    name: 'sweep',
    summary: 'remove now what ended workers left and whose keep time is over',
    load: async () => (await import('./sweep.ts')).addSweep,
  },
  {
    name: 'orphans',
    summary: 'what carries our mark on a backend and belongs to no worker, as of the last listing',
    load: async () => (await import('./orphans.ts')).addOrphans,
  },
  {
    name: 'credentials',
    takes: '[command]',
    summary: 'the credentials that are kept or watched, and how long they last',
    load: async () => (await import('./credentials.ts')).addCredentials,
  },
  {
    name: 'check-config',
    takes: '[queue...]',
    summary: 'every mistake in the settings and the queue file; starts and changes nothing',
    load: async () => (await import('./check-config.ts')).addCheckConfig,
  },
  {
    name: 'explain',
    takes: '<queue>',
    summary: 'a queue as it counts: each value, and where it is from',
    load: async () => (await import('./explain.ts')).addExplain,
  },
  {
    name: 'render',
    takes: '<queue>',
    summary:
      'shows the Job, submit text or command that a worker would be submitted as; sends and writes nothing',
    load: async () => (await import('./render.ts')).addRender,
  },
  {
    name: 'db',
    takes: '[command]',
    summary: 'the database: its backup, its check, and what is over in it',
    load: async () => (await import('./db.ts')).addDb,
  },
  {
    name: 'completion',
    takes: '<shell>',
    summary: 'print a script for the shell that completes command lines',
    load: async () => (await import('./completion.ts')).addCompletion,
  },
  {
    name: '__complete',
    takes: '<what>',
    hidden: true,
    summary: 'names that fit what is typed so far',
    load: async () => (await import('./complete.ts')).addComplete,
  },
  {
    name: 'man',
    summary: 'print the manual page, for man -l',
    load: async () => (await import('./man.ts')).addMan,
  },
  {
    name: 'version',
    summary: 'versions of thresher and of the Node it runs on',
    load: async () => (await import('./version.ts')).addVersion,
  },
];
