import { createHash } from 'node:crypto';
import { rememberCredential } from '../../clients/credentials/credential.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { collectionPath, objectPath } from '../../clients/kubernetes/paths.ts';
import type { Clock } from '../../util/clock.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Host } from '../contracts/context.ts';
import type { K8sNamespace } from './namespace.ts';
import { factoryLabel, labelOf, proxySecretLabel, queueLabel } from './marks.ts';
import type { ObjectMeta } from './state/types.ts';

export interface ProxySecret {
  readonly name: string;
  readonly key: string;
}

const kind = { group: '', version: 'v1', resource: 'secrets' };
const key = 'proxy';
/** After so long thresher makes sure that a Secret is still there, ms: an operator may have removed it. */
const trusted = 60_000;
/** A Secret is left alone for so long after it was last given to a Job, ms. */
const keepUnused = 3_600_000;

/**
 * Proxies that pilots get as `proxyContent`, one Secret per queue and content: what Harvester puts into plain environment,
 * where every user who may read Pods reads it.
 */
export class ProxySecrets {
  readonly #namespace: K8sNamespace;
  readonly #clock: Clock;
  readonly #files: OperatorFiles;
  /** By name: when it was last given to a Job, and when it was made or found, monotonic ms. */
  readonly #known = new Map<string, { readonly used: number; readonly made: number }>();
  /** Deletions under way: what is wanted meanwhile is made again when they are through. */
  readonly #leaving = new Map<string, Promise<void>>();

  constructor(namespace: K8sNamespace, { clock, files }: Pick<Host, 'clock' | 'files'>) {
    this.#namespace = namespace;
    this.#clock = clock;
    this.#files = files;
  }

  /** @throws ThresherError `proxy-unreadable` for a file that is missing, empty, too large or no PEM. */
  async read(file: string): Promise<string> {
    let content: string;
    try {
      const { bytes } = await this.#files.read(file, 'proxy');
      rememberCredential(bytes, file);
      content = bytes.toString('utf8');
    } catch (error) {
      throw new ThresherError('proxy-unreadable', `the proxy ${file}: ${whyUnreadable(error, 'proxy')}`);
    }
    // Nothing of the content is shown: it has a private key.
    if (!content.includes('-----BEGIN CERTIFICATE-----')) {
      const message = `${file} is not PEM; a proxy has a certificate and its key as PEM`;
      throw new ThresherError('proxy-unreadable', message);
    }
    return content;
  }

  /** Which Secret `ensure` would make, without making it. @throws ThresherError as `read` does */
  async secretOf(queue: string, file: string): Promise<ProxySecret> {
    return { name: secretName(this.#namespace.factoryId, queue, await this.read(file)), key };
  }

  /** The Secret with what the file has now. @throws ThresherError as `read` does, KubernetesError */
  async ensure(queue: string, file: string, signal: AbortSignal): Promise<ProxySecret> {
    const content = await this.read(file);
    const name = secretName(this.#namespace.factoryId, queue, content);
    const { client, name: namespace } = this.#namespace;
    await this.#leaving.get(name)?.catch(() => undefined);
    const now = this.#clock.monotonic();
    const made = this.#known.get(name)?.made ?? -Infinity;
    if (now - made < trusted) {
      this.#known.set(name, { used: now, made });
      return { name, key };
    }
    const labels = { [factoryLabel]: labelOf(this.#namespace.factoryId), [queueLabel]: labelOf(queue) };
    const metadata = { name, namespace, labels: { ...labels, [proxySecretLabel]: name } };
    const secret = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', immutable: true, metadata };
    const data = { [key]: Buffer.from(content).toString('base64') };
    try {
      await client.create(collectionPath(kind, namespace), { ...secret, data }, { signal });
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-already-exists')) throw error;
    }
    this.#known.set(name, { used: now, made: now });
    return { name, key };
  }

  /** Removes those that no Job has any more. @throws KubernetesError */
  async sweep(signal: AbortSignal): Promise<void> {
    const { client, name: namespace, selector, jobs } = this.#namespace;
    const { items } = await client.list(
      collectionPath(kind, namespace),
      { labelSelector: `${selector},${proxySecretLabel}`, signal, metadataOnly: true },
      ({ metadata }) => metadata,
    );
    for (const { name = '', uid } of items as ObjectMeta[]) {
      // An earlier daemon used it at an unknown time: counted from now.
      if (!this.#known.has(name)) this.#known.set(name, { used: this.#clock.monotonic(), made: -Infinity });
      if (this.#isUsed(name)) continue;
      const labelSelector = `${proxySecretLabel}=${name}`;
      if (await client.exists(jobs, { labelSelector, signal })) continue;
      // The submitter may have asked for it meanwhile.
      if (this.#isUsed(name)) continue;
      this.#known.delete(name);
      const path = objectPath(kind, namespace, name);
      const gone = client.delete(path, { signal, ...(uid !== undefined && { uid }) });
      this.#leaving.set(name, gone);
      await gone.finally(() => this.#leaving.delete(name));
    }
  }

  /** Whether this daemon has made any. */
  get areUsed(): boolean {
    return this.#known.size > 0;
  }

  #isUsed(name: string): boolean {
    return this.#clock.monotonic() - (this.#known.get(name)?.used ?? -Infinity) < keepUnused;
  }
}

/** Every queue has its own: so a queue's right to a proxy is that to its Secrets. */
function secretName(factoryId: string, queue: string, content: string): string {
  const digest = createHash('sha256').update(queue).update('\0').update(content).digest('hex').slice(0, 16);
  return `${factoryId}-proxy-${digest}`;
}
