import { hostname } from 'node:os';
import type { Command } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { retentionAt } from '../agents/sweeping/pruner-agent.ts';
import { takeLock } from '../daemon/lock.ts';
import type { StateDir } from '../daemon/state-dir.ts';
import { readVersion } from '../util/version.ts';
import type { Pruned } from '../store/retention.ts';
import { ThresherError } from '../worker/errors.ts';
import { finalStatuses } from '../worker/status.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';

interface PruneOptions {
  readonly dryRun?: true;
  readonly vacuum?: true;
}

/** Between two transactions, ms: a daemon that waits to write gets in. */
const breath = 20;

export function addDbPrune(db: Command, environment: Environment): void {
  db.command('prune')
    .description('delete rows of swept workers whose keep time is over, as the daemon does by itself')
    .option('--dry-run', 'only show the rows to delete')
    .option('--vacuum', 'give the space back to the disk; only while no daemon runs')
    .action(async (options: PruneOptions, command: Command) => {
      if (options.dryRun && options.vacuum) {
        throw new ThresherError('usage', '--vacuum changes the database: it does not go with --dry-run');
      }
      await prune(command.optsWithGlobals<GlobalOptions>(), options, environment);
    });
}

async function prune(global: GlobalOptions, { dryRun, vacuum }: PruneOptions, environment: Environment) {
  const { out, clock } = environment;
  await withStore(global, dryRun ? 'read' : 'write', async ({ store, dir, settings }) => {
    const lock = vacuum ? lockForVacuum(dir, environment) : undefined;
    try {
      // Only a running daemon knows which configurations it uses, so the pruner leaves them to it. A daemon that starts
      // meanwhile records its own again, and those are not old.
      const current =
        lock === undefined && (await daemonOn(store, dir)) !== undefined ? undefined : new Set<number>();
      const retention = retentionAt(clock.now(), settings.values, current);
      if (dryRun) {
        out.write(`would be deleted: ${describe(await store.retention.due(retention))}\n`);
        return;
      }
      const pruned = await store.retention.prune(retention, async () => {
        await clock.sleep(breath);
        return true;
      });
      out.write(`deleted: ${describe(pruned)}\n`);
      if (vacuum) await store.retention.vacuum();
    } catch (error) {
      throw store.errorOf(error);
    } finally {
      lock?.release();
    }
  });
}

/** Keeps daemons from starting meanwhile: their first write would fail after a while. */
function lockForVacuum(dir: StateDir, { clock }: Environment) {
  try {
    const what = 'thresher db prune --vacuum';
    const holder = {
      what,
      pid: process.pid,
      host: hostname(),
      startedAt: clock.now(),
      version: readVersion(),
    };
    return takeLock(dir, holder);
  } catch (error) {
    if (!(error instanceof ThresherError) || error.code !== 'already-running') throw error;
    const message = `--vacuum needs the database for itself, but ${error.message}: stop it, or prune without --vacuum`;
    throw new ThresherError('already-running', message, error.facts, { cause: error });
  }
}

function describe({ workers, configs, commands }: Pruned): string {
  const counts = finalStatuses.map((status) => `${workers[status]} ${status}`).join(', ');
  return `workers: ${counts}; unused configurations: ${configs}; answered commands: ${commands}`;
}
