import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

export type Message = Readonly<Record<string, string>>;

export interface NotifyListener {
  readonly socket: string;
  /** Everything that came so far, in order. */
  readonly messages: readonly Message[];
  close(): Promise<void>;
}

/** A service manager that only listens. */
export async function listenForNotifications(): Promise<NotifyListener> {
  const socket = join(temporaryDirectory(), 'notify');
  const listener = spawn('python3', [join(import.meta.dirname, 'notify-listener.py'), socket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(listener, 'close');
  let text = '';
  listener.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  const read = () =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Message);
  await until('the listener listens', () => read().length > 0);
  return {
    socket,
    get messages() {
      return read().slice(1);
    },
    async close() {
      listener.kill('SIGKILL');
      await ended;
    },
  };
}
