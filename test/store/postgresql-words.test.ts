import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { postgresqlDialect } from '../../src/store/postgresql/dialect.ts';
import { postgresqlError } from '../../src/store/postgresql/errors.ts';
import { inPostgresql } from '../../src/store/postgresql/migrations.ts';
import { openSession } from '../../src/store/postgresql/session.ts';
import { nameOf, parseAddress } from '../../src/util/postgresql-options.ts';
import { steps } from '../../src/store/sqlite/migrations.ts';
import type { Tables } from '../../src/store/tables.ts';
import pg from 'pg';

describe('the migrations in the words of PostgreSQL', () => {
  it('have none of those that only SQLite knows', () => {
    const texts = Object.values(steps).flat().map(inPostgresql);
    for (const text of texts) expect(text).not.to.match(/INTEGER|AUTOINCREMENT|ROWID/);
    expect(texts[0]).to.contain('n_core DOUBLE PRECISION NOT NULL').and.to.contain('TEXT COLLATE "C"');
  });
});

describe('rows for PostgreSQL', () => {
  it('have their quotes and backslashes escaped, and no value for nothing', () => {
    const values = ['a"b', '\\', '', 'NULL', '{}', ','];
    const { parameters } = compiled(values);
    expect(parameters).to.deep.equal(['{"a\\"b","\\\\","","NULL","{}",","}']);
  });

  it('have an empty array for a column that no row has', () => {
    const columns = {
      worker: { type: 'integer', of: ({ id }: { id: number }) => id },
      node: { type: 'text', of: () => undefined },
    } as const;
    const { from } = postgresqlDialect.rows('added', columns, [{ id: 1 }, { id: 2 }]);
    expect(from.compile(unconnected).parameters).to.deep.equal(['{1,2}', '{}']);
  });

  it('have no column that was not named', () => {
    const rows = postgresqlDialect.rows('r', { a: { type: 'integer', of: () => 1 } }, [{}]);
    expect(() => rows.column('b' as 'a')).to.throw('r has no column b');
  });
});

describe('the login to PostgreSQL', () => {
  it('hole 3: is shown by no error, also where the driver took it from the environment and the server says it back', async () => {
    const password = 'Zq7-pgPassword-91xKd';
    const message = (type: string, body: Buffer) => {
      const head = Buffer.from(`${type}\0\0\0\0`);
      head.writeInt32BE(body.length + 4, 1);
      return Buffer.concat([head, body]);
    };
    const askForPassword = message('R', Buffer.from([0, 0, 0, 3]));
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write(askForPassword);
        socket.once('data', (sent) => {
          const said = `SFATAL\0C28P01\0Mwrong password: ${sent.subarray(5, -1).toString()}\0\0`;
          socket.end(message('E', Buffer.from(said)));
        });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const before = process.env['PGPASSWORD'];
    process.env['PGPASSWORD'] = password;
    try {
      const place = { host: '127.0.0.1', port, user: 'u', database: 'd' };
      const options = { ...place, kind: 'postgresql', sslmode: 'disable', leaseDuration: 15_000 } as const;
      const use = { application: 'test', mayTakeLong: false, readOnly: true };
      const error = await openSession(options, use).then(
        () => undefined,
        (thrown: unknown) => postgresqlError(thrown, 'd'),
      );
      expect(error?.message).to.equal('the database refuses the login: wrong password: (hidden)');
    } finally {
      if (before === undefined) delete process.env['PGPASSWORD'];
      else process.env['PGPASSWORD'] = before;
      server.close();
    }
  });
});

/** Makes texts, and carries none out. */
const unconnected = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

function compiled(values: readonly string[]): { readonly parameters: readonly unknown[] } {
  const node = postgresqlDialect.values(values, 'text').toOperationNode() as unknown as {
    readonly parameters: readonly { readonly value?: unknown }[];
  };
  return { parameters: node.parameters.flatMap(({ value }) => value ?? []) };
}

describe('the address of a PostgreSQL database', () => {
  for (const [text, name] of [
    ['postgresql://thresher@db.example.org/factory', 'postgresql://thresher@db.example.org:5432/factory'],
    ['postgres://a%40b@[::1]:6000/x', 'postgresql://a@b@[::1]:6000/x'],
    ['postgresql://u@localhost/d?host=/run/postgresql', 'postgresql://u@/run/postgresql:5432/d'],
  ] as const)
    it(`is read: ${text}`, () => {
      const address = parseAddress(text);
      expect('wrong' in address ? address.wrong : nameOf(address)).to.equal(name);
    });

  for (const [text, why] of [
    ['', 'none of PostgreSQL'],
    ['mysql://u@h/d', 'none of PostgreSQL'],
    ['postgresql://h/d', 'names no user'],
    ['postgresql://u@h', 'names no database'],
    ['postgresql://u@/d', 'none of PostgreSQL|names no host'],
    ['postgresql://u@h/d?sslmode=require', 'parameters \\(sslmode\\)'],
    ['postgresql://u:secret@h/d', 'holds a password'],
    ['postgresql://%E0%A4%A@h/d', 'names no user|none of PostgreSQL'],
  ] as const)
    it(`is refused without its text: ${text}`, () => {
      const address = parseAddress(text);
      expect('wrong' in address && address.wrong).to.match(new RegExp(why));
      expect(JSON.stringify(address)).to.not.contain('secret');
    });
});

describe('an error of PostgreSQL', () => {
  const answered = (code: string) =>
    Object.assign(new pg.DatabaseError(`code ${code}`, 1, 'error'), { code });
  for (const [error, code] of [
    [answered('53100'), 'store-full'],
    [answered('25006'), 'store-readonly'],
    [answered('28P01'), 'store-login'],
    [answered('3D000'), 'store-login'],
    [answered('57P01'), 'store-unreachable'],
    [answered('53300'), 'store-unreachable'],
    [answered('XX001'), 'store-corrupt'],
    [answered('23505'), 'store-row'],
    [answered('22003'), 'store-row'],
    [answered('54000'), 'store-row'],
    [answered('23503'), 'store-failed'],
    [answered('40P01'), 'store-failed'],
    [new Error('Connection terminated unexpectedly'), 'store-unreachable'],
    [new Error('the database did not answer in time'), 'store-unreachable'],
    [Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'store-unreachable'],
    [
      Object.assign(new AggregateError([new Error('one')], 'all'), { code: 'ECONNREFUSED' }),
      'store-unreachable',
    ],
    [new Error('else'), 'store-failed'],
  ] as const)
    it(`with the words "${error.message}" is ${code}`, () => {
      expect(postgresqlError(error, 'postgresql://u@h:1/d')).to.include({ code, cause: error });
    });
});
