import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { marks, jobOf } from '../../../src/plugins/htcondor/marks.ts';
import { LeftOutputs } from '../../../src/plugins/htcondor/output/left-outputs.ts';
import { HTCondorOutputs } from '../../../src/plugins/htcondor/output/outputs.ts';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { FileLane } from '../../../src/util/file-lane.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('outputs that lie in the spool of a schedd', () => {
  const { signal } = new AbortController();
  let directory: string;
  let left: LeftOutputs;
  /** Jobs of each fetch. */
  let fetched: number[][];
  /** What a fetch writes of each output. */
  let isCut: boolean;

  beforeEach(async () => {
    directory = join(temporaryDirectory(), 'outputs');
    mkdirSync(directory);
    [fetched, isCut] = [[], false];
    left = await madeFor(1, 2, 3);
  });

  /** Those of a daemon that begins. */
  const files = () => new FileLane({ clock: systemClock, name: 'test', atOnce: 2, timeoutMs: 10_000 });

  async function madeFor(...ids: number[]): Promise<LeftOutputs> {
    const made = new LeftOutputs(join(directory, 'S'), files());
    await made.make(ids.map((workerId) => ({ workerId, leaves: true })));
    return made;
  }

  /** @param outputs of the daemon that asks */
  function reader(outputs = left): HTCondorOutputs {
    const ids = [1, 2, 3];
    const ads = ids.map((id) => ({
      ClusterId: id,
      ProcId: 0,
      JobStatus: 4,
      StageInFinish: 9,
      [marks.worker]: `${id}`,
    }));
    const client = {
      queueAs: async (_: unknown, constraint: string) =>
        ads.filter(({ ClusterId }) => constraint.includes(`"${ClusterId}"`)).map((ad) => jobOf(ad, true)),
      transferData: async (constraint: string) => {
        const some = ids.filter((id) => constraint.includes(`ClusterId == ${id}`));
        fetched.push(some);
        for (const id of some) writeFileSync(outputs.pathOf(id), isCut ? 'ha' : 'half and half');
        if (isCut) throw new Error('it was ended');
      },
    };
    const schedd = { client, outputs, mine: 'true' } as unknown as HTCondorSchedd;
    return new HTCondorOutputs({
      schedd,
      daemon: { clock: systemClock },
      options: () => ({ heldTimeout: 1 }),
    });
  }

  async function read(from: HTCondorOutputs, id: number): Promise<string> {
    const output = await from.open(workerOf(id), signal);
    if (output === undefined) return '';
    await using all = output;
    return await text(all.read());
  }
  const failure = async (from: HTCondorOutputs, id: number) =>
    read(from, id).catch((error: unknown) => (error as Error).message);

  it('are fetched once', async () => {
    const from = reader();
    expect(await Promise.all([1, 2].map((id) => read(from, id)))).to.deep.equal([
      'half and half',
      'half and half',
    ]);
    expect(await read(from, 1)).to.equal('half and half');
    expect(fetched.flat().sort()).to.deep.equal([1, 2]);
  });

  it('hole 6: are fetched once more, one by one, where a fetch was cut off, also after a restart', async () => {
    isCut = true;
    const ask = reader();
    expect(await failure(ask, 1)).to.equal('it was ended');
    await left
      .bring([2, 3], async () => {
        for (const id of [2, 3]) writeFileSync(left.pathOf(id), 'ha');
        throw new Error('it was ended');
      })
      .catch(() => undefined);
    [isCut, fetched] = [false, []];
    const next = reader(await madeFor());
    expect(await Promise.all([1, 2, 3].map((id) => read(next, id)))).to.deep.equal(
      Array.from({ length: 3 }, () => 'half and half'),
    );
    expect(fetched.sort()).to.deep.equal([[1], [2], [3]]);
    expect(await read(next, 1)).to.equal('half and half');
    expect(fetched).to.have.length(3);
  });

  it('hole 6: that a fetch of a log overwrites are not whole before it is done', async () => {
    expect(await read(reader(), 1)).to.equal('half and half');
    const done = Promise.withResolvers<undefined>();
    const bringing = left.bring([1], async () => done.promise);
    const other = left.bring([1], async () => Promise.reject(new Error('cut')));
    await other.catch(() => undefined);
    expect(await left.isWhole(1)).to.equal(false);
    done.resolve(undefined);
    await bringing;
    expect(await left.isWhole(1)).to.equal(true);
    await left.remove(1);
    expect(await left.bytesOf(1)).to.equal(undefined);
  });
});
