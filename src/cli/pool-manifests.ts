import { type Command, Option } from 'commander';
import { stringify } from 'yaml';
import { type Applied, applyAll } from '../daemon/pool/apply.ts';
import { clusterClient } from '../daemon/pool/cluster.ts';
import { fixedWorkers, missingSecrets } from '../daemon/pool/live-pool.ts';
import { poolManifests, workerTemplate } from '../daemon/pool/manifests.ts';
import type { PoolObject } from '../daemon/pool/pool-objects.ts';
import { checkedNamespace, checkedOptions, type PoolFlags, usual } from '../daemon/pool/pool-options.ts';
import { ThresherError } from '../worker/errors.ts';
import { withCluster } from './cluster-options.ts';
import type { Environment } from './environment.ts';
import { printExact, printTable } from './output.ts';

/** Collects an option that may stand several times. */
function several(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

/** Options that say how a pool is. */
function withPoolFlags(command: Command): Command {
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

interface Options extends Omit<PoolFlags, 'workers'> {
  readonly workers?: string;
  readonly namespace: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly workerTemplate?: true;
  readonly apply?: true;
  readonly dryRun?: true;
  readonly forceConflicts?: true;
}

/** ms. Some tens of requests to one server. */
const longest = 120_000;

export function addManifests(command: Command, environment: Environment): void {
  const manifests = command
    .command('manifests')
    .description('print the objects of a pool as YAML, or apply them; never its secrets');
  withCluster(withPoolFlags(manifests))
    .option('--worker-template', 'print the template of the workers that thresher starts (k8s_yaml_file)')
    .option('--apply', 'apply the objects on the server, after a dry run')
    .option('--dry-run', 'only the dry run, which asks the server and changes nothing')
    .option('--force-conflicts', 'take fields that other programs set')
    .action(async (options: Options) => {
      const { workerTemplate: asTemplate, apply, dryRun } = options;
      if (asTemplate && (apply || dryRun))
        throw new ThresherError(
          'usage',
          '--worker-template is a file for thresher: it goes without --apply and --dry-run',
        );
      if (apply || dryRun) {
        await toCluster(options, environment);
        return;
      }
      // Without a namespace the objects go where kubectl sends them.
      const isNamed = manifests.getOptionValueSource('namespace') === 'cli';
      const checked = checkedOptions({
        ...options,
        workers: options.workers ?? usual.workers,
        namespace: isNamed ? options.namespace : undefined,
      });
      printExact(environment.out, yamlOf(asTemplate ? [workerTemplate(checked)] : poolManifests(checked)));
    });
}

async function toCluster(options: Options, environment: Environment): Promise<void> {
  const { name, dryRun = false, forceConflicts: force = false } = options;
  const namespace = checkedNamespace(options.namespace);
  // Wrong words are told before a server is asked.
  checkedOptions({ ...options, workers: options.workers ?? usual.workers });
  const client = clusterClient(options, { ...environment, environment: process.env });
  try {
    const signal = AbortSignal.timeout(longest);
    const place = { namespace, signal };
    const workers = options.workers ?? (await fixedWorkers(client, name, place)) ?? usual.workers;
    const objects = poolManifests(checkedOptions({ ...options, workers }));
    printApplied(await applyAll(client, objects, { ...place, dryRun, force }), dryRun, environment);
    for (const secret of await missingSecrets(client, objects, place))
      environment.err.write(
        `thresher: there is no Secret ${secret} in ${namespace}, so Pods wait for it; \`thresher pool init --apply\` makes it\n`,
      );
  } finally {
    await client.close();
  }
}

/** What became of objects; in a dry run, what would. */
export function printApplied(applied: readonly Applied[], dryRun: boolean, { out }: Environment): void {
  printTable(
    out,
    [
      { title: 'KIND', value: ({ kind }) => kind },
      { title: 'NAME', value: ({ name }) => name },
      { title: dryRun ? 'WOULD BE' : 'IS', value: ({ outcome }) => outcome },
    ],
    applied,
  );
}

export function yamlOf(objects: readonly PoolObject[]): string {
  return (
    objects
      // kubectl reads YAML 1.1, to which `yes` without quotes is no text.
      .map((object) => stringify(object, { version: '1.1', aliasDuplicateObjects: false, singleQuote: true }))
      .join('---\n')
  );
}
