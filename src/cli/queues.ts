import type { Command } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { type QueueView, queueViews } from '../daemon/view.ts';
import { isNote, isTrouble } from '../daemon/every-code.ts';
import type { Reason } from '../worker/reason.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type Column, type OutputFormat, outputOption, printJson, printTable } from './output.ts';

export const queueColumns: readonly Column<QueueView>[] = [
  { title: 'QUEUE', value: ({ name }) => name },
  { title: 'STATE', value: ({ state }) => state },
  {
    title: 'QUEUED',
    value: ({ counts }) => (counts.pending ?? 0) + (counts.submitted ?? 0) + (counts.idle ?? 0),
  },
  { title: 'RUNNING', value: ({ counts }) => (counts.ready ?? 0) + (counts.running ?? 0) },
  { title: 'FINISHED', value: ({ counts }) => counts.finished ?? 0 },
  { title: 'FAILED', value: ({ counts }) => counts.failed ?? 0 },
  { title: 'OTHER', value: ({ counts }) => (counts.cancelled ?? 0) + (counts.missed ?? 0) },
  { title: 'LIMITS', value: ({ limits }) => describeLimits(limits) },
  { title: 'WHY NO MORE', value: whyNoMore },
];

/** @returns the columns for these: daemons that share a factory have a column of their own */
export function columnsFor(views: readonly QueueView[]): readonly Column<QueueView>[] {
  if (views.every(({ member }) => member === undefined)) return queueColumns;
  const [name, ...others] = queueColumns;
  return [
    ...(name === undefined ? [] : [name]),
    { title: 'MEMBER', value: ({ member }) => member ?? null },
    ...others,
  ];
}

/** The missing daemon must not hide a reason that keeps a queue from running even with a daemon. */
export function whyNoMore({ reasons: [first, ...others] }: Pick<QueueView, 'reasons'>): string | null {
  if (first === undefined) return null;
  if (first.code === 'daemon-not-running' && others.length > 0)
    return `${first.message}; when one last did: ${weightiest(others)}`;
  return weightiest([first, ...others]);
}

/** The troubles, or else the first of what is in the course of things; and the notes. */
export function weightiest(reasons: readonly Reason[]): string {
  const troubles = reasons.filter(isTrouble);
  const notes = reasons.filter(isNote);
  const ordinary = reasons.filter((reason) => !isNote(reason)).slice(0, 1);
  return [...(troubles.length > 0 ? troubles : ordinary), ...notes].map(({ message }) => message).join('; ');
}

function describeLimits({
  nQueueLimitWorker,
  maxWorkers,
  maxNewWorkersPerCycle,
}: QueueView['limits']): string {
  if (maxWorkers === undefined) return '';
  const perPass = maxNewWorkersPerCycle ? ` new<=${maxNewWorkersPerCycle}` : '';
  return `queued<=${nQueueLimitWorker ?? '-'} alive<=${maxWorkers ?? '-'}${perPass}`;
}

export function addQueues(command: Command, environment: Environment): void {
  command.addOption(outputOption()).action(async ({ output }: { output: OutputFormat }) => {
    const options = command.optsWithGlobals<GlobalOptions>();
    const views = await withStore(options, 'read', async ({ store, dir }) =>
      queueViews(store, await daemonOn(store, dir)),
    );
    if (output === 'json') printJson(environment.out, views);
    else printTable(environment.out, columnsFor(views), views);
  });
}
