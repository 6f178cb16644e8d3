import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';

/** systemd's words to us in the environment. Source: sd_notify(3), sd_watchdog_enabled(3). */
export interface ServiceManager {
  /** The socket that messages go to; undefined without a service manager. */
  readonly socket: string | undefined;
  /** Without a sign of life for so long the service is killed, ms; undefined without a watchdog. */
  readonly watchdog: number | undefined;
}

/** Reads it, and takes it out of the environment: with NotifyAccess=all our children could speak in our name. */
export function takeServiceManager(env: NodeJS.ProcessEnv, pid: number): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec = '', WATCHDOG_PID: watched } = env;
  delete env.NOTIFY_SOCKET;
  delete env.WATCHDOG_USEC;
  delete env.WATCHDOG_PID;
  const ours = watched === undefined || watched === String(pid);
  return {
    socket: socket === '' ? undefined : socket,
    watchdog: ours && /^[1-9]\d{0,17}$/.test(usec) ? Number(usec) / 1000 : undefined,
  };
}

/** Sends one message: lines of the form `NAME=value`. */
export type Send = (fields: readonly string[]) => Promise<void>;

/** How long systemd-notify may take, ms. It waits by itself until systemd has read the message, at most 5 s. */
const sendTimeout = 10_000;
/** How long an end waits for the last messages, ms. */
const flushTimeout = 2000;

/**
 * Through systemd-notify, since Node has no datagram sockets. Never with `--no-block`: systemd finds out by the sender's
 * pid which service speaks, and a sender that has ended already belongs to no service. Source: systemd-notify(1).
 */
export function systemdNotify(socket: string): Send {
  const env = { ...process.env, NOTIFY_SOCKET: socket };
  return async (fields) => {
    await promisify(execFile)('systemd-notify', [...fields], {
      env,
      timeout: sendTimeout,
      killSignal: 'SIGKILL',
    });
  };
}

/** While a start lasts, systemd is asked for so much more time, ms, so often, ms, and for no longer than this, ms. */
const extension = { by: 60_000, every: 20_000, atMost: 900_000 };

type Fields = Record<string, string>;

export interface NotifierOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** CLOCK_MONOTONIC, microseconds: a clock that systemd shares with us. */
  readonly monotonicUsec?: () => bigint;
}

/**
 * Tells the service manager how the daemon is. Messages go out one after the other; one that cannot be sent costs a line
 * in the log, the first time, and nothing else.
 */
export class Notifier {
  readonly #send: Send | undefined;
  readonly #options: NotifierOptions;
  #state: 'starting' | 'ready' | 'reloading' | 'stopping' = 'starting';
  #waiting: Fields[] = [];
  #sending: Promise<void> | undefined;
  #complained = false;

  /** Without `send` there is no service manager, and nothing is done. */
  constructor(send: Send | undefined, options: NotifierOptions) {
    this.#send = send;
    this.#options = options;
  }

  /** Asks for more time while `start` lasts: a large database may need it. Its failure becomes the status. */
  async whileStarting<T>(start: Promise<T>): Promise<T> {
    const over = new AbortController();
    const asking = this.#askForTime(over.signal);
    try {
      return await start;
    } catch (error) {
      this.status(messageOf(error));
      throw error;
    } finally {
      over.abort();
      await asking;
      await this.flushed();
    }
  }

  /** The daemon works: after the start, and after a reload. */
  ready(): void {
    if (this.#state === 'stopping') return;
    this.#state = 'ready';
    this.#post({ READY: '1' });
  }

  /** A reload begins; `ready` ends it. */
  reloading(): void {
    if (this.#state !== 'ready') return;
    this.#state = 'reloading';
    const { monotonicUsec = () => process.hrtime.bigint() / 1000n } = this.#options;
    this.#post({ RELOADING: '1', MONOTONIC_USEC: String(monotonicUsec()) });
  }

  /** The daemon stops, within `patience` ms: TimeoutStopSec= of the unit may be shorter than what the settings say. */
  stopping(patience: number): void {
    if (this.#state === 'stopping') return;
    this.#state = 'stopping';
    this.#post({
      STOPPING: '1',
      EXTEND_TIMEOUT_USEC: String(Math.ceil(patience) * 1000),
      STATUS: 'stopping',
    });
  }

  /** A sign of life for the watchdog. */
  alive(status: string): void {
    // Before version 246 systemd-notify did not wait to be heard: a lost READY would fail the start, so it is said again.
    const again: Fields = this.#state === 'ready' ? { READY: '1' } : {};
    this.#join({ ...again, WATCHDOG: '1', STATUS: oneLine(status) });
  }

  /** One line for `systemctl status`. */
  status(status: string): void {
    this.#join({ STATUS: oneLine(status) });
  }

  /** Resolves when everything was sent, or could not be for too long: no stop waits for a message. */
  async flushed(): Promise<void> {
    const done = new AbortController();
    const late = this.#options.clock.sleep(flushTimeout, done.signal);
    await Promise.race([this.#sending, late]);
    done.abort();
  }

  async #askForTime(over: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (let asked = 0; asked < extension.atMost; asked += extension.every) {
      await clock.sleep(extension.every, over);
      if (over.aborted || this.#state !== 'starting') return;
      this.#join({ EXTEND_TIMEOUT_USEC: String(extension.by * 1000), STATUS: 'starting' });
    }
  }

  /** A message that only describes the state goes out with those that wait already, so that a slow systemd makes no queue grow. */
  #join(fields: Fields): void {
    if (this.#state === 'stopping') return;
    const last = this.#waiting.at(-1);
    if (last === undefined) this.#post(fields);
    else Object.assign(last, fields);
  }

  #post(fields: Fields): void {
    if (this.#send === undefined) return;
    this.#waiting.push(fields);
    this.#sending ??= this.#sendAll(this.#send);
  }

  async #sendAll(send: Send): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await send(Object.entries(next).map(([name, value]) => `${name}=${value}`));
      } catch (error) {
        if (!this.#complained) {
          const remedy = 'is systemd-notify installed, and NotifyAccess=all in the unit?';
          this.#options.log.warn('systemd cannot be told', { error: messageOf(error).trim(), remedy });
        }
        this.#complained = true;
      }
    }
    // Here and not when the promise is settled: a message that came in between would wait for the next one.
    this.#sending = undefined;
  }
}

function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, 500);
}
