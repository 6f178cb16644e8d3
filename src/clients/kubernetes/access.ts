import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type Clock, isoTime } from '../../util/clock.ts';
import { unlessAborted } from '../../util/deadline.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';
import { type Credentials, filesOf, readCredentials } from './credentials.ts';
import { type ClusterAccess, readKubeconfig } from './kubeconfig.ts';

/** The source of a cluster's address and login. */
export type AccessSource =
  | { readonly kind: 'file'; readonly file: string; readonly context?: string }
  /** The service account of the Pod that the daemon runs in. */
  | { readonly kind: 'in-cluster'; readonly directory?: string; readonly environment?: NodeJS.ProcessEnv };

/** The directory where Kubernetes mounts it. */
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

/** How often the files are looked at, ms. Kubernetes renews the tokens it mounts well before their end. */
const lookInterval = 10_000;
/** Credentials are renewed so long before their end, ms: a request may be under way for a while. */
const ahead = 30_000;
/** Between two readings that a refusal asks for, ms: a hundred refused requests are one reason to ask a plugin. */
const renewInterval = 5000;
/** Between readings of a login that has ended or ends within `ahead`, ms, doubling: the plugin may say the same for hours. */
const pauses = { first: renewInterval, longest: 60_000 };

export interface Current extends Credentials {
  /** Rises with each reading. */
  readonly generation: number;
}

/** Which cluster it is. `ca`: SHA-256 of its certificate authority, hex; empty where those of the system are used. */
export interface Identity {
  readonly server: string;
  readonly ca: string;
}

export interface AccessParts {
  readonly clock: Clock;
  readonly files: OperatorFiles;
}

/** The login to one cluster, read when it is first needed and again when its files change, at its end and on refusal. */
export class Access {
  readonly #source: AccessSource;
  readonly #clock: Clock;
  readonly #from: OperatorFiles;
  readonly #confirm: ((found: Identity) => Promise<void>) | undefined;
  readonly #closed = new AbortController();
  #current: Current | undefined;
  #files: readonly string[] = [];
  #fingerprint = '';
  /** Monotonic ms. */
  #lookedAt = -Infinity;
  #readAt = -Infinity;
  #pausedUntil = -Infinity;
  /** Readings one after the other that brought a login which ends soon. */
  #short = 0;
  #reading: Promise<Current> | undefined;
  /** The error that forbids the use of the files' present content. The last login then no longer counts either. */
  #refused: { readonly error: unknown } | undefined;

  /** @param confirm rejects where what was read now must not be used: for another cluster than the one so far. */
  constructor(
    source: AccessSource,
    { clock, files }: AccessParts,
    confirm?: (found: Identity) => Promise<void>,
  ) {
    this.#source = source;
    this.#from = files;
    this.#clock = clock;
    this.#confirm = confirm;
  }

  /**
   * @throws ThresherError `kubeconfig-missing`, `kubeconfig-wrong` or `kubernetes-credentials` if there is none yet, or
   * the last one has ended. A file that is broken while the last one is good may be half written: the last one stays,
   * and the next call tries again. A login that ended soon after it was read is used as it is until the pause is over.
   * @throws the error of `confirm`, until the files are fixed
   */
  async current(signal: AbortSignal): Promise<Current> {
    const last = this.#current;
    if (last === undefined) return this.#read(signal);
    const left = this.#left(last);
    if ((left > ahead || this.#isPaused()) && !(await this.#changed())) {
      if (this.#refused !== undefined) throw this.#refused.error;
      return last;
    }
    try {
      return await this.#read(signal);
    } catch (error) {
      if (left <= 0 || this.#refused !== undefined) throw error;
      return last;
    }
  }

  /**
   * After the server refused the credentials of `generation`: reads them again, unless another caller just did.
   * @throws ThresherError as `current` does, and `kubernetes-credentials` while it pauses since they had ended when they were read
   */
  async renew(generation: number, signal: AbortSignal): Promise<Current> {
    const last = this.#current;
    if (last !== undefined && last.generation > generation) return last;
    if (last !== undefined && this.#left(last) <= 0 && this.#isPaused()) throw this.#hasEnded(last);
    // The first reading may be as old as the daemon, even if the last caller asked a moment ago.
    const justRead = this.#clock.monotonic() - this.#readAt < renewInterval;
    if (last !== undefined && justRead && last.generation > 1) return last;
    return this.#read(signal);
  }

  /** Ends a plugin that runs. */
  close(): void {
    this.#closed.abort();
  }

  /** ms */
  #left({ expiresAt = Infinity }: Credentials): number {
    return expiresAt - this.#clock.now();
  }

  #isPaused(): boolean {
    return this.#clock.monotonic() < this.#pausedUntil;
  }

  #hasEnded({ access: { source, user }, expiresAt = 0 }: Credentials): ThresherError {
    const wait = Math.ceil((this.#pausedUntil - this.#clock.monotonic()) / 1000);
    const message = `kubeconfig ${source}, user "${user.name}": the login that its exec plugin gave had ended at ${isoTime(expiresAt)}; it is asked again in ${wait} s`;
    return new ThresherError('kubernetes-credentials', message, { file: source });
  }

  /** After a reading: a login that is about to end is used until then, or the pause is over. */
  #pauseAfter(read: Credentials): void {
    const left = this.#left(read);
    this.#short = left > ahead ? 0 : this.#short + 1;
    const grown = Math.min(pauses.first * 2 ** Math.min(this.#short - 1, 20), pauses.longest);
    const pause = left > 0 ? Math.min(grown, Math.max(left, pauses.first)) : grown;
    this.#pausedUntil = this.#short === 0 ? -Infinity : this.#clock.monotonic() + pause;
  }

  async #changed(): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < lookInterval) return false;
    this.#lookedAt = now;
    // An operator may put refused files back as they were, their times included.
    return this.#refused !== undefined || (await fingerprint(this.#from, this.#files)) !== this.#fingerprint;
  }

  /** One reading serves all callers meanwhile; a caller that gives up leaves it to the others. */
  async #read(signal: AbortSignal): Promise<Current> {
    this.#reading ??= this.#readOnce().finally(() => (this.#reading = undefined));
    return unlessAborted(this.#reading, signal);
  }

  async #readOnce(): Promise<Current> {
    const own = this.#source.kind === 'file' ? [this.#source.file] : [];
    // The fingerprint of a file is taken before its content: the next check then finds a change in between.
    const before = await fingerprint(this.#from, own);
    const access = await readAccess(this.#from, this.#source);
    const named = filesOf(access).map(({ file }) => file);
    const print = [before, await fingerprint(this.#from, named)].filter((part) => part !== '').join(' ');
    const credentials = await readCredentials(access, this.#from, this.#clock.now(), this.#closed.signal);
    const { ca } = credentials.tls;
    const digest = typeof ca === 'string' ? createHash('sha256').update(ca).digest('hex') : '';
    try {
      await this.#confirm?.({ server: access.server, ca: digest });
    } catch (error) {
      // Where it cannot be said which cluster it was, the files may be as good as the last login.
      if (error instanceof ThresherError && error.code === 'kubernetes-other-cluster')
        this.#refused = { error };
      throw error;
    }
    this.#refused = undefined;
    this.#files = [...own, ...named];
    this.#fingerprint = print;
    this.#readAt = this.#lookedAt = this.#clock.monotonic();
    this.#pauseAfter(credentials);
    this.#current = { ...credentials, generation: (this.#current?.generation ?? 0) + 1 };
    return this.#current;
  }
}

/** @throws ThresherError `kubeconfig-missing` or `kubeconfig-wrong` */
export async function readAccess(files: OperatorFiles, source: AccessSource): Promise<ClusterAccess> {
  if (source.kind === 'file') return readKubeconfig(files, source.file, source.context);
  const { directory = serviceAccount, environment = process.env } = source;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  const tokenFile = join(directory, 'token');
  if (!host || !port || (await files.stat(tokenFile)) === undefined) {
    const lacks =
      !host || !port
        ? 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set'
        : `there is no ${tokenFile}`;
    throw new ThresherError(
      'kubeconfig-missing',
      `no kubeconfig is named, and this is no Pod with a service account: ${lacks}`,
    );
  }
  const namespaceFile = await files.read(join(directory, 'namespace'), 'token').catch(() => undefined);
  const namespace = namespaceFile?.bytes.toString('utf8').trim() ?? '';
  return {
    source: directory,
    context: 'in-cluster',
    ...(namespace && { namespace }),
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: { file: join(directory, 'ca.crt') },
    insecure: false,
    user: { name: '', tokenFile },
  };
}

/** Symbolic links are followed: Kubernetes replaces a mounted file through one. */
async function fingerprint(from: OperatorFiles, files: readonly string[]): Promise<string> {
  const stats = await Promise.all(
    files.map(async (file) => {
      const found = await from.stat(file);
      return found === undefined ? 'none' : `${found.ino}:${found.size}:${found.mtimeMs}`;
    }),
  );
  return stats.join(' ');
}
