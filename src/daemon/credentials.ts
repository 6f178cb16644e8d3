import type { CredentialBoard } from '../agents/credential-board.ts';
import { CredentialAgent } from '../agents/credentials.ts';
import type { Loop } from '../agents/loop.ts';
import type { AgentContext } from '../agents/queue-runtime.ts';
import { keyOf } from '../config/credential-managers.ts';
import type { CredentialManagerChoice } from '../config/queues.ts';
import type { Settings } from '../config/settings-schema.ts';
import type { CredentialManager } from '../plugins/contracts/index.ts';
import { messageOf } from '../worker/errors.ts';
import type { LoopSet } from './loop-set.ts';
import { stuckGrace } from './queue-loops.ts';
import type { Wiring } from './wiring.ts';

export interface CredentialParts {
  readonly settings: Settings;
  readonly context: AgentContext;
  readonly wiring: Wiring;
  readonly loops: LoopSet;
}

/** How often files are looked at, ms: polled, since inotify is silent on NFS and AFS. */
const lookInterval = 2000;

/** A manager to be made, and what it is called in logs. */
export interface NamedManager {
  readonly name: string;
  readonly choice: CredentialManagerChoice;
}

/** All managers, the same one only once: "K8sSecretCredManager", and "K8sSecretCredManager 2" where there are several. */
export function namedManagers(choices: readonly CredentialManagerChoice[]): NamedManager[] {
  const different = [...new Map(choices.map((choice) => [keyOf(choice), choice])).values()];
  const counts = new Map<string, number>();
  return different.map((choice) => {
    const count = (counts.get(choice.name) ?? 0) + 1;
    counts.set(choice.name, count);
    return { name: count === 1 ? choice.name : `${choice.name} ${count}`, choice };
  });
}

/** The credential managers at work. */
export class Credentials {
  readonly #parts: CredentialParts;
  readonly #board: CredentialBoard;
  /** By what they are made of. */
  readonly #running = new Map<string, { readonly name: string; readonly loop: Loop }>();
  #made = 0;

  constructor(parts: CredentialParts, board: CredentialBoard) {
    this.#parts = parts;
    this.#board = board;
    board.onBetter(() => {
      parts.loops.wakeAll('submit');
    });
  }

  /** From now on these, and no others. Those that are as they were go on. */
  use(choices: readonly CredentialManagerChoice[]): void {
    const { loops } = this.#parts;
    const wanted = new Map(namedManagers(choices).map((one) => [keyOf(one.choice), one]));
    for (const [key, { name, loop }] of this.#running) {
      if (wanted.has(key)) continue;
      this.#running.delete(key);
      this.#board.forget(name);
      loops.succeed(`credentials ${name}`, [loop], []);
    }
    for (const [key, { choice }] of wanted) {
      if (this.#running.has(key)) continue;
      const name = `${choice.name}${this.#made++ === 0 ? '' : ` ${this.#made}`}`;
      const loop = this.#start(name, choice);
      if (loop === undefined) continue;
      this.#running.set(key, { name, loop });
      loops.succeed(`credentials ${name}`, [], [loop]);
    }
  }

  #start(name: string, choice: CredentialManagerChoice): Loop | undefined {
    const { settings, context, wiring, loops } = this.#parts;
    const { clock, log, giveUp } = context;
    let manager: CredentialManager;
    try {
      manager = wiring.credentialManager(choice);
    } catch (error) {
      log.error('credential manager cannot be made', { manager: name, error: messageOf(error) });
      return undefined;
    }
    this.#board.expect(name);
    const { sleepTime, warnLifetime } = settings.credmanager;
    const agent = new CredentialAgent(manager, this.#board, {
      ...{ name, interval: sleepTime * 1000, warnLifetime: warnLifetime * 1000, clock, log, giveUp },
      timeout: settings.master.pluginTimeout * 1000,
    });
    return loops.add({
      name: `credentials ${name}`,
      interval: lookInterval,
      // Three calls, each bounded.
      stuckAfter: 3 * settings.master.pluginTimeout * 1000 + stuckGrace,
      pass: () => agent.pass(),
    });
  }
}
