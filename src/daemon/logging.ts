import winston from 'winston';
import type { Log } from '../plugins/contracts/index.ts';

export interface LogSettings {
  readonly level: string;
  readonly format: 'plain' | 'json' | 'journald';
  readonly file?: string;
}

export interface DaemonLog extends Log {
  /** Waits until everything is written. */
  close(): Promise<void>;
}

/** How long the last lines may take to be written, ms. */
const closeWait = 1000;

/** A log on the standard error output or in a file. A full disk costs log lines, never the daemon. */
export function createLog(settings: LogSettings): DaemonLog {
  const { combine, json, printf, timestamp } = winston.format;
  const plain = printf(({ timestamp: at, level, message, ...facts }) => {
    const rest = Object.entries(facts).map(
      ([key, value]) => ` ${key}=${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`,
    );
    return `${String(at)} ${level.toUpperCase().padEnd(5)} ${String(message)}${rest.join('')}`;
  });
  const transport = makeTransport(settings.file);
  const logger = winston.createLogger({
    level: settings.level,
    format: combine(timestamp(), settings.format === 'json' ? json() : plain),
    transports: [transport],
  });
  logger.on('error', (error: Error) => {
    process.stderr.write(`thresher: the log cannot be written: ${error.message}\n`);
  });
  const write = (level: string) => (message: string, facts?: Readonly<Record<string, unknown>>) => {
    // As one object: winston would otherwise append a `message` among the facts to the constant one.
    const { message: detail, ...rest } = facts ?? {};
    logger.log({ ...rest, ...(detail === undefined ? {} : { detail }), level, message });
  };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    close: () =>
      new Promise((resolve) => {
        // A transport that failed never finishes.
        setTimeout(resolve, closeWait).unref();
        transport.once('finish', resolve);
        logger.end();
      }),
  };
}

function makeTransport(
  file: string | undefined,
): winston.transports.FileTransportInstance | winston.transports.ConsoleTransportInstance {
  if (file !== undefined) return new winston.transports.File({ filename: file });
  return new winston.transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] });
}

function quote(text: string): string {
  return /[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text;
}
