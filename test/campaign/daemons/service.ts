import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningDaemon, Site } from '../../support/site.ts';

/** Between the end of a daemon and the start of the next one, ms: a service manager waits, too. */
const pause = 300;
/** How long a SIGTERM may take, ms: `master.shutdownTimeout` of the bed, the daemon's last waits, and a slow machine. */
const longestStop = 30_000;
/** A daemon that ends by itself says why: it cannot know what the database holds, or another one has the factory. */
const goodReasons = /\[(store-taken|store-outcome-unknown|store-unreachable)\]/;

/** Keeps one daemon of a site running, as a service manager does. */
export class Service {
  /** Ends that must not be, with the last words of the daemon. */
  readonly broken: string[] = [];
  /** By code, how often a daemon ended by itself. */
  readonly ends = new Map<string, number>();
  readonly #site: Site;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #closing = new AbortController();
  /** How long no daemon begins after the next end, ms. */
  #away = pause;
  #daemon: RunningDaemon;
  #running: Promise<void>;
  /** Daemons that were told to end. */
  readonly #told = new WeakSet<RunningDaemon>();

  constructor(site: Site, environment: Readonly<Record<string, string>>) {
    this.#site = site;
    this.#environment = environment;
    this.#daemon = this.#begin();
    this.#running = this.#keep();
  }

  get pid(): number {
    return this.#daemon.pid;
  }

  /** The last of what the running daemon has written. */
  get output(): string {
    return this.#daemon.output().slice(-3000);
  }

  /** Ends the daemon without warning. @param away ms until the next one begins */
  async kill(away = pause): Promise<void> {
    const daemon = this.#daemon;
    this.#away = away;
    this.#told.add(daemon);
    daemon.process.kill('SIGKILL');
    await daemon.ended;
  }

  /** Lets the daemon stand still. @returns what lets this very daemon go on */
  pause(): () => void {
    const daemon = this.#daemon;
    daemon.process.kill('SIGSTOP');
    return () => daemon.process.kill('SIGCONT');
  }

  /** Ends the daemon as an operator does. @param away ms until the next one begins */
  async stop(away = pause): Promise<void> {
    const daemon = this.#daemon;
    this.#away = away;
    this.#told.add(daemon);
    daemon.process.kill('SIGTERM');
    const patience = new AbortController();
    const late = sleep(longestStop, 'late', { signal: patience.signal }).catch(() => 'ended');
    if ((await Promise.race([daemon.ended, late])) === 'late') {
      this.broken.push(`promise 8: a stop did not end; ${daemon.output().slice(-3000)}`);
      daemon.process.kill('SIGKILL');
    }
    await daemon.ended;
    patience.abort();
  }

  /** No daemon begins any more. The last one is stopped as an operator does, or killed. */
  async close(how: 'stop' | 'kill'): Promise<void> {
    this.#closing.abort();
    await this[how]();
    await this.#running;
  }

  async #keep(): Promise<void> {
    for (;;) {
      const daemon = this.#daemon;
      const end = await daemon.ended;
      this.#note(daemon, end);
      await sleep(this.#away, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      this.#away = pause;
      if (this.#closing.signal.aborted) return;
      this.#daemon = this.#begin();
    }
  }

  #begin(): RunningDaemon {
    return this.#site.start([], { ...this.#environment });
  }

  #note(daemon: RunningDaemon, end: number | NodeJS.Signals): void {
    if (this.#told.has(daemon)) return;
    const [, code] = goodReasons.exec(daemon.output()) ?? [];
    if (code === undefined || end !== 1)
      this.broken.push(`a daemon ended by itself with ${end}; ${daemon.output().slice(-3000)}`);
    else this.ends.set(code, (this.ends.get(code) ?? 0) + 1);
  }
}
