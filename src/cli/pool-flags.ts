import { Option, type Command } from 'commander';
import { usual } from '../daemon/pool/pool-options.ts';

/** Collects an option that may stand several times. */
function several(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

/** Options that say how a pool is. */
export function withPoolFlags(command: Command): Command {
  return command
    .option('--name <name>', 'first part of the names of all objects', usual.name)
    .option('--image <image>', 'NAME:TAG or NAME@sha256:DIGEST of the image', usual.image)
    .addOption(
      new Option('--security <mode>', 'how daemons prove who they are')
        .choices(['tokens', 'password'])
        .default(usual.security),
    )
    .option('--trust-domain <name>', 'TRUST_DOMAIN of the pool, which tokens name', usual.trustDomain)
    .option('--workers <n>', 'fixed workers (default: as in the cluster, else 1)')
    .option('--worker-cpus <n>', 'cores of each', usual.workerCpus)
    .option('--worker-memory <size>', 'memory of each for its jobs', usual.workerMemory)
    .option('--storage-class <name>', "for the spool of the schedd (default: the cluster's)")
    .option('--spool-size <size>', 'size of that spool', usual.spoolSize)
    .option('--clients <network>', 'network that may talk to the pool; several times', several, [])
    .option('--worker-egress <network>', 'network that jobs may reach; several times', several, []);
}
