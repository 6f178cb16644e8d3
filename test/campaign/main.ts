/**
 * `npm run campaign -- local|kubernetes|htcondor|htcjob|panda --seed N --for 10m`: random faults against a whole factory.
 * `npm run campaign -- htcondor-idle --seed N --rounds 500`: random changes of a pool that grows and shrinks by its demand.
 * `npm run campaign -- standby | members --seed N --rounds 200`: random kills, pauses and cuts of daemons on one database.
 */
import { parseArgs } from 'node:util';
import { parseDuration } from '../../src/util/duration.ts';
import type { Arena } from './arena.ts';
import { campaign } from './campaign.ts';
import { plantedIn, plantNames } from './plant.ts';
import type { Division } from './daemons/division.ts';
import { PoolBed } from './pool/bed.ts';
import { quickBed, usualCaps, usualPace } from './pool/promises.ts';
import { playRounds } from './pool/rounds.ts';

const arenas: Readonly<Record<string, () => Promise<Arena>>> = {
  local: async () => new (await import('./local.ts')).LocalArena(),
  kubernetes: async () => (await import('./kubernetes.ts')).KubernetesArena.open(),
  htcondor: async () => (await import('./htcondor.ts')).HTCondorArena.open(),
  panda: async () => (await import('./panda.ts')).PandaArena.open(),
  htcjob: async () => (await import('./htcjob.ts')).HtcJobArena.open(),
};

/** Daemons on one database. */
const divisions = {
  standby: async () => (await import('./daemons/standby.ts')).standby,
  members: async () => (await import('./daemons/members.ts')).members,
};

const usage = `usage: npm run campaign -- ${Object.keys(arenas).join(' | ')} [--seed N] [--for DURATION]
       npm run campaign -- htcondor-idle [--seed N] [--rounds N]
       npm run campaign -- standby | members [--seed N] [--rounds N] [--plant ${plantNames.join(' | ')}]

Starts a factory on a real backend, strikes it with random faults and watches the backend meanwhile.
Exits with 1 when a promise was broken, and says which. --seed repeats a sequence of faults; --for is 10m by default, --rounds 500,
and 200 of standby and members. --plant breaks the program, which the campaign should then find out.
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    for: { type: 'string', default: '10m' },
    rounds: { type: 'string' },
    plant: { type: 'string' },
  },
});
const [name = '', ...more] = positionals;
const seed = Number(values.seed);
const division = Object.hasOwn(divisions, name) ? divisions[name as keyof typeof divisions] : undefined;
const rounds = Number(values.rounds ?? (division === undefined ? 500 : 200));
const plant = plantNames.find((one) => one === values.plant);
const forMs = parseDuration(values.for);
const say = (line: string) => process.stdout.write(`${line}\n`);

/** What happened how often, and the broken promises. */
function tell(happened: ReadonlyMap<string, number>, summary: string, broken: readonly string[]): void {
  for (const [what, times] of happened) say(`${String(times).padStart(5)} ${what}`);
  say(`${summary}, ${broken.length} broken promises`);
  for (const line of broken) say(line);
  process.exitCode = broken.length === 0 ? 0 : 1;
}

async function attack(open: () => Promise<Arena>, longest: number): Promise<void> {
  say(`${name}, seed ${seed}, for ${values.for}`);
  await using arena = await open();
  const { faults, kills, workers, looks, broken } = await campaign(arena, { seed, forMs: longest, say });
  tell(faults, `${kills} kill -9, ${workers} workers, ${looks} looks`, broken);
}

async function changePool(): Promise<void> {
  say(`${name}, seed ${seed}, ${rounds} rounds`);
  await using bed = await PoolBed.start(quickBed);
  const report = await playRounds(bed, { seed, rounds, caps: usualCaps, pace: usualPace, say });
  const { made, inVain, jobs, workers, looks, broken } = report;
  tell(made, `${inVain} rounds in vain, ${jobs} jobs, ${workers} workers, ${looks} looks`, broken);
}

async function strikeDaemons(find: () => Promise<Division>): Promise<void> {
  say(
    `${name}, seed ${seed}, ${rounds} rounds${plant === undefined ? '' : `, with the planted fault ${plant}`}`,
  );
  const { Bed } = await import('./daemons/bed.ts');
  const { playRounds: strikeAgain } = await import('./daemons/rounds.ts');
  await using bed = await Bed.open(await find(), plant === undefined ? {} : plantedIn(plant));
  const report = await strikeAgain(bed, { seed, rounds, say });
  const { made, kills, moves, ends, workers, events, acts, slowest, broken } = report;
  for (const [code, times] of ends) say(`${String(times).padStart(5)} daemons ended by themselves: ${code}`);
  const counts = `${kills} kill -9, ${moves} ${bed.division.moves}, ${workers} workers, ${events} events, ${acts} changes of workers`;
  tell(made, `${counts}; at most ${(slowest / 1000).toFixed(1)} s until it worked again`, broken);
}

const open = arenas[name];
const others: Readonly<Record<string, () => Promise<void>>> = {
  'htcondor-idle': changePool,
  ...(division && { [name]: () => strikeDaemons(division) }),
};
const run = open === undefined ? others[name] : () => attack(open, forMs ?? 0);
const isWrong = more.length > 0 || !Number.isInteger(seed) || !Number.isInteger(rounds) || rounds < 1;
const isPlantWrong = values.plant !== undefined && (plant === undefined || division === undefined);
if (isWrong || isPlantWrong || forMs === undefined || run === undefined) {
  process.stderr.write(usage);
  process.exit(2);
}
await run();
