import { beginningOfOwn } from '../util/beginning.ts';
import { jsonWithoutOwn, withoutOwn } from '../util/own-secrets.ts';
import { fstatSync } from 'node:fs';
import { Writable } from 'node:stream';
import winston from 'winston';
import type { Log } from '../plugins/contracts/index.ts';
import { LogFile } from './log-file.ts';

export type LogFormat = 'plain' | 'json' | 'journald';

export interface LogSettings {
  readonly level: string;
  /** Default: `journald` where the standard error output is the journal, else `plain`. */
  readonly format?: LogFormat;
  readonly file?: string;
}

export interface DaemonLog extends Log {
  /** Waits until everything is written. */
  close(): Promise<void>;
}

/** How long the last lines may take to be written, ms. */
const closeWait = 1000;

/** The priority that the journal reads at the beginning of a line. Source: sd-daemon(3). */
const journalPriority: Readonly<Record<string, number>> = { error: 3, warn: 4, info: 6, debug: 7 };

/** A log on the standard error output or in a file. A full disk costs log lines, never the daemon. */
export function createLog(settings: LogSettings): DaemonLog {
  const complain = (message: string) => {
    process.stderr.write(`thresher: ${message}\n`);
  };
  const file = settings.file === undefined ? undefined : new LogFile(settings.file, complain);
  const transport = makeTransport(file);
  const logger = winston.createLogger({
    level: settings.level,
    format: lineFormat(formatInUse(settings, isJournal())),
    transports: [transport],
  });
  logger.on('error', (error: Error) => {
    complain(`the log cannot be written: ${error.message}`);
  });
  const write = (level: string) => (message: string, facts?: Readonly<Record<string, unknown>>) => {
    // As one object: winston would otherwise append a `message` among the facts to the constant one.
    const { message: detail, ...rest } = bounded(facts ?? {});
    logger.log({ ...rest, ...(detail === undefined ? {} : { detail }), level, message });
  };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    close: () =>
      new Promise((resolve) => {
        // A transport that failed never finishes, and neither does a file on a disk that hangs.
        setTimeout(resolve, closeWait).unref();
        transport.once('finish', () => {
          (file?.close() ?? Promise.resolve()).then(resolve, resolve);
        });
        logger.end();
      }),
  };
}

/** Longest fact of a line, characters: whoever sends a larger one must not fill the disk with it. */
const longestFact = 10_000;

function bounded(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const cut = (text: string) => `${beginningOfOwn(text, longestFact)}... (${text.length} characters)`;
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => {
      if (typeof value === 'string') return [name, value.length > longestFact ? cut(value) : value];
      if (typeof value !== 'object' || value === null) return [name, value];
      try {
        const text = JSON.stringify(value);
        return [name, text.length > longestFact ? cut(text) : value];
      } catch {
        return [name, '(cannot be shown)'];
      }
    }),
  );
}

/**
 * The format that lines get. The journal's lines carry no time, since it has its own: in a file they would be worth
 * little, so a file gets plain ones instead.
 */
export function formatInUse({ format, file }: Omit<LogSettings, 'level'>, journal: boolean): LogFormat {
  if (file !== undefined) return format === 'json' ? 'json' : 'plain';
  return format ?? (journal ? 'journald' : 'plain');
}

/**
 * Whether a descriptor is the stream to the journal that systemd gave us, and not something that it was redirected to
 * since. Source: `JOURNAL_STREAM` in systemd.exec(5).
 */
export function isJournal(stream = process.env.JOURNAL_STREAM, descriptor = 2): boolean {
  if (stream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    // A closed one.
    return false;
  }
}

function lineFormat(format: LogFormat) {
  const { combine, json, printf, timestamp } = winston.format;
  switch (format) {
    case 'json':
      return combine(timestamp(), json(), withoutOwnSecrets());
    case 'plain':
      return combine(
        timestamp(),
        printf(({ timestamp: at, level, ...rest }) => {
          return `${String(at)} ${level.toUpperCase().padEnd(5)} ${withoutOwn(describe(rest))}`;
        }),
      );
    case 'journald':
      return printf(({ level, ...rest }) => `<${journalPriority[level] ?? 6}>${withoutOwn(describe(rest))}`);
  }
}

/** For lines that another format has made. They stay JSON: a secret may stand where a number does. */
const withoutOwnSecrets = winston.format((info) => {
  const line = info[Symbol.for('message')];
  if (typeof line !== 'string' || withoutOwn(line) === line) return info;
  return { ...info, [Symbol.for('message')]: jsonWithoutOwn(JSON.parse(line)) };
});

/** In one line, whatever the facts are: the journal gives each line a priority of its own. */
function describe({ message, ...facts }: { readonly message: unknown }): string {
  const rest = Object.entries(facts).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`,
  );
  return `${String(message).replace(/[\r\n]+/g, ' ')}${rest.join('')}`;
}

function makeTransport(
  file: LogFile | undefined,
): winston.transports.StreamTransportInstance | winston.transports.ConsoleTransportInstance {
  if (file === undefined) {
    return new winston.transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] });
  }
  const stream = new Writable({
    decodeStrings: false,
    write: (lines: string, _encoding, done) => {
      file.write(lines);
      done();
    },
  });
  return new winston.transports.Stream({ stream });
}

function quote(text: string): string {
  return /[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text;
}
