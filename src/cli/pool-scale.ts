import { type Command, InvalidArgumentError } from 'commander';
import { clusterClient, type ClusterFlags } from '../daemon/pool/cluster.ts';
import type { PoolFlags } from '../daemon/pool/place.ts';
import { Scaling } from '../daemon/pool/scale/scaling.ts';
import { parseDuration } from '../util/duration.ts';
import { withCluster } from './cluster-options.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { poolOf, withPool } from './pool-place.ts';

interface ScaleFlags extends PoolFlags, ClusterFlags {
  readonly namespace: string;
  readonly deployment: string;
  readonly timeout: number;
}

export function addScale(command: Command, environment: Environment): void {
  const { clock, random, out } = environment;
  const scale = command
    .command('scale')
    .description(
      'have so many fixed workers; fewer: idle ones go at once, busy ones once their jobs have ended',
    )
    .argument('<workers>', 'how many', workersArgument)
    .option('--deployment <name>', 'Deployment of the fixed workers', 'htcondor-worker')
    .option('--timeout <duration>', 'how long to wait for workers that drain', timeoutArgument, 600_000);
  withPool(withCluster(scale)).action(async (wanted: number, flags: ScaleFlags) => {
    const { namespace, deployment, timeout } = flags;
    const { tools } = poolOf(flags, scale.optsWithGlobals<GlobalOptions>(), environment);
    const cluster = clusterClient(flags, { clock, random, environment: process.env });
    try {
      const onStep = (sentence: string) => out.write(`${sentence}\n`);
      const scaling = new Scaling(
        { namespace, deployment, wanted, timeout },
        { cluster, tools, clock, onStep },
      );
      await scaling.run(new AbortController().signal);
    } finally {
      await cluster.close();
    }
  });
}

/** @throws InvalidArgumentError, which becomes a message of the command line */
function workersArgument(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a number of workers, a whole number from 0.');
}

/** @throws InvalidArgumentError, which becomes a message of the command line */
function timeoutArgument(text: string): number {
  const time = parseDuration(text);
  if (time !== undefined) return time;
  throw new InvalidArgumentError('It must be a duration, such as 90s, 10m or 2h.');
}
