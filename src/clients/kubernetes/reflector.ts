import type { Clock } from '../../util/clock.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { KubernetesClient, Selection } from './client.ts';
import { isSilence } from './connection-failures.ts';
import { isKubernetesError, KubernetesError } from './errors.ts';
import type { KubernetesObject } from './objects.ts';
import { isOlder } from './versions.ts';

/** Receivers of the changes of objects, in their order. None of these may throw. */
export interface Handlers<R> {
  /** All objects are asked for: the list that `replace` gives next is at least as new as this moment. */
  listing?(): void;
  /** All present objects: any other is gone. */
  replace(all: readonly R[]): void;
  upsert(record: R): void;
  /** It is gone; the record is of its last state. */
  remove(record: R): void;
  /** `synced` or `trouble` is another than before. */
  changed?(state: ReflectorState): void;
}

export interface ReflectorState {
  /** All present objects were reported, and the reflector follows their changes. */
  readonly synced: boolean;
  /** Monotonic ms up to which what was told is known to be right: the last sign of the server's life; -Infinity: none yet. */
  readonly aliveAt: number;
  /** The error that stops the watch now. */
  readonly trouble?: unknown;
}

export interface ReflectorOptions<R> extends Selection {
  readonly client: Pick<KubernetesClient, 'list' | 'watch' | 'version'>;
  /** Path of the collection. */
  readonly path: string;
  /** The part of an object to keep; undefined leaves the object out, and must do so for all its life. */
  readonly record: (object: KubernetesObject) => R | undefined;
  readonly handlers: Handlers<R>;
  readonly clock: Clock;
  readonly random: () => number;
  /**
   * Longest time without a byte before everything is listed again, ms. Default 100 s: bookmarks come each 60 to 75, where an API server sends
   * them for a collection in which nothing happens.
   */
  readonly silence?: number;
  /** Objects per page. Default: that of the client. */
  readonly limit?: number;
  /** `record` reads nothing of the template of a Job's Pods. */
  readonly noTemplate?: boolean;
}

/** Pauses after failures, ms, by half more or less. */
const pauses = { first: 1000, longest: 30_000 };
/** Longest pause after an error that an administrator has to fix, such as a missing right, ms. */
const slowPause = 60_000;
/** A watch that lasted so long went well, ms, and one that saw anything. */
const wellFor = 10_000;
/** After so many failures in a row, each the server's word, the version itself may be the reason. */
const mostOfVersion = 5;

/** The step after a failure. */
export interface Next {
  /** From the beginning: something may have been missed. */
  readonly relist: boolean;
  /** ms, before jitter. */
  readonly pause: number;
}

/**
 * @param failures in a row, this one included
 * @param alike those of them that had the code of this one, the last ones in a row
 */
export function afterFailure(error: unknown, failures: number, alike: number): Next {
  const pause = pauseAfter(failures);
  // A server that lets versions go as soon as it has named them says so each time.
  if (isKubernetesError(error, 'kubernetes-gone'))
    return { relist: true, pause: alike === 1 ? 0 : pauseAfter(alike) };
  // The failures before it were those of the restore, which is over.
  if (isKubernetesError(error, 'kubernetes-rewound')) return { relist: true, pause: pauses.first };
  if (isKubernetesError(error, 'kubernetes-unreachable', 'kubernetes-too-many-requests'))
    return { relist: false, pause };
  if (isKubernetesError(error, 'kubernetes-server-error'))
    return { relist: failures >= mostOfVersion, pause };
  // A garbled line: the connection is at fault, not the version.
  if (isKubernetesError(error, 'kubernetes-no-api') && error.status === undefined)
    return { relist: failures >= mostOfVersion, pause };
  // Credentials are replaced all the time, perhaps a moment ago; this error says nothing of the version. It causes no
  // storm: one request.
  if (isKubernetesError(error, 'kubernetes-unauthorized') || isLogin(error)) return { relist: false, pause };
  // A right may be missing for the watch alone: with a list now and then all is seen at least late. A server that has just started
  // knows neither roles nor custom resources for a moment, so the first pauses are short.
  // An object that is too large may have been changed or deleted a moment later.
  const isOfServer = isKubernetesError(
    error,
    'kubernetes-forbidden',
    'kubernetes-no-api',
    'kubernetes-too-large',
  );
  const first = isOfServer ? pauses.first * 2 ** Math.min(alike - 1, 20) : slowPause;
  return { relist: true, pause: Math.min(first, slowPause) };
}

function pauseAfter(failures: number): number {
  return Math.min(pauses.first * 2 ** Math.min(failures - 1, 20), pauses.longest);
}

/** No kubeconfig or no credentials in it: the reflector has asked no server, and the files may be half written. */
function isLogin(error: unknown): boolean {
  return error instanceof ThresherError && !isKubernetesError(error);
}

/**
 * Follows a collection: lists it, then watches its changes, for ever. It keeps the version and nothing of the objects.
 * Each `replace` has all objects of that moment, and from then on the reflector leaves no change out: after a break it
 * goes on from the last change that the server reported, or lists everything again.
 * A server whose etcd was restored to an older revision accepts a watch from a version that it has not reached yet, and
 * reports nothing for as long. So the reflector compares each version that the server names with the last one that it
 * reported: those of events and bookmarks, the one it is at before a watch goes on after a failure, and those of others
 * who list the collection.
 */
export class Reflector<R> {
  readonly #options: ReflectorOptions<R>;
  #state: ReflectorState = { synced: false, aliveAt: -Infinity };
  #version: string | undefined;
  /** Counted since the start, bookmarks too. */
  #events = 0;
  /** Monotonic ms of its beginning; undefined: there was none in this pass. */
  #watchedSince: number | undefined;
  /** Ends the watch under way. */
  #watching = new AbortController();

  constructor(options: ReflectorOptions<R>) {
    this.#options = options;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** The last version that was told; undefined while everything is to be listed. */
  get version(): string | undefined {
    return this.#version;
  }

  /**
   * Another part of the daemon listed the collection.
   * @param before `version` as it was before that list was asked for: later ones may be of changes that came after it
   */
  listed(resourceVersion: string, before: string | undefined): void {
    if (before === undefined || this.#version === undefined || !isOlder(resourceVersion, before)) return;
    this.#watching.abort(this.#rewound(resourceVersion, before));
    this.#version = undefined;
  }

  /** Resolves when `signal` aborts. Never rejects: the state holds the error. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    const ended = () => signal.aborted;
    let failures = 0;
    let alike = 0;
    let last: string | undefined;
    while (!ended()) {
      const before = this.#events;
      const end = await this.#pass(failures > 0, signal);
      if (ended()) return;
      const error = isSilence(end) ? await this.#afterSilence(end, signal) : end;
      if (ended()) return;
      if (isSilence(end) && error === undefined) {
        [failures, last] = [0, undefined];
        continue;
      }
      const wasLong = this.#isLong;
      if (this.#events > before || wasLong) failures = 0;
      if (error === undefined || wasLong) last = undefined;
      // The end that every watch has in time: it goes on at once.
      if (error === undefined && failures === 0) continue;
      failures++;
      const { code } = toReason(error);
      alike = code === last ? alike + 1 : 1;
      last = code;
      const { relist, pause } = afterFailure(error, failures, alike);
      if (relist) this.#version = undefined;
      this.#set({ ...this.#state, synced: false, trouble: error });
      await clock.sleep(pause * (0.5 + random()), signal);
    }
  }

  /** Lists where that is needed, and watches to the end of the watch. @returns why it failed. */
  async #pass(failed: boolean, signal: AbortSignal): Promise<unknown> {
    this.#watchedSince = undefined;
    const before = this.#events;
    const watching = new AbortController();
    this.#watching = watching;
    const ended = AbortSignal.any([signal, watching.signal]);
    try {
      if (this.#version !== undefined && failed) await this.#checkVersion(this.#version, ended);
      this.#version ??= await this.#list(ended);
      this.#watchedSince = this.#options.clock.monotonic();
      await this.#watch(this.#version, ended);
    } catch (error) {
      return watching.signal.aborted ? watching.signal.reason : error;
    }
    if (watching.signal.aborted) return watching.signal.reason;
    // A server, or what stands before it, that ends each watch at once must not be asked without a pause.
    if (this.#events > before || this.#isLong) return undefined;
    const message = `the API server ended a watch of ${this.#options.path} at once`;
    return new KubernetesError({ code: 'kubernetes-server-error', message, maybeDone: false });
  }

  /**
   * Lists everything after a watch on which nothing came: where nothing happens, an API server may send no bookmarks, either.
   * @returns why there is no list; the silence itself where the list is older, or has objects that the watch did not report, as something between
   *   the server and thresher does that holds watches back. That objects are gone a list does not show by itself: it is no trouble
   */
  async #afterSilence(silence: unknown, signal: AbortSignal): Promise<unknown> {
    const told = this.#version;
    let missed = 0;
    try {
      const version = await this.#list(signal, ({ metadata }) => {
        if (isOlder(told, metadata?.resourceVersion)) missed++;
      });
      if (isOlder(version, told)) return silence;
      // Meanwhile another part of the daemon saw an older state.
      if (this.#watching.signal.aborted) return this.#watching.signal.reason as unknown;
      // A watch from before would tell what is older than the list.
      this.#version = version;
      return missed === 0 ? undefined : silence;
    } catch (error) {
      return error;
    }
  }

  /** Whether the last watch has lasted. However long a list took, it says nothing of the watch behind it. */
  get #isLong(): boolean {
    return this.#options.clock.monotonic() - (this.#watchedSince ?? Infinity) >= wellFor;
  }

  /** A restore of etcd may have broken the watch, and an older etcd accepts a watch from a future version. */
  async #checkVersion(told: string, signal: AbortSignal): Promise<void> {
    const { client, path } = this.#options;
    const now = await client.version(path, { ...this.#selection(), signal });
    if (isOlder(now, told)) throw this.#rewound(now, told);
  }

  #rewound(now: string, told: string): KubernetesError {
    const message = `the API server is at version ${now} of ${this.#options.path}, and was at ${told} before: its etcd was restored to an older state`;
    return new KubernetesError({ code: 'kubernetes-rewound', message, maybeDone: false });
  }

  /** @param look is shown each object that is kept */
  async #list(signal: AbortSignal, look?: (object: KubernetesObject) => void): Promise<string> {
    const { client, path, record, handlers, clock, limit } = this.#options;
    // The list is at least as new as its beginning.
    const begun = clock.monotonic();
    handlers.listing?.();
    const options = { ...this.#selection(), signal, ...(limit !== undefined && { limit }) };
    const { items, resourceVersion } = await client.list(path, options, (object) => {
      const kept = record(object);
      if (kept !== undefined) look?.(object);
      return kept;
    });
    if (signal.aborted) return resourceVersion;
    handlers.replace(items);
    this.#set({ ...this.#state, synced: true, aliveAt: begun });
    return resourceVersion;
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { client, path, record, handlers, clock, random, silence = 100_000, noTemplate } = this.#options;
    // If there are many factories, not all shall ask again at once.
    const timeoutSeconds = 290 + Math.floor(61 * random());
    const range = { resourceVersion, timeoutSeconds, silence };
    const options = { ...this.#selection(), ...range, signal, ...(noTemplate && { noTemplate }) };
    const alive = () => {
      this.#set({ synced: true, aliveAt: clock.monotonic() });
    };
    for await (const { type, object } of client.watch(path, options, alive)) {
      if (signal.aborted) return;
      const version = object.metadata?.resourceVersion;
      if (version !== undefined && this.#version !== undefined && isOlder(version, this.#version))
        throw this.#rewound(version, this.#version);
      const kept = type === 'BOOKMARK' ? undefined : record(object);
      if (kept !== undefined && type === 'DELETED') handlers.remove(kept);
      else if (kept !== undefined) handlers.upsert(kept);
      // Only a reported version counts: from here the next watch goes on.
      this.#version = version ?? this.#version;
      this.#events++;
      alive();
    }
  }

  #selection(): Selection {
    const { labelSelector, fieldSelector } = this.#options;
    return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
  }

  #set(state: ReflectorState): void {
    const before = this.#state;
    this.#state = state;
    if (before.synced !== state.synced || before.trouble !== state.trouble)
      this.#options.handlers.changed?.(state);
  }
}
