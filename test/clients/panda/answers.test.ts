import { inspect } from 'node:util';
import { expect } from 'chai';
import { PandaApi } from '../../../src/clients/panda/api.ts';
import type { PandaOutcome } from '../../../src/clients/panda/outcome.ts';

const { signal } = new AbortController();
const down = { kind: 'failed', code: 'panda-database', message: 'm', maybeDone: true } as const;
const ok = (data: unknown) => ({ kind: 'ok', data }) as const;

/** The outcome where the server answers the calls for its highest id with these, one after the other. */
async function asked(
  answers: readonly PandaOutcome<unknown>[],
  types: PandaOutcome<unknown> = ok([]),
): Promise<PandaOutcome<number>> {
  const rest = [...answers];
  const call = async ({ path }: { readonly path: string }) =>
    path.endsWith('get_resource_types') ? types : (rest.shift() ?? down);
  const outcome = await new PandaApi({ call }, 'h').currentWorkerId(signal);
  expect(rest).to.deep.equal([]);
  return outcome;
}

describe('hole 7: the highest worker id that the PanDA server knows', () => {
  it('is taken where it is an id', async () => {
    for (const id of [0, 41, 4_360_000_000, 90_000_000_000])
      expect(await asked([ok(id)])).to.deep.equal(ok(id));
  });

  for (const id of [90_000_000_001, 99_999_999_999, 9_007_199_254_740_991, 2 ** 63, Infinity])
    it(`is refused and named where it leaves no room: ${id}`, async () => {
      const outcome = await asked([ok(id)]);
      expect(outcome).to.include({ kind: 'failed', code: 'panda-worker-id', maybeDone: false });
      expect(JSON.stringify(outcome)).to.include(String(id));
    });

  for (const wrong of [-5, 1.5, NaN, '41', '', null, true, {}, [], [41], undefined])
    it(`is a wrong answer, and not "none known", where it is ${inspect(wrong)}`, async () => {
      expect(await asked([ok(wrong)])).to.include({ kind: 'failed', code: 'panda-worker-id' });
    });

  it('is asked for again after one failure of the database, before it counts as none', async () => {
    expect(await asked([down, ok(41)])).to.deep.equal(ok(41));
    expect(await asked([down, down])).to.deep.equal(ok(0));
    expect(await asked([down, ok('x')])).to.include({ code: 'panda-worker-id' });
    expect(await asked([down], down)).to.deep.equal(down);
    // Types in a form that is not known are an answer, too.
    expect(await asked([down, down], ok('x'))).to.deep.equal(ok(0));
  });
});

describe('hole 8: commands of one answer of the PanDA server whose parameters are texts', () => {
  it('have no more values together than an answer: one that goes beyond is refused, and those behind it are taken', async () => {
    const list = (count: number) => `[${Array.from({ length: count }, () => '1').join(',')}]`;
    const counts = [20_000, 20_000, 9_000, 2_000, 900];
    const call = async () =>
      ok(
        counts.map((count, at) => ({
          command_id: at + 1,
          command: 'SYNC_WORKERS_KILL',
          params: list(count),
          creation_date: '2026-11-26T08:00:00',
        })),
      );
    const outcome = await new PandaApi({ call }, 'h').acquireCommands(20, signal);
    const commands = outcome.kind === 'ok' ? outcome.data : [];
    const wrong = 'its parameters, with those of the commands before it, have more than 30000 values';
    expect(commands.map((one) => one.wrong ?? typeof one.params)).to.deep.equal([
      'string',
      wrong,
      'string',
      wrong,
      'string',
    ]);
    expect(commands[1]).to.deep.equal({
      command_id: 2,
      command: 'SYNC_WORKERS_KILL',
      creation_date: '2026-11-26T08:00:00',
      wrong,
    });
  });
});

describe('hole 8: the resource types of the PanDA server', () => {
  it('are taken without what else an answer has, however deep that is', async () => {
    const type = { resource_name: 'SCORE', mincore: 1, maxcore: 1, minrampercore: 0, maxrampercore: null };
    const deep = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as unknown;
    const call = async () => ok([{ ...type, more: deep }]);
    const outcome = await new PandaApi({ call }, 'h').resourceTypes(signal);
    expect(outcome).to.deep.equal(ok([type]));
  });
});
