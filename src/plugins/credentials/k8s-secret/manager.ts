import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { type FileState, inspectFile } from '../../../clients/credentials/credential-file.ts';
import { publicFacts, readCredential, rememberCredential } from '../../../clients/credentials/credential.ts';
import { fileVersion, readCredentialFile } from '../../../clients/credentials/files.ts';
import type { KubernetesClient } from '../../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../../clients/kubernetes/objects.ts';
import { objectPath } from '../../../clients/kubernetes/paths.ts';
import { secretKeyName } from '../../../clients/kubernetes/place.ts';
import type { Clock } from '../../../util/clock.ts';
import { whyUnusable } from '../../../util/validity.ts';
import { ThresherError, toReason } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { WorkerError } from '../../../worker/worker.ts';
import type {
  CredentialFacts,
  CredentialManager,
  CredentialState,
  RenewOutcome,
} from '../../contracts/credential-manager.ts';

export interface SecretPlan {
  /** Name of the cluster in the names of credentials. */
  readonly cluster: string;
  readonly client: Pick<KubernetesClient, 'get' | 'patch'>;
  readonly namespaces: readonly string[];
  readonly secret: string;
  /** Absolute. */
  readonly files: readonly string[];
  /** Owner of its keys by server-side apply: each manager has another one, or each would remove the others' keys. */
  readonly fieldManager: string;
  /** ms */
  readonly minLifetime: number;
  readonly clock: Clock;
}

type Secret = KubernetesObject & { readonly data?: Readonly<Record<string, string>> | null };

/** A file as it is to be in the Secret. */
type Wanted =
  | { readonly kind: 'good'; readonly key: string; readonly data: string; readonly facts: Facts }
  | { readonly kind: 'bad'; readonly key: string; readonly error: WorkerError };
type Facts = Extract<FileState, { readonly kind: 'there' }>['facts'];

const kind = { group: '', version: 'v1', resource: 'secrets' };

/** Annotation of a key on the Secret, for operators: subject, VO, end and digest, as JSON. */
export function annotationOf(key: string): string {
  // An annotation's name is more narrowly bounded than a key. Source: Kubernetes' "Annotations", "Syntax and character set".
  const isName = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(key);
  return `credential.thresher/${isName ? key : createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
}

/** Keeps files in a Secret. A key whose file is bad keeps its last content; keys of others are left alone. */
export class K8sSecretManager implements CredentialManager {
  readonly #plan: SecretPlan;

  constructor(plan: SecretPlan) {
    this.#plan = plan;
  }

  async inspect(signal: AbortSignal): Promise<readonly CredentialState[]> {
    const { files, namespaces } = this.#plan;
    const sources = new Map<string, FileState>();
    for (const file of files) sources.set(basename(file), await inspectFile(file));
    const states: CredentialState[] = [];
    for (const namespace of namespaces) {
      const secret = await this.#read(namespace, signal).catch((error: unknown) => toReason(error));
      for (const [key, source] of sources) states.push(this.#stateOf(namespace, key, secret, source));
    }
    return states;
  }

  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<readonly RenewOutcome[]> {
    const { files, namespaces } = this.#plan;
    const wanted: Wanted[] = [];
    for (const file of files) wanted.push(await this.#wanted(file));
    const outcomes: RenewOutcome[] = [];
    for (const namespace of namespaces) {
      try {
        outcomes.push(...(await this.#push(namespace, wanted, force, signal)));
      } catch (error) {
        for (const { key } of wanted)
          outcomes.push({ kind: 'failed', name: this.#name(namespace, key), error: toReason(error) });
      }
    }
    return outcomes;
  }

  async fingerprint(): Promise<string> {
    return (await Promise.all(this.#plan.files.map(fileVersion))).join(', ');
  }

  async #wanted(file: string): Promise<Wanted> {
    const key = basename(file);
    try {
      const { bytes } = await readCredentialFile(file);
      const facts = publicFacts(readCredential(bytes, file));
      const now = this.#plan.clock.now();
      const left = (facts.expiresAt ?? Infinity) - now;
      const soon = left < this.#plan.minLifetime ? `ends in ${Math.floor(left / 1000)} s` : undefined;
      const why = whyUnusable(facts, now) ?? soon;
      if (why !== undefined) {
        const message = `${file} ${why}: it is not pushed`;
        return { kind: 'bad', key, error: { code: 'credential-unfit', message } };
      }
      return { kind: 'good', key, data: bytes.toString('base64'), facts: { name: file, ...facts } };
    } catch (error) {
      return { kind: 'bad', key, error: toReason(error) };
    }
  }

  /** One Secret. @throws KubernetesError */
  async #push(
    namespace: string,
    wanted: readonly Wanted[],
    force: boolean,
    signal: AbortSignal,
  ): Promise<RenewOutcome[]> {
    const before = await this.#read(namespace, signal);
    // Compares the annotation as well: a value that another client wrote has none.
    const isThere = ({ key, data }: Extract<Wanted, { kind: 'good' }>) =>
      before?.data?.[key] === data && before.metadata?.annotations?.[annotationOf(key)] === describe(data);
    const good = wanted.filter((one) => one.kind === 'good');
    const due = force ? good : good.filter((one) => !isThere(one));
    if (due.length > 0) await this.#apply(namespace, before, wanted, signal);
    return wanted.map((one): RenewOutcome => {
      const name = this.#name(namespace, one.key);
      if (one.kind === 'bad') return { kind: 'failed', name, error: one.error };
      return { kind: due.includes(one) ? 'renewed' : 'unchanged', name };
    });
  }

  /** Server-side apply, so that keys of others stay; all of our own, or those left out would be taken away. */
  async #apply(
    namespace: string,
    before: Secret | undefined,
    wanted: readonly Wanted[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, secret, fieldManager } = this.#plan;
    const data = new Map<string, string>();
    for (const one of wanted) {
      const content = one.kind === 'good' ? one.data : before?.data?.[one.key];
      if (content !== undefined) data.set(one.key, content);
    }
    const applied = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: secret,
        namespace,
        labels: { 'app.kubernetes.io/managed-by': 'thresher' },
        annotations: Object.fromEntries(
          [...data].map(([key, content]) => [annotationOf(key), describe(content)]),
        ),
      },
      data: Object.fromEntries(data),
    };
    const options = { kind: 'apply', fieldManager, force: true, signal } as const;
    await client.patch(this.#path(namespace), applied, options);
    const after = await this.#read(namespace, signal);
    for (const [key, content] of data) {
      if (after?.data?.[key] === content) continue;
      const message = `${namespace}/${secret} was applied, and its key ${key} differs from the one sent: another client changes it`;
      throw new ThresherError('credential-secret', message);
    }
  }

  #stateOf(
    namespace: string,
    key: string,
    secret: Secret | WorkerError | undefined,
    source: FileState,
  ): CredentialState {
    const name = this.#name(namespace, key);
    if (secret !== undefined && 'code' in secret) return { kind: 'broken', name, error: secret };
    const content = secret?.data?.[key];
    if (content === undefined) {
      const message = `there is no ${secret === undefined ? 'Secret' : `key ${key} in the Secret`} ${namespace}/${this.#plan.secret}`;
      return { kind: 'broken', name, error: { code: 'credential-missing', message } };
    }
    let facts: CredentialFacts;
    try {
      const bytes = Buffer.from(content, 'base64');
      rememberCredential(bytes, name);
      facts = { name, ...publicFacts(readCredential(bytes, name)) };
    } catch (error) {
      return { kind: 'broken', name, error: toReason(error) };
    }
    const warnings: readonly Reason[] =
      source.kind === 'there'
        ? source.warnings
        : [
            {
              ...source.error,
              message: `its file is not good, and the last good one stays: ${source.error.message}`,
            },
          ];
    return { kind: 'there', facts, warnings };
  }

  /** Undefined: there is none. @throws KubernetesError */
  async #read(namespace: string, signal: AbortSignal): Promise<Secret | undefined> {
    try {
      return await this.#plan.client.get(this.#path(namespace), { signal });
    } catch (error) {
      if (isKubernetesError(error, 'kubernetes-not-found')) return undefined;
      throw error;
    }
  }

  #path(namespace: string): string {
    return objectPath(kind, namespace, this.#plan.secret);
  }

  #name(namespace: string, key: string): string {
    const { cluster, secret } = this.#plan;
    return secretKeyName(cluster, namespace, secret, key);
  }
}

/** Nothing of it is secret: any account that may read Secrets' metadata reads it. */
function describe(content: string): string {
  try {
    const read = readCredential(Buffer.from(content, 'base64'), 'it');
    const { subject, vo, expiresAt, digest } = read;
    const expires = expiresAt === undefined ? undefined : new Date(expiresAt).toISOString();
    return JSON.stringify({ subject, vo, expires, sha256: digest });
  } catch {
    return '{}';
  }
}
