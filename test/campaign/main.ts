/** `npm run campaign -- local|kubernetes|htcondor --seed N --for 10m`: random faults against a whole factory. */
import { parseArgs } from 'node:util';
import { parseDuration } from '../../src/util/duration.ts';
import type { Arena } from './arena.ts';
import { campaign } from './campaign.ts';

const arenas: Readonly<Record<string, () => Promise<Arena>>> = {
  local: async () => new (await import('./local.ts')).LocalArena(),
  kubernetes: async () => (await import('./kubernetes.ts')).KubernetesArena.open(),
  htcondor: async () => (await import('./htcondor.ts')).HTCondorArena.open(),
};

const usage = `usage: npm run campaign -- ${Object.keys(arenas).join(' | ')} [--seed N] [--for DURATION]

Starts a factory on a real backend, strikes it with random faults and watches the backend meanwhile.
Exits with 1 when a promise was broken, and says which. --seed repeats a sequence of faults; --for is 10m by default.
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    for: { type: 'string', default: '10m' },
  },
});
const [name = '', ...more] = positionals;
const open = arenas[name];
const seed = Number(values.seed);
const forMs = parseDuration(values.for);
if (open === undefined || more.length > 0 || !Number.isInteger(seed) || forMs === undefined) {
  process.stderr.write(usage);
  process.exit(2);
}
const say = (line: string) => process.stdout.write(`${line}\n`);
say(`${name}, seed ${seed}, for ${values.for}`);
await using arena = await open();
const report = await campaign(arena, { seed, forMs, say });
for (const [fault, times] of report.faults) say(`${String(times).padStart(5)} ${fault}`);
say(
  `${report.kills} kill -9, ${report.workers} workers, ${report.looks} looks, ${report.broken.length} broken promises`,
);
for (const line of report.broken) say(line);
process.exitCode = report.broken.length === 0 ? 0 : 1;
