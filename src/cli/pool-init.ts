import { resolve } from 'node:path';
import type { Command } from 'commander';
import { applyAll } from '../daemon/pool/apply.ts';
import { clusterClient } from '../daemon/pool/cluster.ts';
import {
  isInUse,
  makePoolFiles,
  type PoolFile,
  readPoolFiles,
  renewTokens,
  type Security,
} from '../daemon/pool/pool-files.ts';
import { checkedDomain, checkedName, checkedNamespace, usual } from '../daemon/pool/pool-options.ts';
import { secretsOf } from '../daemon/pool/pool-secrets.ts';
import { trustDomainIn } from '../daemon/pool/token.ts';
import { parseDuration } from '../util/duration.ts';
import { ThresherError } from '../worker/errors.ts';
import { withCluster } from './cluster-options.ts';
import type { Environment } from './environment.ts';
import { printExact, printTable } from './output.ts';
import { printApplied, yamlOf } from './pool-manifests.ts';

interface Options {
  readonly directory: string;
  readonly poolPassword?: true;
  readonly trustDomain: string;
  readonly lifetime: string;
  readonly renew?: true;
  readonly force?: true;
  readonly name: string;
  readonly apply?: true;
  readonly dryRun?: true;
  readonly forceConflicts?: true;
  readonly printSecrets?: true;
  readonly namespace: string;
  readonly kubeconfig?: string;
  readonly context?: string;
}

type Files = ReturnType<typeof readPoolFiles>;

/** ms */
const longest = 60_000;

/** s, as of other tokens. */
const longestLifetime = 100 * 365 * 86_400;

export function addInit(command: Command, environment: Environment): void {
  const init = command
    .command('init')
    .description('make the signing key and the tokens of a pool, or its password, and its Secrets');
  withCluster(init)
    .option('--directory <dir>', 'where to put them', 'htcondor-pool')
    .option('--pool-password', 'a password for all daemons, instead of tokens')
    .option('--trust-domain <name>', 'TRUST_DOMAIN of the pool, which tokens name', usual.trustDomain)
    .option('--lifetime <duration>', 'how long the tokens are good, such as 30d', '365d')
    .option('--renew', 'make new tokens by the key or password that is there')
    .option('--force', 'make new ones although there are some, which are moved aside')
    .option('--name <name>', 'first part of the names of the Secrets', usual.name)
    .option('--apply', 'apply the Secrets on the server, after a dry run; files that are there are used')
    .option('--dry-run', 'with --apply: only the dry run, which changes nothing in the cluster')
    .option('--force-conflicts', 'with --apply: take fields that other programs set')
    .option('--print-secrets', 'print the Secrets as YAML: whoever sees them owns the pool')
    .action(async (options: Options) => {
      const { apply, printSecrets, dryRun, forceConflicts } = options;
      if ((dryRun || forceConflicts) && !apply)
        throw new ThresherError('usage', '--dry-run and --force-conflicts go with --apply');
      if (apply && printSecrets)
        throw new ThresherError('usage', '--print-secrets prints what --apply sends: choose one');
      if (options.renew && options.force)
        throw new ThresherError('usage', '--renew keeps the key, and --force makes a new one: choose one');
      const name = checkedName(options.name);
      const namespace = checkedNamespace(options.namespace);
      const isGiven = (option: 'trustDomain' | 'lifetime') => init.getOptionValueSource(option) === 'cli';
      const files = filesFor(options, isGiven, environment);
      if (printSecrets) {
        const isNamed = init.getOptionValueSource('namespace') === 'cli';
        printExact(environment.out, yamlOf(secretsOf(files, { name, ...(isNamed && { namespace }) })));
      }
      if (apply) await toCluster(files, options, environment);
    });
}

/** Files that are there are taken where they have a use, and else none is changed. */
function filesFor(
  options: Options,
  isGiven: (option: 'trustDomain' | 'lifetime') => boolean,
  { clock, out, err }: Environment,
): Files {
  const { poolPassword, renew, force = false, apply, printSecrets } = options;
  const directory = resolve(options.directory);
  const security: Security = poolPassword ? 'password' : 'tokens';
  const now = clock.now();
  const lifetime = secondsOf(options.lifetime);
  const trustDomain = checkedDomain(options.trustDomain);
  // YAML stands alone on the standard output.
  const told = printSecrets ? err : out;
  const tell = (files: readonly PoolFile[]) => {
    printFiles(directory, files, told);
    const end = new Date(now + lifetime * 1000).toISOString().slice(0, 10);
    told.write(`the tokens are good until ${end}; \`thresher pool init --renew\` makes new ones in time\n`);
  };
  if (renew || (!force && (apply || printSecrets) && isInUse(directory))) {
    const found = readPoolFiles(directory);
    requireSecurity(security, found.security, directory);
    const domain = trustDomainIn(directory);
    if (isGiven('trustDomain') && trustDomain !== domain) {
      const message = `the tokens of ${directory} name the TRUST_DOMAIN ${domain}, and --trust-domain does not change that: leave it out, or name another --directory`;
      throw new ThresherError('pool-exists', message, { directory });
    }
    if (renew) {
      const renewed = renewTokens({ directory, trustDomain: domain, lifetime, now });
      tell(renewed.files);
      told.write('Pods that run have the old tokens until they restart\n');
      return renewed;
    }
    if (!isGiven('lifetime')) return found;
    const message = `the tokens of ${directory} are there already, and --lifetime does not change them: leave it out, or make new ones by --renew`;
    throw new ThresherError('pool-exists', message, { directory });
  }
  const { files, movedTo } = makePoolFiles({ directory, security, force, trustDomain, lifetime, now });
  if (movedTo !== undefined)
    told.write(`the files of before are in ${movedTo}; Pods that run have the old ones until they restart\n`);
  tell(files);
  return { security, files };
}

/** @throws ThresherError `pool-exists` */
function requireSecurity(wanted: Security, found: Security, directory: string): void {
  if (wanted === found) return;
  const has = found === 'password' ? 'a pool password' : 'a signing key';
  const message = `${directory} has ${has}: ${wanted === 'password' ? 'leave --pool-password out' : 'write --pool-password'}, or name another --directory`;
  throw new ThresherError('pool-exists', message, { directory });
}

async function toCluster(files: Files, options: Options, environment: Environment): Promise<void> {
  const { name, namespace, dryRun = false, forceConflicts: force = false } = options;
  const client = clusterClient(options, { ...environment, environment: process.env });
  try {
    const signal = AbortSignal.timeout(longest);
    const secrets = secretsOf(files, { name, namespace });
    printApplied(await applyAll(client, secrets, { namespace, dryRun, force, signal }), dryRun, environment);
  } finally {
    await client.close();
  }
}

function printFiles(directory: string, files: readonly PoolFile[], out: NodeJS.WritableStream): void {
  printTable(
    out,
    [
      { title: 'FILE', value: ({ path }) => `${directory}/${path}` },
      { title: 'PURPOSE', value: ({ purpose }) => purpose },
    ],
    files,
  );
}

/** @throws ThresherError `pool-option` */
function secondsOf(duration: string): number {
  const seconds = Math.floor((parseDuration(duration) ?? 0) / 1000);
  if (seconds >= 60 && seconds <= longestLifetime) return seconds;
  const message = `--lifetime is "${duration}"; it must be at least a minute and at most 100 years, such as 12h or 365d`;
  throw new ThresherError('pool-option', message);
}
