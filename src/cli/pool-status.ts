import type { Command } from 'commander';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { PoolFlags } from '../daemon/pool/place.ts';
import { idleSource } from '../daemon/pool/unservable.ts';
import {
  absentText,
  absentWorkers,
  type JoinedWorker,
  lackingIn,
  poolAds,
  type PoolAd,
  type PoolSummary,
  summaryOf,
} from '../daemon/pool/pool-status.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';
import { poolOf, withPool } from './pool-place.ts';

interface StatusFlags extends PoolFlags {
  readonly output: OutputFormat;
}

export function addPoolStatus(command: Command, environment: Environment): void {
  const { clock, out } = environment;
  const status = command
    .command('status')
    .description('show all daemons of a pool, its slots, and which workers of thresher have joined');
  withPool(status)
    .addOption(outputOption())
    .action(async (flags: StatusFlags) => {
      const options = status.optsWithGlobals<GlobalOptions>();
      const { tools, settings } = poolOf(flags, options, environment);
      const ads = await poolAds(tools, AbortSignal.timeout(60_000));
      if (flags.output === 'json') {
        printJson(out, ads);
        return;
      }
      printAds(ads, environment);
      const summary = summaryOf(ads);
      printSummary(summary, environment);
      if (settings === undefined) return;
      const absent = absentWorkers(await livingWorkers(settings), summary.workers, clock.now());
      if (absent.length === 0) return;
      const which = absent.map(absentText).join(', ');
      out.write(
        `running, and not in the pool: ${which}; see \`thresher worker ID\` and \`thresher logs ID\` of those that do not join\n`,
      );
    });
}

/** The same columns as those of condor_status -any. */
function printAds(ads: readonly PoolAd[], { out }: Environment): void {
  printTable(
    out,
    [
      { title: 'MyType', value: ({ type }) => type },
      { title: 'TargetType', value: ({ targetType }) => targetType },
      { title: 'Name', value: ({ name }) => name },
    ],
    ads,
  );
}

function printSummary(summary: PoolSummary, { out }: Environment): void {
  const { counts, slots, workers } = summary;
  const states = [...slots].sort(([one], [other]) => one.localeCompare(other));
  const daemons = (['collector', 'negotiator', 'schedd', 'startd'] as const).map((kind) =>
    counted(counts[kind], kind),
  );
  const total = states.reduce((sum, [, count]) => sum + count, 0);
  const byState = states.map(([state, count]) => `${count} ${state}`).join(', ');
  out.write(`\n${daemons.join(', ')}; ${counted(total, 'slot')}${byState === '' ? '' : `: ${byState}`}\n`);
  for (const lack of lackingIn(summary)) out.write(`${lack}\n`);
  if (workers.length === 0) return;
  out.write('\n');
  printTable(
    out,
    [
      { title: 'WORKERID', value: ({ workerId }: JoinedWorker) => workerId ?? '' },
      { title: 'QUEUE', value: ({ queue }) => queue },
      { title: 'SHAPE', value: ({ shape }) => shape },
      { title: 'BUSY CORES', value: ({ busyCores, cores }) => `${busyCores}/${cores}` },
      { title: 'DRAINS', value: ({ draining }) => (draining ? 'yes' : '') },
      { title: 'MACHINE', value: ({ machine }) => machine },
    ],
    workers,
  );
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Workers that live by the daemon's database. Without a database there is nothing to compare. */
async function livingWorkers(settings: LoadedSettings) {
  try {
    const { store } = await openBesideDaemon(settings, 'read');
    try {
      return await store.origins.living(idleSource);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof ThresherError) return [];
    throw error;
  }
}
