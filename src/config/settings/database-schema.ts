import Type from '../../util/type.ts';
import { closed } from './schema-parts.ts';

/** Section `database`: without `url`, the SQLite file of the state directory. */
export const DatabaseSettings = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Address of a PostgreSQL database, `postgresql://USER@HOST:PORT/DATABASE`, without a password; for a Unix socket `postgresql://USER@localhost/DATABASE?host=DIRECTORY`. docs/scale-out.md. Default: SQLite, in the state directory.',
      }),
    ),
    sslmode: Type.Union(
      [
        Type.Literal('disable'),
        Type.Literal('require'),
        Type.Literal('verify-ca'),
        Type.Literal('verify-full'),
      ],
      {
        default: 'verify-full',
        description:
          'Encryption of the connection to PostgreSQL, as libpq names it. A Unix socket has none. `require` does not look whose certificate the server has.',
      },
    ),
    sslrootcert: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "File with the certificates of the authorities (PEM) that may have signed the server's. Default: those of the system.",
      }),
    ),
    passwordFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'File with the password alone, read at each login. Default: `PGPASSWORD`, or the password file of libpq (`~/.pgpass`).',
      }),
    ),
    leaseDuration: Type.Number({
      default: 15,
      minimum: 3,
      maximum: 600,
      description:
        'Seconds for which a daemon on PostgreSQL has the factory without renewing its lease; it renews three times as often. After so long a standby takes over from a daemon that is gone.',
    }),
    shareQueues: Type.Boolean({
      default: false,
      description:
        'Daemons on one PostgreSQL database share the queues out among themselves. Default: one daemon has all of them, and the others are standbys. docs/scale-out.md.',
    }),
    member: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$',
        description:
          "Name of this daemon among those that share the queues; no two may have the same. Default: the host's name.",
      }),
    ),
    queueOwners: Type.Optional(
      Type.Record(Type.String(), Type.String({ minLength: 1 }), {
        description:
          'The daemon (`member`) that is to have a queue, by the names of queues. While that daemon is gone another one has it. Queues that share something with it go along.',
      }),
    ),
  },
  closed,
);
