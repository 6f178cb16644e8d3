import type { LoggedTrouble, Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { fromOutside, withoutOwn } from '../util/own-secrets.ts';
import { hidden, isSecretName, withoutSecrets } from '../util/secrets.ts';
import { oneLine } from '../util/one-line.ts';

/** So many groups are kept: a storm of different lines costs no more. */
const mostGroups = 200;
/** Longest text of the facts, characters. */
const longestFacts = 400;
/** Facts that say which part of the factory a line is about, the narrowest last. */
const subjects = ['connection', 'loop', 'source', 'service', 'manager', 'queue'] as const;

interface Group {
  readonly level: LoggedTrouble['level'];
  readonly message: string;
  readonly about: string;
  count: number;
  at: number;
  facts: Readonly<Record<string, unknown>>;
}

/**
 * Warnings and errors of the daemon's log until they are taken, those that say the same of one thing together. It keeps no more
 * than a few hundred groups, and makes their texts only when they are taken: a storm costs the daemon next to nothing.
 */
export class WarningBoard {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #groups = new Map<string, Group>();
  /** Lines that found no room since the last taking. */
  #left = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** The same log, which this board hears. */
  hearing(log: Log): Log {
    return {
      debug: (message, facts) => {
        log.debug(message, facts);
      },
      info: (message, facts) => {
        log.info(message, facts);
      },
      warn: (message, facts) => {
        this.#add('warn', message, facts);
        log.warn(message, facts);
      },
      error: (message, facts) => {
        this.#add('error', message, facts);
        log.error(message, facts);
      },
    };
  }

  /** The oldest groups, which go. Lines that found no room are one group more. */
  take(most: number): readonly LoggedTrouble[] {
    const taken = [...this.#groups].slice(0, this.#left > 0 ? most - 1 : most);
    for (const [key] of taken) this.#groups.delete(key);
    const troubles = taken.map(([, group]) => troubleOf(group));
    if (this.#left === 0) return troubles;
    const message = `${this.#left} more warnings and errors of other kinds are in the log of the daemon`;
    const rest = { level: 'warn' as const, message, about: '', facts: '', count: this.#left };
    this.#left = 0;
    return [...troubles, { ...rest, at: this.#clock.now() }];
  }

  #add(level: Group['level'], message: string, facts: Readonly<Record<string, unknown>> = {}): void {
    const subject = subjects.findLast((name) => typeof facts[name] === 'string');
    const about = subject === undefined ? '' : String(facts[subject]);
    const kind = typeof facts['code'] === 'string' ? facts['code'] : '';
    const key = `${level}\n${message}\n${kind}\n${about}`;
    const at = this.#clock.now();
    const group = this.#groups.get(key);
    if (group !== undefined) {
      group.count++;
      group.at = at;
      group.facts = facts;
    } else if (this.#groups.size < mostGroups)
      this.#groups.set(key, { level, message, about, count: 1, at, facts });
    else this.#left++;
  }
}

function troubleOf({ level, message, about, count, at, facts }: Group): LoggedTrouble {
  return {
    level,
    message: oneLine(fromOutside(message)),
    about: oneLine(fromOutside(about)),
    count,
    at,
    facts: textOf(facts),
  };
}

/** Facts may be anything, and no log line that cannot be shown may stop what takes it. */
function textOf(facts: Readonly<Record<string, unknown>>): string {
  const parts: string[] = [];
  let length = 0;
  for (const [name, value] of Object.entries(facts)) {
    if (length > longestFacts) break;
    const part = `${name}=${shown(name, value)}`;
    parts.push(part);
    length += part.length + 1;
  }
  const text = oneLine(parts.join(' '));
  return text.length > longestFacts ? `${text.slice(0, longestFacts - 3)}...` : text;
}

function shown(name: string, value: unknown): string {
  try {
    if (typeof value === 'string') return isSecretName(name) ? hidden : fromOutside(value);
    const safe = JSON.stringify(withoutSecrets(name, value)) as string | undefined;
    return withoutOwn((safe ?? '').slice(0, 10 * longestFacts));
  } catch {
    return '(not shown)';
  }
}
