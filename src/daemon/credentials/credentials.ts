import type { CredentialBoard } from '../../agents/credentials/credential-board.ts';
import { CredentialAgent } from '../../agents/credentials/credential-agent.ts';
import type { Loop } from '../../agents/loop.ts';
import { allManagers, keyOf, managersOf } from '../../config/queues/credential-managers.ts';
import type { CredentialManagerChoice } from '../../config/queues/queues.ts';
import { isError, type LoadedSettings } from '../../config/settings/settings.ts';
import type { Settings } from '../../config/settings/settings-schema.ts';
import type { CredentialManager } from '../../plugins/contracts/index.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { toReason } from '../../worker/errors.ts';
import type { AgentContext } from '../agent-context.ts';
import type { RunConfiguration } from '../configuration.ts';
import type { LoopSet } from '../loop-set.ts';
import { logProblem } from '../reports/problem-log.ts';
import { stuckGrace } from '../queue-loops.ts';
import { placed } from '../reports/queue-reports.ts';
import type { PluginFactory } from '../plugin-factory.ts';

export interface CredentialParts {
  readonly settings: Settings;
  readonly context: AgentContext;
  readonly plugins: PluginFactory;
  readonly files: OperatorFiles;
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

/** The time limit of one call, ms: the manager's own limit for its tool counts where it is longer than every plugin's. */
export function patienceOf({ config }: CredentialManagerChoice, pluginTimeout: number): number {
  const { timeLimit } = config;
  return Math.max(pluginTimeout, typeof timeLimit === 'number' ? timeLimit + toolGrace : 0) * 1000;
}

/** Time for a manager's own work around its tool, s. */
const toolGrace = 10;
/** Stands on the board for managers that cannot be made of what is written. */
const mistaken = 'managers with mistakes';

interface Running {
  readonly name: string;
  /** Undefined where it could not be made. */
  readonly loop: Loop | undefined;
}

/** The credential managers at work. */
export class Credentials {
  readonly #parts: CredentialParts;
  readonly #board: CredentialBoard;
  /** By what they are made of. */
  readonly #running = new Map<string, Running>();

  constructor(parts: CredentialParts, board: CredentialBoard) {
    this.#parts = parts;
    this.#board = board;
  }

  /** Those of the settings, and of every queue that runs. A queue file that cannot be read changes nothing. */
  async takeUp(
    settings: LoadedSettings,
    { queueFile, catalogue, sources, inUse }: RunConfiguration,
  ): Promise<void> {
    const { queues, readable, refused, incomplete } = queueFile;
    if (!readable) return;
    const { choices, problems } = await managersOf(settings, catalogue, this.#parts.files, sources);
    for (const problem of problems) logProblem(this.#parts.context.log, problem);
    const [wrong] = problems.filter(isError);
    // A queue whose new configuration is refused goes on with the last one, and with what that one named.
    const refusedNow = new Set([...refused, ...incomplete]);
    const former = inUse
      .filter(({ config }) => refusedNow.has(config.name))
      .toSorted((one, other) => one.configId - other.configId);
    const last = new Map(former.map(({ config }) => [config.name, config] as const));
    this.use(allManagers(choices, [...queues, ...last.values()], catalogue), wrong && placed(wrong));
  }

  /**
   * Runs these managers, and no others, from now on. Unchanged managers go on. If the configuration is `wrong`, managers that are not in
   * it any more go on, too, and queues wait for credentials that no manager knows.
   */
  use(choices: readonly CredentialManagerChoice[], wrong: string | undefined): void {
    const { loops } = this.#parts;
    const wanted = new Map(namedManagers(choices).map((one) => [keyOf(one.choice), one]));
    if (wrong === undefined) this.#board.forget(mistaken);
    else this.#board.expect(mistaken, wrong);
    for (const [key, { name, loop }] of this.#running) {
      if (wanted.has(key) ? loop !== undefined : wrong !== undefined) continue;
      this.#running.delete(key);
      this.#board.forget(name);
      if (loop !== undefined) loops.replace(`credentials ${name}`, [loop], []);
    }
    for (const [key, one] of wanted) {
      if (this.#running.has(key)) continue;
      const name = this.#free(one);
      const loop = this.#start(name, one.choice);
      this.#running.set(key, { name, loop });
      if (loop !== undefined) loops.replace(`credentials ${name}`, [], [loop]);
    }
  }

  /** The name that it has in the configuration, or the next one that none has that is at work. */
  #free({ name, choice }: NamedManager): string {
    const taken = new Set([...this.#running.values()].map((one) => one.name));
    if (!taken.has(name)) return name;
    let number = 2;
    while (taken.has(`${choice.name} ${number}`)) number++;
    return `${choice.name} ${number}`;
  }

  #start(name: string, choice: CredentialManagerChoice): Loop | undefined {
    const { settings, context, plugins, loops } = this.#parts;
    const { clock, log, giveUp, events } = context;
    let manager: CredentialManager;
    try {
      manager = plugins.credentialManager(choice);
    } catch (error) {
      const reason = toReason(error);
      log.error('credential manager cannot be made', { manager: name, ...reason });
      this.#board.expect(name, `${name} cannot be made: ${reason.message}`);
      return undefined;
    }
    this.#board.expect(name);
    const { sleepTime, warnLifetime } = settings.credmanager;
    const timeout = patienceOf(choice, settings.master.pluginTimeout);
    const agent = new CredentialAgent(manager, this.#board, {
      name,
      interval: sleepTime * 1000,
      warnLifetime: warnLifetime * 1000,
      clock,
      log,
      giveUp,
      events,
      timeout,
    });
    return loops.add({
      name: `credentials ${name}`,
      interval: lookInterval,
      // Three calls, each bounded.
      stuckAfter: 3 * timeout + stuckGrace,
      pass: () => agent.pass(),
    });
  }
}
