/** What the backend's plugin in a daemon and the simulator say to each other: a line of JSON each, over a Unix socket. */
import type { Worker } from '../../../src/plugins/contracts/index.ts';

export const states = ['submitted', 'running', 'finished', 'failed', 'cancelled'] as const;
export type State = (typeof states)[number];

/** The facts of a worker that its mark on the backend holds. */
export type Marked = Pick<
  Worker,
  'workerId' | 'name' | 'queue' | 'computingSite' | 'origin' | 'requirements' | 'attempt'
>;
/** A worker by its name, and the last attempt at it. */
export type Named = Pick<Worker, 'workerId' | 'name' | 'attempt'>;

/** A worker's state; times are ms UTC. */
export type Seen = readonly [
  workerId: number,
  state: State,
  startTime: number | undefined,
  endTime: number | undefined,
];

/** Each question with its answer. */
export interface Calls {
  /** How many more workers a queue may have now. */
  room: { readonly ask: { readonly queue: string }; readonly answer: number };
  /** The ids that the backend has by now. */
  submit: { readonly ask: { readonly workers: readonly Marked[] }; readonly answer: readonly number[] };
  /** Attempts up to those that are named start no worker from now on. The answer has the ids of workers that are there. */
  find: { readonly ask: { readonly workers: readonly Named[] }; readonly answer: readonly number[] };
  check: { readonly ask: { readonly workers: readonly Named[] }; readonly answer: readonly Seen[] };
  kill: { readonly ask: { readonly workers: readonly Named[] }; readonly answer: true };
  remove: { readonly ask: { readonly names: readonly string[] }; readonly answer: true };
  list: {
    readonly ask: { readonly connection: string };
    readonly answer: readonly { readonly marked: Marked; readonly seen: Seen }[];
  };
}
export type Verb = keyof Calls;

export type Question =
  | { [V in Verb]: { readonly id: number; readonly verb: V; readonly ask: Calls[V]['ask'] } }[Verb]
  | { readonly id: number; readonly verb: 'watch'; readonly ask: { readonly connection: string } }
  /** The watch of this id is over. */
  | { readonly id: number; readonly verb: 'unwatch'; readonly ask: { readonly connection: string } };

export type Line =
  | { readonly id: number; readonly answer: unknown }
  | {
      readonly id: number;
      /** Everything that is there, or what changed. */
      readonly shows: 'all' | 'changes';
      readonly seen: readonly Seen[];
    };

/** Reads lines out of pieces of text. */
export function linesTo(take: (line: string) => void): (piece: string) => void {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
  };
}
