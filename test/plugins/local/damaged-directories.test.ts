import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Worker } from '../../../src/plugins/contracts/index.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { LocalBackend } from '../../support/local-plugins.ts';
import { workerOf } from '../../support/samples.ts';
import { removeDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const pipe = (path: string) => spawnSync('mkfifo', [path]);

/** The mark of another worker, changed. */
function markOf(path: string, change: (mark: Mark) => unknown): string {
  const mark = JSON.parse(readFileSync(path, 'utf8')) as Mark;
  return JSON.stringify(change(mark));
}
type Mark = Record<string, unknown> & { worker: Record<string, unknown> };

describe('a damaged directory of a local worker', () => {
  let backend: LocalBackend;
  let sound: Worker;

  beforeEach(async () => {
    backend = new LocalBackend();
    sound = await backend.start(7);
    mkdirSync(join(backend.root, '8'));
  });

  afterEach(() => backend.clean());

  const good = () => backend.path(sound, 'worker.json');
  const bad = () => join(backend.root, '8', 'worker.json');
  const damages: [what: string, damage: () => unknown, why: RegExp][] = [
    [
      'a mark without a worker',
      () => {
        writeFileSync(bad(), '{"factory":"thresher-test","cpu":0,"memory":0}');
      },
      /"worker" is missing/,
    ],
    [
      'a mark that is no JSON',
      () => {
        writeFileSync(bad(), '{');
      },
      /no JSON/,
    ],
    [
      'an empty mark',
      () => {
        writeFileSync(bad(), '');
      },
      /no JSON/,
    ],
    [
      'null for a mark',
      () => {
        writeFileSync(bad(), 'null');
      },
      /must be an object/,
    ],
    [
      'the mark of another worker',
      () => {
        cpSync(good(), bad());
      },
      /names worker 7 in the directory of worker 8/,
    ],
    [
      'attempt 1e9',
      () => {
        writeFileSync(
          bad(),
          markOf(good(), (mark) => ({ ...mark, worker: { ...mark.worker, workerId: 8, attempt: 1e9 } })),
        );
      },
      /attempt is 1000000000/,
    ],
    [
      'a wall time that is a text',
      () => {
        writeFileSync(
          bad(),
          markOf(good(), (mark) => ({
            ...mark,
            worker: { ...mark.worker, workerId: 8, requirements: { maxWalltime: 'long' } },
          })),
        );
      },
      /maxWalltime|nCore/,
    ],
    ['a pipe for a mark', () => pipe(bad()), /is a pipe/],
    [
      'a directory for a mark',
      () => {
        mkdirSync(bad());
      },
      /is a directory/,
    ],
    [
      'a link for a mark',
      () => {
        symlinkSync(good(), bad());
      },
      /is a symbolic link/,
    ],
    [
      'an endless mark',
      () => {
        writeFileSync(bad(), Buffer.alloc(1_000_000, '['));
      },
      /more than/,
    ],
    [
      'brackets without end',
      () => {
        writeFileSync(bad(), '['.repeat(60_000));
      },
      /no JSON/,
    ],
  ];
  for (const [what, damage, why] of damages)
    it(`with ${what} is named and set aside, and the others go on`, async () => {
      damage();
      const { trouble, seen } = await backend.observe(({ over }) => over >= 2);
      expect({ trouble, ids: [...seen.keys()] }).to.deep.equal({ trouble: [], ids: [7] });
      const listed = await backend.list();
      const aside = listed.find(({ identity }) => identity === undefined);
      expect(listed.length).to.equal(2);
      expect(aside?.place).to.equal(join(backend.root, '8'));
      expect(aside?.damage).to.match(why);
      const told = backend.log.lines.filter(({ facts }) => facts.code === 'local-directory-damaged');
      expect(told.map(({ facts }) => facts.path)).to.deep.equal([join(backend.root, '8')]);
    });

  it('is never removed as an orphan, but the operator is asked to', async () => {
    writeFileSync(bad(), '{');
    const aside = (await backend.list()).find(({ identity }) => identity === undefined);
    if (aside === undefined) throw new Error('it is listed');
    const outcome = await backend.sweeper.removeOrphan(aside, new AbortController().signal);
    expect(outcome.kind === 'failed' && outcome.error.code).to.equal('local-directory-damaged');
    expect(existsSync(bad())).to.equal(true);
  });

  it('whose name is no id but whose mark is a worker’s is set aside', async () => {
    for (const name of ['07', '7.bak', '7e0'])
      cpSync(backend.path(sound), join(backend.root, name), { recursive: true });
    const listed = await backend.list();
    expect(listed.filter(({ identity }) => identity?.workerId === 7).length).to.equal(1);
    const aside = listed.filter(({ identity }) => identity === undefined);
    expect(aside.map(({ place }) => place).sort()).to.deep.equal(
      ['07', '7.bak', '7e0'].map((name) => join(backend.root, name)),
    );
  });

  for (const [what, damage] of [
    [
      'its mark',
      () => {
        writeFileSync(good(), 'x');
      },
    ],
    [
      'its claim, by a directory',
      () => {
        replace('claim.1', mkdirSync);
      },
    ],
    [
      'its claim, by a pipe',
      () => {
        replace('claim.1', pipe);
      },
    ],
    [
      'its claim, by text',
      () => {
        writeFileSync(backend.path(sound, 'claim.1'), '{"by":"shim","pid":"x"}');
      },
    ],
    [
      'its claim, by another process',
      () => {
        writeFileSync(backend.path(sound, 'claim.1'), '{"by":"shim","pid":2,"startTicks":1,"bootId":"x"}');
      },
    ],
    [
      'the whole of it, by a link',
      () => {
        linkAway();
      },
    ],
    [
      'the whole of it, by a file',
      () => {
        replace('', (path) => {
          writeFileSync(path, '');
        });
      },
    ],
  ] as const)
    it(`counts as long as its worker lives: damaged was ${what}`, async () => {
      damage();
      for (const daemon of [backend, backend.restarted()]) {
        const { seen, trouble } = await daemon.observe(({ over }) => over >= 2);
        expect({ trouble, status: seen.get(7)?.status }).to.deep.equal({ trouble: [], status: 'running' });
        const found = (await daemon.list()).find(({ identity }) => identity?.workerId === 7);
        expect(found?.observation?.status).to.equal('running');
        const { handle, ...intent } = sound;
        expect((await daemon.check(intent))?.kind, String(handle?.batchID)).to.equal('observed');
      }
      await backend.restarted().kill(sound);
      expect(await backend.living()).to.deep.equal([]);
    });

  function replace(name: string, by: (path: string) => unknown): void {
    const path = name === '' ? backend.path(sound) : backend.path(sound, name);
    removeDirectory(path);
    by(path);
  }
  function linkAway(): void {
    renameSync(backend.path(sound), join(backend.directory, 'elsewhere'));
    symlinkSync(join(backend.directory, 'elsewhere'), backend.path(sound));
  }

  for (const [what, put] of [
    ['pipes', pipe],
    [
      'directories',
      (path: string) => {
        mkdirSync(path);
      },
    ],
    [
      'links to a device',
      (path: string) => {
        symlinkSync('/dev/zero', path);
      },
    ],
    [
      'endless files',
      (path: string) => {
        writeFileSync(path, Buffer.alloc(1_000_000, '1'));
      },
    ],
  ] as const)
    it(`ends as a worker without exit status where ${what} stand for its files`, async () => {
      await backend.clean();
      for (const name of ['exit', 'ended-by', 'claim.1']) replaceIfThere(name, put);
      const { seen, trouble } = await backend.restarted().observe(({ over }) => over >= 2);
      // A file that hangs would be trouble after its deadline.
      expect(trouble).to.deep.equal([]);
      expect(seen.get(7)?.error?.code).to.equal('exit-status-lost');
    });
  function replaceIfThere(name: string, by: (path: string) => unknown): void {
    removeDirectory(backend.path(sound, name));
    by(backend.path(sound, name));
  }

  it('shows nothing through a link that a pilot put into the place of its directory', async () => {
    mkdirSync(join(backend.directory, 'secrets'));
    writeFileSync(join(backend.directory, 'secrets', 'stdout'), 'secret');
    renameSync(backend.path(sound), join(backend.directory, 'elsewhere'));
    symlinkSync(join(backend.directory, 'secrets'), backend.path(sound));
    const { signal } = new AbortController();
    const pieces = backend.monitor.logs?.read(sound, { stream: 'stdout', follow: false }, signal);
    const read = async () => {
      let text = '';
      for await (const piece of pieces ?? []) text += Buffer.from(piece).toString();
      return text;
    };
    expect(await read().catch((error: unknown) => error)).to.include({ code: 'no-log' });
  });
});

describe('hole 7: a local worker whose claim cannot be read', () => {
  it('may run where the look for its processes fails, and is found by the next one', async () => {
    const backend = new LocalBackend();
    const host = backend.host();
    const [claimOf, survivor] = [host.directory.claimOf.bind(host.directory), host.survivor.bind(host)];
    host.directory.claimOf = async (...asked) =>
      (await claimOf(...asked)) && { by: 'shim', pid: 0, startTicks: 0, bootId: '' };
    host.survivor = () => Promise.reject(new Error('EMFILE: too many open files'));
    try {
      const failed = await rejection(backend.start(7));
      expect(String(failed)).to.contain('"unknown"').and.to.contain('EMFILE');
    } finally {
      Object.assign(host, { survivor });
      Object.assign(host.directory, { claimOf });
    }
    expect(await backend.find(workerOf(7))).to.have.property('kind', 'found');
    await backend.clean();
  });
});

describe('any content of a worker directory', () => {
  /** A thing that may stand in the place of a file. */
  const thing = fc.oneof(
    fc.record({ kind: fc.constant('text' as const), text: fc.oneof(fc.string(), fc.json()) }),
    fc.record({
      kind: fc.constantFrom('pipe' as const, 'directory' as const, 'loop' as const, 'zero' as const),
    }),
    fc.record({ kind: fc.constant('mark' as const), changes: fc.dictionary(fc.string(), fc.jsonValue()) }),
    fc.record({
      kind: fc.constant('claim' as const),
      pid: fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -1, 1, 2)),
      startTicks: fc.oneof(fc.integer(), fc.string()),
    }),
  );
  type Thing = typeof thing extends fc.Arbitrary<infer T> ? T : never;

  function put(path: string, one: Thing, mark: Mark): void {
    switch (one.kind) {
      case 'text': {
        writeFileSync(path, one.text);
        return;
      }
      case 'pipe':
        return void pipe(path);
      case 'directory': {
        mkdirSync(path);
        return;
      }
      case 'loop': {
        symlinkSync(path, path);
        return;
      }
      case 'zero': {
        symlinkSync('/dev/zero', path);
        return;
      }
      case 'mark': {
        writeFileSync(path, JSON.stringify({ ...mark, worker: { ...mark.worker, ...one.changes } }));
        return;
      }
      case 'claim': {
        const { pid, startTicks } = one;
        writeFileSync(path, JSON.stringify({ by: 'shim', pid, startTicks, bootId: 'x' }));
        return;
      }
    }
  }

  it('is a state of its worker or a named damage: nothing stops the look at the others, and nothing hangs', async () => {
    const backend = new LocalBackend();
    const sound = await backend.start(7);
    const mark = JSON.parse(readFileSync(backend.path(sound, 'worker.json'), 'utf8')) as Mark;
    const names = ['worker.json', 'claim.1', 'claim.2', 'exit', 'ended-by', 'stdout', 'exit.tmp'];
    const content = fc.dictionary(fc.constantFrom(...names), thing, { maxKeys: 5 });
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(content, { minLength: 1, maxLength: 4 }), async (directories) => {
          for (const name of readdirSync(backend.root))
            if (/^\d+$/.test(name) && name !== '7') removeDirectory(join(backend.root, name));
          for (const [at, files] of directories.entries()) {
            const path = join(backend.root, String(100 + at));
            mkdirSync(path);
            const own = { ...mark, worker: { ...mark.worker, workerId: 100 + at } };
            for (const [name, one] of Object.entries(files)) put(join(path, name), one, own);
          }
          const daemon = backend.restarted();
          const { seen, trouble } = await daemon.observe(({ over }) => over >= 2);
          expect(trouble).to.deep.equal([]);
          expect(seen.get(7)?.status).to.equal('running');
          const listed = await daemon.list();
          expect(listed.map(({ identity }) => identity?.workerId)).to.include(7);
          for (const [at, files] of directories.entries()) {
            const path = join(backend.root, String(100 + at));
            const found = listed.find(({ place }) => place === path);
            if (files['worker.json'] !== undefined && found !== undefined)
              expect(found.identity !== undefined || found.damage !== undefined).to.equal(true);
            const { handle, ...intent } = sound;
            const worker = { ...intent, workerId: 100 + at };
            expect(await daemon.check(worker), String(handle?.batchID)).not.to.equal(undefined);
            expect(await daemon.find(worker)).not.to.equal(undefined);
          }
        }),
        { numRuns: 25 },
      );
    } finally {
      await backend.clean();
    }
  });
});

describe('a connection whose directory hangs', () => {
  it('delays only its own queues, and kills its workers all the same', async () => {
    const [hung, other] = [new LocalBackend(), new LocalBackend()];
    try {
      const worker = await hung.start(7);
      await other.start(8);
      // As a mount that died: whatever is asked of it never comes back.
      const { lane } = hung.host();
      let begun = 0;
      const never = new Promise<void>(() => undefined);
      const stuck = () => {
        begun++;
        return never;
      };
      for (let call = 0; call < 20; call++) lane.run('a look', stuck).catch(() => undefined);
      const [{ trouble }, { seen }] = await Promise.all([
        hung.observe((shown) => shown.trouble.length > 0),
        other.observe(({ over }) => over >= 5),
      ]);
      expect(begun).to.equal(2);
      expect(trouble[0]).to.match(/^file-timeout: .*local:.*did not come back within 10 s/);
      expect(seen.get(8)?.status).to.equal('running');
      await until('it is dead', async () => {
        await hung.sweeper.kill([worker], new AbortController().signal);
        return (await hung.living()).length === 0;
      });
    } finally {
      await hung.clean();
      await other.clean();
    }
  });
});
