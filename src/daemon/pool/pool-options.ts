import { isIP } from 'node:net';
import { quantityOf } from '../../clients/kubernetes/quantity.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Security } from './pool-files.ts';

/** What the objects of a pool depend on. */
export interface PoolOptions {
  /** First part of all names. */
  readonly name: string;
  /** Undefined: the objects name none. */
  readonly namespace: string | undefined;
  readonly image: string;
  readonly security: Security;
  readonly trustDomain: string;
  /** Fixed workers. */
  readonly workers: number;
  /** Of each, as a quantity and in cores. */
  readonly workerCpus: { readonly written: string; readonly cores: number };
  /** For the jobs of each, MiB. */
  readonly workerMemory: number;
  /** Undefined: the cluster's default. */
  readonly storageClass: string | undefined;
  /** A quantity. */
  readonly spoolSize: string;
  /** Networks whose programs may talk to the pool. */
  readonly clients: readonly string[];
  /** Networks that jobs may reach. */
  readonly workerEgress: readonly string[];
}

/** The same as texts, by the names that commander gives them. */
export interface PoolFlags {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly image: string;
  readonly security: Security;
  readonly trustDomain: string;
  readonly workers: string;
  readonly workerCpus: string;
  readonly workerMemory: string;
  readonly storageClass?: string;
  readonly spoolSize: string;
  readonly clients: readonly string[];
  readonly workerEgress: readonly string[];
}

/** Defaults as they stand in the templates. */
export const usual = {
  name: 'htcondor',
  image: 'registry.example.org/htcondor-pool:latest',
  security: 'tokens',
  trustDomain: 'htcondor-pool',
  workers: '1',
  workerCpus: '1',
  workerMemory: '1Gi',
  spoolSize: '10Gi',
  clients: [],
  workerEgress: [],
} as const satisfies PoolFlags;

const mebibyte = 2 ** 20;
/** Kubernetes ends names of a Service at 63 signs; the longest end here is "-central-manager". */
const longestName = 63 - '-central-manager'.length;
const label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** @throws ThresherError `pool-option`, with the name of the option, its value and what would be right */
export function checkedOptions(flags: PoolFlags): PoolOptions {
  const { name, namespace, image, workers, workerMemory, storageClass, spoolSize } = flags;
  if (namespace !== undefined) checkedNamespace(namespace);
  if (storageClass !== undefined && !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(storageClass))
    throw wrong(
      '--storage-class',
      storageClass,
      'the name of a StorageClass, as `kubectl get storageclass` shows it',
    );
  if (!/^\d{1,5}$/.test(workers)) throw wrong('--workers', workers, 'a whole number from 0 to 99999');
  const size = quantityOf(spoolSize);
  if (size === undefined || size < mebibyte) throw wrong('--spool-size', spoolSize, 'a size such as 10Gi');
  const memory = (quantityOf(workerMemory) ?? 0) / mebibyte;
  if (memory < 64 || memory > 1e9)
    throw wrong('--worker-memory', workerMemory, 'a size from 64Mi on, such as 2Gi');
  return {
    name: checkedName(name),
    namespace,
    image: checkedImage(image),
    security: flags.security,
    trustDomain: checkedDomain(flags.trustDomain),
    workers: Number(workers),
    workerCpus: checkedCores(flags.workerCpus),
    workerMemory: Math.floor(memory),
    storageClass,
    spoolSize,
    clients: flags.clients.map((cidr) => checkedNetwork('--clients', cidr)),
    workerEgress: flags.workerEgress.map((cidr) => checkedNetwork('--worker-egress', cidr)),
  };
}

/** @throws ThresherError `pool-option` */
export function checkedName(name: string): string {
  if (label.test(name) && name.length <= longestName) return name;
  throw wrong(
    '--name',
    name,
    `at most ${longestName} small letters, digits and inner dashes, a letter first`,
  );
}

/** @throws ThresherError `pool-option` */
export function checkedNamespace(namespace: string): string {
  if (label.test(namespace) && namespace.length <= 63) return namespace;
  throw wrong('--namespace', namespace, 'at most 63 small letters, digits and inner dashes');
}

/** @throws ThresherError `pool-option` */
export function checkedDomain(name: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9._-]{0,200}[A-Za-z0-9])?$/.test(name)) return name;
  throw wrong('--trust-domain', name, 'a name such as pool.example.org: letters, digits, "-", "_" and "."');
}

/** @throws ThresherError `pool-option` */
function checkedImage(image: string): string {
  const part = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
  const host = '[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?';
  const reference = new RegExp(
    `^(${host}/)?${part}(/${part})*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`,
  );
  if (reference.test(image)) return image;
  throw wrong(
    '--image',
    image,
    'NAME:TAG or NAME@sha256:DIGEST, such as registry.example.org/htcondor-pool:23.9',
  );
}

function checkedCores(written: string): PoolOptions['workerCpus'] {
  const cores = quantityOf(written) ?? 0;
  if (cores >= 0.001 && cores <= 10_000) return { written, cores };
  throw wrong('--worker-cpus', written, 'a number of cores such as 4 or 500m');
}

function checkedNetwork(option: string, cidr: string): string {
  const [address = '', bits = '', ...more] = cidr.split('/');
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most && more.length === 0) return cidr;
  throw wrong(option, cidr, 'a network such as 192.0.2.0/24 or 2001:db8::/32');
}

function wrong(option: string, value: string, right: string): ThresherError {
  return new ThresherError('pool-option', `${option} is "${value}"; it must be ${right}`, { option });
}
