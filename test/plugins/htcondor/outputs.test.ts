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
import { anyOwner, sameQueue } from '../../support/condor-jobs.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('outputs that lie in the spool of a schedd', () => {
  const { signal } = new AbortController();
  let directory: string;
  let left: LeftOutputs;
  /** Jobs of each fetch. */
  let fetched: number[][];
  /** What a fetch writes of each output. */
  let isCut: boolean;
  /** Whether the queue has no job. */
  let isGone: boolean;
  /** Whether the schedd has another queue than before. */
  let isOther: boolean;

  beforeEach(async () => {
    directory = join(temporaryDirectory(), 'outputs');
    mkdirSync(directory);
    [fetched, isCut, isGone, isOther] = [[], false, false, false];
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
        (isGone ? [] : ads)
          .filter(({ ClusterId }) => constraint.includes(`"${ClusterId}"`))
          .map((ad) => jobOf(ad, true)),
      transferData: async (constraint: string) => {
        const some = ids.filter((id) => constraint.includes(`ClusterId == ${id}`));
        fetched.push(some);
        for (const id of some) writeFileSync(outputs.pathOf(id), isCut ? 'ha' : 'half and half');
        if (isCut) throw new Error('it was ended');
      },
    };
    const schedd = {
      client,
      outputs,
      mine: 'true',
      owners: anyOwner,
      jobQueue: {
        ...sameQueue,
        require: async () => (isOther ? Promise.reject(new Error('another queue')) : undefined),
      },
    } as unknown as HTCondorSchedd;
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

  it('hole 3: are not given up where the schedd has another queue than before', async () => {
    [isGone, isOther] = [true, true];
    expect(await failure(reader(), 1)).to.equal('another queue');
    isOther = false;
    expect(await read(reader(), 1)).to.equal('');
  });

  it('hole 6: are fetched once more, one by one, where a fetch was cut off, also after a restart', async () => {
    isCut = true;
    const ask = reader();
    expect(await failure(ask, 1)).to.equal('it was ended');
    await left
      .bring(
        [2, 3],
        async () => {
          for (const id of [2, 3]) writeFileSync(left.pathOf(id), 'ha');
          throw new Error('it was ended');
        },
        signal,
      )
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

  it('hole 6: are written by one fetch at a time, and are not whole after one that was cut off', async () => {
    const at: string[] = [];
    const done = Promise.withResolvers<undefined>();
    const first = left.bring(
      [1, 2],
      async () => {
        at.push('first');
        await done.promise;
        at.push('its end');
      },
      signal,
    );
    await until('it has begun', () => at.length > 0);
    const cut = left.bring(
      [1],
      async () => {
        at.push('cut');
        throw new Error('cut');
      },
      signal,
    );
    const reading = read(reader(), 2);
    const over = new AbortController();
    const given = left.bring([2], async () => void at.push('never'), over.signal);
    over.abort(new Error('given up'));
    expect(await given.catch((error: unknown) => (error as Error).message)).to.equal('given up');
    writeFileSync(left.pathOf(2), 'half and half');
    done.resolve(undefined);
    await first;
    expect(await cut.catch((error: unknown) => (error as Error).message)).to.equal('cut');
    expect([await left.isWhole(1), await left.isWhole(2)]).to.deep.equal([false, true]);
    expect(await reading, 'what came meanwhile is not fetched again').to.equal('half and half');
    expect(fetched).to.deep.equal([]);
    expect(at).to.deep.equal(['first', 'its end', 'cut']);
    await left.remove(1);
    expect(await left.bytesOf(1)).to.equal(undefined);
  });

  it('hole 6: that were cut off are not handed out where the job has left the queue', async () => {
    isCut = true;
    expect(await failure(reader(), 1)).to.equal('it was ended');
    isGone = true;
    expect(await failure(reader(), 1)).to.match(/^the output of worker 1 was cut off when it was fetched/);
  });
});
