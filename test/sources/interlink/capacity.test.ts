import { expect } from 'chai';
import { NodeCapacity, type Learned } from '../../../src/sources/interlink/capacity/node-capacity.ts';
import { condorCapacity, SlotSums } from '../../../src/sources/interlink/capacity/condor-capacity.ts';
import { learnedFrom, scriptCapacity } from '../../../src/sources/interlink/capacity/script-capacity.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const quiet = { debug: () => undefined, info: () => undefined, error: () => undefined };
const { signal } = new AbortController();

describe('A11: the resources of a pool for the node', () => {
  it('are those of all slots, and name nothing of which there is none', () => {
    const ads = [
      { TotalSlotCpus: 8, TotalSlotMemory: 16_000, TotalSlotGPUs: 2 },
      { TotalSlotCpus: 4, TotalSlotMemory: 8000 },
    ];
    // interLink takes nothing at all of an answer with a number here.
    const accelerators = [{ resourceType: 'nvidia.com/gpu', available: '2' }];
    const sumOf = (...texts: string[]) => {
      const sums = new SlotSums();
      for (const text of texts) sums.push(text);
      return sums.resources();
    };
    const whole = JSON.stringify(ads);
    const expected = { cpu: '12', memory: '24000Mi', accelerators };
    for (const at of [0, 20, 100]) expect(sumOf(whole.slice(0, at), whole.slice(at))).to.deep.equal(expected);
    expect(sumOf('')).to.deep.equal({});
    expect(sumOf('[{"TotalSlotCpus":"x"},{"TotalSlotCpus":1e308,"TotalSlotMemory":-5}]')).to.deep.equal({});
    for (const torn of ['[{', '[{"TotalSlotCpus":8},']) expect(() => sumOf(torn)).to.throw(SyntaxError);
  });

  it('change with the pool, stay as they were while it gives no answer, and each reason is logged once', async () => {
    const answers: (Learned | Error)[] = [
      { resources: { cpu: '8' } },
      new Error('no collector'),
      new Error('no collector'),
      { resources: { cpu: '16' }, totals: 'Total 2' },
    ];
    const warned: unknown[] = [];
    const log = { ...quiet, warn: (_: string, facts: unknown) => warned.push(facts) };
    const node = new NodeCapacity(
      async () => {
        const next = answers.shift();
        if (next instanceof Error || next === undefined) throw next ?? new Error('asked too often');
        return next;
      },
      { clock: systemClock, log },
    );
    expect(node.known).to.deep.equal({});
    await node.ask(signal);
    expect(node.known).to.deep.equal({ resources: { cpu: '8' } });
    await node.ask(signal);
    await node.ask(signal);
    expect(node.known).to.deep.equal({ resources: { cpu: '8' } });
    expect(node.trouble).to.equal('no collector');
    expect(warned).to.deep.equal([{ why: 'no collector' }]);
    await node.ask(signal);
    expect(node.known).to.deep.equal({ resources: { cpu: '16' } });
    expect([node.trouble, node.totals]).to.deep.equal([undefined, 'Total 2']);
  });
});

describe("A11: the operator's script for the resources of the node", () => {
  it('prints what interLink takes, in numbers or quantities', () => {
    const printed = {
      status: 'ok',
      resources: {
        cpu: 48,
        memory: '192000Mi',
        pods: '0',
        accelerators: [{ resourceType: 'nvidia.com/gpu', available: 8 }],
      },
      taints: [{ key: 'drain', effect: 'NoSchedule' }],
    };
    expect(learnedFrom(JSON.stringify(printed), 'it')).to.deep.equal({
      resources: {
        cpu: '48',
        memory: '192000Mi',
        pods: '0',
        accelerators: [{ resourceType: 'nvidia.com/gpu', available: '8' }],
      },
      taints: [{ key: 'drain', effect: 'NoSchedule' }],
      warnings: [],
    });
  });

  for (const [printed, left, warning] of [
    ['{"resources":{"cpu":"many","memory":"1Gi"}}', { memory: '1Gi' }, 'resources.cpu is "many"'],
    ['{"resources":{"cpu":"-1"}}', {}, 'resources.cpu is "-1"'],
    [
      '{"resources":{"accelerators":[{"resourceType":"a"}]}}',
      {},
      'resources.accelerators[0] needs a resourceType',
    ],
    ['{"resources":[]}', undefined, 'resources is no object'],
    ['{"taints":[{"key":"a","effect":"Go"}]}', undefined, 'taints must be a list'],
    ['{}', undefined, undefined],
  ] as const)
    it(`leaves out the unknown of ${printed}`, () => {
      const { resources, taints, warnings = [] } = learnedFrom(printed, 'it');
      expect(resources).to.deep.equal(left);
      expect(taints).to.equal(undefined);
      if (warning === undefined) expect(warnings).to.deep.equal([]);
      else expect(warnings[0]).to.include(warning);
    });

  for (const [command, message] of [
    ['echo hello', 'printed no JSON object; it must print JSON such as'],
    ['echo no schedd >&2; exit 3', 'ended with 3: no schedd'],
    ['kill -9 $$', 'ended with SIGKILL'],
    ['sleep 60', 'did not end within 0.3 s and was killed'],
  ] as const)
    it(`says why there is nothing: ${command}`, async () => {
      const ask = scriptCapacity({ ...where(), command, timeLimit: command === 'sleep 60' ? 300 : 20_000 });
      const thrown = await ask(signal).catch((error: unknown) => String(error));
      expect(thrown).to.include(message);
    });

  it('hole 3: says a token again that its line has, and no error shows it', async () => {
    const token = 'k3J-capacityToken-sUper-77';
    const command = `set -- --api-token ${token}; echo "$2 is not valid" >&2; exit 1`;
    const ask = scriptCapacity({ ...where(), command, timeLimit: 20_000 });
    const thrown = await ask(signal).catch((error: unknown) => String(error));
    expect(thrown).to.equal('Error: capacityScript ended with 1: (hidden) is not valid');
  });

  it('runs in the directory that it is given', async () => {
    const there = where();
    const ask = scriptCapacity({
      ...there,
      command: 'printf \'{"resources":{"pods":"%s"}}\' "$(pwd | wc -c)"',
      timeLimit: 20_000,
    });
    const pods = String(there.directory.length + 1);
    expect((await ask(signal)).resources).to.deep.equal({ pods });
  });
});

function where() {
  const environment = { PATH: process.env['PATH'] ?? '' };
  return { directory: temporaryDirectory(), environment, clock: systemClock };
}

describe('hole 3: the node as everyone reads it who reaches the sidecar', () => {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwaWxvdCJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg';
  const own = 'k7Jp2Lq9Xv4Bn8Wz3Rt6Yd1Fs5Hg0Mc';
  const endOf = (stdout: string) => ({
    stdout,
    stderr: '',
    status: 0,
    endedBy: null,
    killed: undefined,
    startedAt: 0,
  });
  const totalsOf = async (stdout: string) => {
    const tools = { succeed: async () => endOf(stdout) } as unknown as Parameters<typeof condorCapacity>[0];
    return (await condorCapacity(tools)(signal)).totals ?? '';
  };

  it('shows nothing secret of the words of a collector, and not all of a text without end', async () => {
    rememberSecret(own);
    const table = '             Total Owner\nX86_64/LINUX     1     0\n\n       Total     1     0';
    expect(await totalsOf(`\n${table}\n`)).to.equal(table.trim());
    const told = await totalsOf(
      `${table}\n${jwt} password=geheim77 ${own} ${Buffer.from(own).toString('base64')}`,
    );
    expect(told).to.equal(`${table.trim()}\n(hidden) password=(hidden) (hidden) (hidden)`);
    expect(await totalsOf('LINUX 1 '.repeat(10_000))).to.have.length(2003);
  });

  it('takes no secret of a script as a name of it, and says so', () => {
    rememberSecret(own);
    for (const secret of [jwt, own, Buffer.from(own).toString('base64'), 'x'.repeat(5000)]) {
      const taint = { key: 'site.org/batch', value: 'x', effect: 'NoSchedule' };
      for (const wrong of [
        { taints: [taint, { ...taint, key: secret }] },
        { taints: [{ ...taint, value: secret }] },
        { resources: { accelerators: [{ resourceType: secret, available: 1 }] } },
        { resources: { cpu: secret } },
      ]) {
        const learned = learnedFrom(JSON.stringify(wrong), 'capacityScript');
        expect(learned.warnings).to.have.length(1);
        expect(JSON.stringify(learned)).to.have.length.below(500);
        expect(JSON.stringify(learned)).to.not.contain(secret);
      }
    }
    const ordinary = [
      { key: 'token.site.org/secret-key', value: 'token', effect: 'NoExecute' },
      { key: 'virtual-node.interlink/no-schedule', effect: 'NoSchedule' },
    ];
    const accelerators = [{ resourceType: 'nvidia.com/mig-1g.5gb', available: '7' }];
    expect(learnedFrom(JSON.stringify({ taints: ordinary, resources: { accelerators } }), 'x')).to.deep.equal(
      {
        taints: ordinary,
        resources: { accelerators },
        warnings: [],
      },
    );
  });
});
