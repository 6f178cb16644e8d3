/** The day that is replayed: how many workers each queue wants, and when. Times are simulated ms since its begin. */

/** Of all queues together. */
export const workersPerDay = 1_000_000;
export const queues = 20;
/** Each has two queues, which stay with one member. */
export const connections = 10;
export const members = ['one', 'two', 'three', 'four'] as const;

export const hour = 3_600_000;
export const minute = 60_000;

/** How long a worker waits on its backend, and how long it runs then. */
export const waits = { least: 0, most: 4 * minute } as const;
export const runs = { least: 10 * minute, most: 30 * minute } as const;
/** One of so many workers fails. */
export const oneFailsOf = 20;

export interface Replay {
  /** Simulated seconds in a second. */
  readonly speed: number;
  /** Simulated hours of the day. */
  readonly hours: number;
}

export const queueName = (index: number) => `DAY_${index}`;
export const connectionOf = (index: number) => `cluster-${index % connections}`;

/** Large and small queues, 4 to 1. */
const weight = (index: number) => 1 + ((Math.floor(index / connections) + 2 * index) % 4);
const weights = Array.from({ length: queues }, (_, index) => weight(index)).reduce(
  (sum, one) => sum + one,
  0,
);
/** In the course of an hour a queue wants between half and one and a half of its mean rate. */
const swing = 0.5;

/** How many workers a queue has wanted by then. Each queue has its peak at another time of the hour. */
export function wantedBy(index: number, at: number): number {
  const perMs = (workersPerDay / (24 * hour)) * (weight(index) / weights);
  const phase = (2 * Math.PI * index) / queues;
  const turn = (2 * Math.PI) / hour;
  return Math.floor(perMs * (at + (swing / turn) * (Math.cos(phase) - Math.cos(turn * at + phase))) + 1e-6);
}
