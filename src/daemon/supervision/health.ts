import type { LoopHealth } from '../../agents/loop.ts';

/** Whether the daemon gets on with its work. */
export interface Health {
  readonly ok: boolean;
  /** The stuck loops, and for how long, s. */
  readonly stuck: readonly { readonly loop: string; readonly seconds: number }[];
}

/**
 * The loops' answer to whether the daemon is alive. A backend that is down is no reason for a restart: its calls end in
 * time and are tried again. A pass that makes no progress at all is one.
 */
export function judgeHealth(loops: readonly LoopHealth[]): Health {
  const stuck = loops.flatMap(({ name, stuckFor }) =>
    stuckFor === undefined ? [] : [{ loop: name, seconds: Math.round(stuckFor / 1000) }],
  );
  return { ok: stuck.length === 0, stuck };
}
