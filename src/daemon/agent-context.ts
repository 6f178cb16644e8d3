import type { AgentStore } from '../agents/agent-store.ts';
import type { CredentialBoard } from '../agents/credentials/credential-board.ts';
import type { FactoryEvents } from '../agents/events.ts';
import type { Ledger } from '../agents/ledger/ledger.ts';
import type { Progress } from '../agents/loop.ts';
import { PluginCalls } from '../agents/plugin-calls.ts';
import type { Step } from '../agents/queue-runtime.ts';
import type { WaitingBoard } from '../agents/sources/waiting-board.ts';
import type { FactoryLimits } from '../agents/submission/factory-limits.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { BelievedClock, Clock } from '../util/clock.ts';
import type { Events } from '../util/events.ts';

/** Everything that the agents of one daemon are made of. Each agent's own parts name the few of them that it takes. */
export interface AgentContext {
  readonly factoryId: string;
  readonly harvesterId: string;
  /** Below all ids that were given out since the start. */
  readonly idFloor: number;
  readonly clock: Clock;
  /** For what is removed because of its age. */
  readonly believed: BelievedClock;
  readonly random: () => number;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly store: AgentStore;
  readonly events: Events<FactoryEvents>;
  readonly factoryLimits: FactoryLimits;
  /** Between the parts of passes. */
  readonly giveWay: () => Promise<void>;
  readonly credentials: CredentialBoard;
  readonly waiting: WaitingBoard;
  /** No worker is submitted with a credential that ends sooner, ms. */
  readonly credentialLifetime: number;
  /** For one call of a plugin, ms. */
  readonly pluginTimeout: number;
  /** Aborts when calls under way are to be given up: later than the loops' own stop. */
  readonly giveUp: AbortSignal;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/** The context of one agent, with calls of plugins that note the progress of its loop. */
export function contextFor(
  context: AgentContext,
  progress?: Progress,
): AgentContext & { calls: PluginCalls } {
  const { clock, pluginTimeout, giveUp, store } = context;
  const mayAct = () => store.mayAct();
  const calls = new PluginCalls({ clock, pluginTimeout, giveUp, mayAct, ...(progress && { progress }) });
  return { ...context, calls };
}
