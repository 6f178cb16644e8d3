import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { CacheReader } from '../../../src/config/cric/cache-reader.ts';
import { readEntryLines } from '../../../src/config/cric/entry-lines.ts';
import type { Asked, Taken } from '../../../src/daemon/cacher/forms.ts';
import { judgeFile } from '../../../src/daemon/cacher/judging.ts';
import { cricWords } from '../../../src/config/cric/fields.ts';
import { rememberSecret, rememberUrl, withoutOwn } from '../../../src/util/own-secrets.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const asked = (use: Asked['use'], anything = false, names: readonly string[] = []): Asked => ({
  use,
  anything,
  name: 'FILE of URL',
  home: { harvesterId: 'thresher-abcd1234', names },
});
const json = (value: unknown) => Buffer.from(JSON.stringify(value));

async function refusal(bytes: Buffer, how: Asked): Promise<string> {
  try {
    await judgeFile(bytes, how);
    return 'none';
  } catch (error) {
    if (error instanceof ThresherError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** An entry as CRIC has it, of 20 kB. */
const bulky = (index: number) => ({
  pilot_manager: 'Harvester',
  harvester: index === 7 ? 'us' : `others-${index % 5}`,
  panda_resource: `QUEUE_${index}`,
  queues: Array.from({ length: 100 }, (_, at) => ({
    ce_endpoint: `ce${at}.site.test:9619`,
    ce_state: 'ACTIVE',
  })),
  text: 'x'.repeat(14_000),
});

describe('a fetched file', () => {
  it('hole 8: refuse what would be kept as more than can be read', async () => {
    const large = `{"status":"","text":"${'x'.repeat(950_000)}"}`;
    const all = `{${Array.from({ length: 75 }, (_, at) => `"${at}":${large}`).join()}}`;
    expect(await refusal(Buffer.from(all), asked('queue-data'))).to.match(
      /has 75 entries, \d+ bytes as they are kept; 67108864 can be read$/,
    );
  });

  it('with queues of CRIC is kept an entry a line, by the name of the PanDA queue', async () => {
    const value = { NICK: { panda_resource: 'NAME', status: 'online' }, B: { status: 'test' }, C: 3 };
    const { kept, leftOut } = await judgeFile(json(value), asked('queue-data'));
    const read = await readEntryLines(kept, () => true, 'us');
    expect([...(read?.entries.keys() ?? [])]).to.deep.equal(['NAME', 'B']);
    expect(leftOut).to.deep.equal(['C (no object)']);
  });

  for (const size of ['small', 'large'] as const)
    it(`that sends back our login, ${size}: the login is neither a name nor a value of a queue, and the rest goes on`, async () => {
      const password = `Zq7Hunter-9xKw2-${size}`;
      rememberUrl(`http://bob:${password}@host/json`);
      const own = (resource: string, more: object = {}) => ({ panda_resource: resource, ...more });
      const value = {
        [password]: own(password),
        N: own(`N-${password}`),
        NICK: own('Q', {
          // A thread judges what is large.
          text: size === 'large' ? 'x'.repeat(600_000) : 'x',
          corecount: password,
          maxrss: 2000,
          params: { maxWorkers: `=${password}`, [`jdl.plusattr.${password}`]: 'y', pilot_url: 'z' },
          queues: [{ ce_endpoint: `${password}.host:9619`, ce_state: 'ACTIVE' }, password],
        }),
      };
      const { kept, leftOut, entries } = await judgeFile(json(value), asked('queue-data'));
      expect(entries).to.equal(1);
      expect(kept.toString()).not.to.include('Hunter');
      const { text, ...read } = (await readEntryLines(kept, () => true, 'us'))?.entries.get('Q') ?? {};
      expect(text).to.match(/^x+$/);
      expect(read).to.deep.equal({
        pilot_manager: null,
        harvester: null,
        panda_resource: 'Q',
        maxrss: 2000,
        params: { pilot_url: 'z' },
        queues: [{ ce_state: 'ACTIVE' }],
      });
      expect(leftOut).to.deep.equal([
        '(hidden) (a login of ours is in its name)',
        'N (a login of ours is in its name)',
        'NICK (of it only values with a login of ours)',
      ]);
    });

  it('hole 8: with queues of CRIC leaves out those that are too deep, too long or of too many values to be read again, and cuts their names', async () => {
    // A thread judges files above 512 kB, and has a larger stack.
    const text = JSON.stringify({
      A: { status: 'online', text: 'x'.repeat(600_000) },
      LONG: { status: 'online', text: 'x'.repeat(1_000_001) },
      MANY: { status: 'online', list: Array(10_000).fill(1) },
      ['N'.repeat(5000)]: 3,
    });
    const nested = `"DEEP": {"status": "online", "deep": ${'['.repeat(9000) + ']'.repeat(9000)}},`;
    const { kept, leftOut } = await judgeFile(
      Buffer.from(text.replace('{', `{${nested}`)),
      asked('queue-data'),
    );
    expect([...((await readEntryLines(kept, () => true, 'us'))?.entries.keys() ?? [])]).to.deep.equal(['A']);
    expect(leftOut).to.deep.equal([
      'DEEP (more than 20 levels)',
      'LONG (longer than 1000000 characters)',
      'MANY (more than 10000 values)',
      `${'N'.repeat(100)} (no object)`,
    ]);
  });

  it('with a queue file is kept as it came, so that problems name its lines', async () => {
    const bytes = Buffer.from('{\n  "Q": {}\n}');
    expect((await judgeFile(bytes, asked('queue-file'))).kept).to.equal(bytes);
  });

  it('with a queue file that could not be read again is refused, and says where and why', async () => {
    const inner = Array.from({ length: 100 }, (_, at) => `"k${at}":1`).join();
    for (const length of [5000, 600_000]) {
      const long = Buffer.from(`{"Q":{},\n"${'k'.repeat(length)}":{${inner}}}`);
      expect(await refusal(long, asked('queue-file'))).to.equal(
        `cache-form: FILE of URL cannot be read: line 2, /: the key "${'k'.repeat(40)}..." has ${length} characters; a key may have 400`,
      );
    }
    const many = Buffer.from(`{"Q":[${'1,'.repeat(100_001)}1]}`);
    expect(await refusal(many, asked('queue-file'))).to.match(/has too many values \(over 100000\)$/);
    const deep = Buffer.from(`{"Q":${'['.repeat(200)}${']'.repeat(200)}}`);
    expect(await refusal(deep, asked('queue-file'))).to.match(/^cache-form: .* nested too deeply/);
  });

  it('for other programs must be JSON from a server, and may be anything as a file', async () => {
    const proxy = Buffer.from('-----BEGIN CERTIFICATE-----');
    expect(await refusal(proxy, asked('dump'))).to.match(/^cache-form: FILE of URL is no JSON/);
    expect((await judgeFile(proxy, asked('dump', true))).kept).to.equal(proxy);
  });

  for (const [what, bytes, says] of [
    ['is empty', Buffer.alloc(0), 'is empty'],
    ['is no text', Buffer.from([0x7b, 0xff, 0xfe]), 'is no text in UTF-8'],
    ['is half', Buffer.from('{"Q": {'), 'is no JSON'],
    ['is a list', json([{}]), 'holds no object'],
    ['is null', json(null), 'holds no object'],
    ['has no queue', json({}), 'holds no queue'],
    ['has texts alone', json({ error: 'try later' }), 'holds no queue'],
  ] as const) {
    it(`with queues is refused where it ${what}`, async () => {
      for (const use of ['queue-data', 'queue-file'] as const)
        expect(await refusal(bytes, asked(use))).to.match(new RegExp(`^cache-form: FILE of URL ${says}`));
    });
  }

  it('of 20 MB holds the daemon for no more than a moment, neither when it comes nor when it is read', async () => {
    const bytes = json(Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`N${at}`, bulky(at)])));
    expect(bytes.length).to.be.greaterThan(19_000_000);
    // What is parsed here keeps all else waiting.
    let longest = 0;
    const { parse } = JSON;
    const watched: typeof parse = (text, reviver) => {
      longest = Math.max(longest, text.length);
      return parse(text, reviver) as unknown;
    };
    JSON.parse = watched;
    try {
      const { kept } = await judgeFile(bytes, asked('queue-data'));
      expect(longest, 'the longest text that is parsed to judge it').to.equal(0);
      const read = await readEntryLines(kept, (name) => name === 'QUEUE_3', 'us');
      expect([...(read?.entries.keys() ?? [])]).to.deep.equal(['QUEUE_3', 'QUEUE_7']);
      expect(longest, 'the longest text that is parsed to read it').to.be.within(19_000, 25_000);
    } finally {
      JSON.parse = parse;
    }
  });

  it('hole 8: of hundreds of thousands of queues is refused, since each look would go over all of them', async () => {
    const queue = { panda_resource: 'Q' };
    const bytes = json(Object.fromEntries(Array.from({ length: 20_001 }, (_, at) => [`N${at}`, queue])));
    expect(await refusal(bytes, asked('queue-data'))).to.equal(
      'cache-form: FILE of URL has 20001 entries; 20000 can be taken',
    );
  });

  it('hole 8: of millions of values is refused before they take memory, and names of any length are left out', async () => {
    const many = Buffer.from(`{"Q":{"panda_resource":"Q","list":[${'{},'.repeat(3_000_000)}1]}}`);
    expect(await refusal(many, asked('queue-data'))).to.equal(
      'cache-form: FILE of URL has more than 3000000 values',
    );
    const long = 'x'.repeat(8000);
    const { leftOut, entries } = await judgeFile(
      json({ [long]: { status: 'online' }, A: { panda_resource: long }, B: { panda_resource: 'B' } }),
      asked('queue-data'),
    );
    expect([leftOut.length, entries]).to.deep.equal([2, 1]);
    expect(leftOut[0]).to.match(/^x{100} \(its name has more than 200 characters\)$/);
  });

  it('of 20 MB that is half is refused by its thread as any other', async () => {
    const bytes = Buffer.concat([Buffer.from('{"Q": "'), Buffer.alloc(20_000_000, 'x')]);
    expect(await refusal(bytes, asked('queue-data'))).to.match(/^cache-form: FILE of URL is no JSON/);
  });

  it('has all of its queues whatever word of its form, or name of the configuration, is a password of ours', async () => {
    const name = 'CERN-PROD_UCORE_2';
    const names = [name, 'production.pull'];
    const secrets = [...cricWords, ...names, 'thresher-abcd1234'];
    // In a thread, whose passwords no other test has.
    const judged = async (value: unknown): Promise<Taken> => {
      const workerData = { bytes: json(value), asked: asked('queue-data', false, names), secrets };
      const source = new URL('../../../src/daemon/cacher/judge-worker.ts', import.meta.url);
      const [taken] = (await once(new Worker(source, { workerData }), 'message')) as [Taken];
      return taken;
    };
    const ce = { ce_endpoint: 'ce.test:9619', ce_state: 'ACTIVE', ce_flavour: 'htcondor-ce' };
    const fields = Object.fromEntries(cricWords.values().map((word) => [word, 1]));
    const entry = { ...fields, status: 'online', pilot_manager: 'Harvester', params: fields, queues: [ce] };
    const ours = {
      panda_resource: name,
      harvester: 'thresher-abcd1234',
      harvester_template: 'production.pull',
    };
    const value = { [name]: { ...entry, ...ours } };
    const { kept, leftOut, own } = await judged(value);
    expect(JSON.parse(Buffer.from(kept).toString())).to.deep.equal(value);
    expect(leftOut).to.deep.equal([]);
    expect(own).to.equal(1);
    const other = await judged({ A: { ...entry, text: `x ${name}` } });
    expect(Buffer.from(other.kept).toString()).not.to.include(name);
    expect(other.leftOut).to.deep.equal(['A (of it only values with a login of ours)']);
  });

  it('keeps the queues whose names an issuer spelled in a token, and so does who reads it', async () => {
    const names = ['ANALY_SITE_XROOTD', 'CERN-PROD_UCORE_2'];
    const parts = names.map((name) => name.padEnd(32, '-'));
    const token = `eyJhbGciOiJub25lIn0.e30${'A'.repeat(40)}.${parts.join('')}`;
    for (let from = 0; from < 32; from++)
      rememberSecret(token.replace('AAAA.', `${'A'.repeat(from)}.`), `${from}`);
    for (const name of names) expect(withoutOwn(name)).to.equal('(hidden)');
    const value = Object.fromEntries(names.map((name) => [name, { status: 'online', nickname: name }]));
    const { kept, leftOut } = await judgeFile(json(value), asked('queue-data'));
    expect(leftOut).to.deep.equal([]);
    const directory = join(temporaryDirectory(), 'cache');
    const items = (['queue-data', 'queue-file'] as const).map((use) => {
      const from = { kind: 'web', url: 'http://h/' } as const;
      return { key: use, subKey: '', use, from, shown: 'http://h/' };
    });
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'queue-data'), kept);
    writeFileSync(join(directory, 'queue-file'), json(value));
    const reader = new CacheReader({ directory, items, harvesterId: 'us', files });
    const { queueFile } = await reader.queueFile();
    expect(queueFile?.value).to.deep.equal(value);
    expect(queueFile?.problems).to.deep.equal([]);
    const { queueData, problems } = await reader.queueData(new Set(names.slice(0, 1)));
    expect([...(queueData?.entries ?? [])].map(([name]) => name)).to.deep.equal(names.slice(0, 1));
    expect(problems).to.deep.equal([]);
  });
});
