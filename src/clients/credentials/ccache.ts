import { createHash } from 'node:crypto';
import { ThresherError } from '../../worker/errors.ts';

/** The content of a Kerberos credential cache. */
export interface TicketFacts {
  /** "pilot@EXAMPLE.ORG" */
  readonly principal: string;
  /** ms UTC: the end of the ticket-granting ticket. */
  readonly expiresAt: number;
  readonly notBefore: number;
  readonly renewableUntil: number | undefined;
  readonly digest: string;
}

interface Ticket {
  readonly server: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly renewTill: number;
}

/** Reads big-endian numbers and lengths one after the other. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(size: 1 | 2 | 4): number {
    const value = this.#bytes.readUIntBE(this.#at, size);
    this.#at += size;
    return value;
  }

  bytes(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError('it ends too early');
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  data(): Buffer {
    return this.bytes(this.number(4));
  }

  /** Addresses, or authorization data. */
  typedData(): void {
    for (let left = this.number(4); left > 0; left--) {
      this.number(2);
      this.data();
    }
  }

  principal(): string {
    this.number(4);
    const count = this.number(4);
    const realm = this.data().toString('utf8');
    const parts = Array.from({ length: count }, () => this.data().toString('utf8'));
    return `${parts.join('/')}@${realm}`;
  }
}

/**
 * Reads a file of a Kerberos credential cache, version 4.
 * Source: "Credential cache file format" of the MIT Kerberos documentation.
 * @throws ThresherError `credential-wrong`
 */
export function readCcache(bytes: Buffer, source: string): TicketFacts {
  const wrong = (what: string) => new ThresherError('credential-wrong', `${source} ${what}`);
  if (bytes.length === 0) throw wrong('is empty');
  try {
    const cursor = new Cursor(bytes);
    if (cursor.number(2) !== 0x0504) throw wrong('is no Kerberos credential cache (version 4)');
    cursor.bytes(cursor.number(2));
    const principal = cursor.principal();
    // Bytes that were shifted would be shown as a name, and they may be a key.
    if (!isName(principal)) throw wrong('is damaged: its principal is no name');
    const tickets: Ticket[] = [];
    while (!cursor.atEnd) tickets.push(readTicket(cursor));
    const granting = tickets.filter(({ server }) => server.startsWith('krbtgt/'));
    const best = granting.toSorted((a, b) => b.endTime - a.endTime)[0];
    if (best === undefined) throw wrong('has no ticket-granting ticket');
    return {
      principal,
      expiresAt: best.endTime * 1000,
      notBefore: best.startTime * 1000,
      renewableUntil: best.renewTill === 0 ? undefined : best.renewTill * 1000,
      digest: createHash('sha256').update(bytes).digest('hex'),
    };
  } catch (error) {
    if (error instanceof RangeError) throw wrong('is cut off, or no Kerberos credential cache');
    throw error;
  }
}

function readTicket(cursor: Cursor): Ticket {
  cursor.principal();
  const server = cursor.principal();
  // The session key: its type and itself.
  cursor.number(2);
  cursor.data();
  const authTime = cursor.number(4);
  const startTime = cursor.number(4);
  const endTime = cursor.number(4);
  const renewTill = cursor.number(4);
  // Whether it is a ticket for a user's own service, and its flags.
  cursor.number(1);
  cursor.number(4);
  cursor.typedData();
  cursor.typedData();
  // The ticket, and a second one.
  cursor.data();
  cursor.data();
  return { server, startTime: startTime || authTime, endTime, renewTill };
}

function isName(principal: string): boolean {
  return /^[^\p{C}@\ufffd]+@[^\p{C}@\ufffd]+$/u.test(principal);
}
