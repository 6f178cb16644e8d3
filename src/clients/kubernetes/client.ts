import { givingWay } from '../../util/clock.ts';
import { isObject, sizeOf } from '../../util/json.ts';
import { continueIn, noApi, parse, warningsOf, whyUnnamed } from './answers.ts';
import type {
  AnswerOptions,
  CallOptions,
  DeleteOptions,
  Listed,
  ListOptions,
  LogOptions,
  PatchOptions,
  Selection,
  WatchOptions,
} from './call-options.ts';
import { type Asked, isKubernetesError, KubernetesError, statusFailure } from './errors.ts';
import { linesOf } from './lines.ts';
import {
  type ApiStatus,
  type KubernetesObject,
  type ListPage,
  presentIn,
  type WatchEvent,
} from './objects.ts';
import { isObjectPath, type Query } from './paths.ts';
import { type Request, Requests, type RequestsOptions } from './requests.ts';
import type { Answer } from './transport.ts';

export type * from './call-options.ts';

type WatchLine = WatchEvent | { readonly type: 'ERROR'; readonly object: ApiStatus };

/** Answers without `spec` and `status`, from servers that can: all do since Kubernetes 1.15. */
const metadataTypes = {
  object: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json',
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
} as const;

/** A page of a list that was asked for. */
interface PageAsked {
  readonly asked: Request;
  readonly limit: number;
  /** The token of the page; undefined: the first. */
  readonly after: string | undefined;
  readonly answer: Promise<Answer>;
}

/** A page of a list, as far as it is what a server of the API sends. */
interface Page {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
  /** The token of the page behind it; undefined: it is the last. */
  readonly next: string | undefined;
}

interface PageRead {
  readonly page: Page;
  readonly bytes: number;
  /** The token of the next page, as it was found before the page was read, and that page. */
  readonly early: string | undefined;
  readonly ahead: PageAsked | undefined;
}

/** A request that changes nothing and takes no unknown field. */
const rehearsed = { dryRun: 'All', fieldValidation: 'Strict' } as const;

/** Number of times that a list begins again after it outlived its version. */
const listAttempts = 3;

/**
 * Bytes of all pages of one list: a server that answers for ever. An etcd has 8 GB at most, and users fill it as they like: with a lower bound one of them
 * could hide the objects of all others. Of each page only what `record` gives stays in memory.
 */
const longestList = 16 * 1024 * 1024 * 1024;

/** What is kept of one list: objects, and their size in characters. */
const mostKept = { objects: 1_000_000, characters: 512 * 1024 * 1024 } as const;
/**
 * Longest token of a next page, characters: it goes into a query. An API server's has some hundred, of the last object's name and namespace;
 * `continueIn` finds none that is longer.
 */
const longestToken = 10_000;
/** Pages of one list without an object, one after the other: a server that only ever says that there is more. */
const mostEmpty = 1000;

/** Pages of a list that are no larger than one that was found to be small enough, before a larger one is tried. */
const pagesAlike = 4;

const contentTypes: Readonly<Record<PatchOptions['kind'], string>> = {
  apply: 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
};

/**
 * One cluster's API as plain JSON. All calls reject with a KubernetesError, whose code names the failure and whose
 * `maybeDone` says whether the server may have acted; or with the error of `Access.current`.
 */
export class KubernetesClient {
  readonly #requests: Requests;
  readonly #clock: RequestsOptions['clock'];

  /** The client reads and connects nothing before the first call. */
  constructor(options: RequestsOptions) {
    this.#requests = new Requests(options);
    this.#clock = options.clock;
  }

  /** Whether the cluster has given a successful answer. */
  get hasAnswered(): boolean {
    return this.#requests.hasAnswered;
  }

  /** How far the server's clock is ahead of ours, ms, by its last answer; 0 while they agree within two seconds. */
  get clockOffset(): number {
    return this.#requests.clockOffset;
  }

  /** @param path of the collection */
  create<T extends KubernetesObject>(path: string, object: T, options: AnswerOptions): Promise<T> {
    return this.createText(path, JSON.stringify(object), options) as Promise<T>;
  }

  /** `create` of an object that is JSON already. @param path of the collection */
  createText(path: string, text: string, options: AnswerOptions): Promise<KubernetesObject> {
    const accept = options.metadataOnly ? metadataTypes.object : undefined;
    const content = { type: 'application/json', text };
    return this.#call({ ...request('POST', path, options), accept, content });
  }

  /**
   * The result that `create` would have, by the server's own schema and admission, strictly; the server keeps nothing.
   */
  async dryRun<T extends KubernetesObject>(
    path: string,
    object: T,
    options: CallOptions,
  ): Promise<{ readonly object: T; readonly warnings: readonly string[] }> {
    const asked = { ...request('POST', path, options, rehearsed), content: json(object) };
    const answer = await this.#requests.send(asked);
    return { object: parse(answer.body, this.#requests.asked(asked)) as T, warnings: warningsOf(answer) };
  }

  /** @param path of one object */
  get(path: string, options: CallOptions): Promise<KubernetesObject> {
    return this.#call(request('GET', path, options));
  }

  /**
   * Asks for the end of one object; with finalizers or a grace it is there for a while after.
   * @throws TypeError for the path of a collection: that would delete all of it.
   */
  async delete(path: string, options: DeleteOptions): Promise<void> {
    if (!isObjectPath(path)) throw new TypeError(`"${path}" is not the path of one object`);
    const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
    const preconditions = { ...(uid !== undefined && { uid }), ...(resourceVersion && { resourceVersion }) };
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      ...(Object.keys(preconditions).length > 0 && { preconditions }),
      ...(propagationPolicy && { propagationPolicy }),
      ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
    };
    await this.#requests.send({ ...request('DELETE', path, options), content: json(body) });
  }

  /** @throws TypeError for an `apply` without `fieldManager`. */
  async patch(path: string, patch: unknown, options: PatchOptions): Promise<KubernetesObject> {
    const { kind, fieldManager, force, metadataOnly, dryRun } = options;
    const accept = metadataOnly ? metadataTypes.object : undefined;
    if (kind === 'apply' && !fieldManager) throw new TypeError('a server-side apply needs a fieldManager');
    const content = { type: contentTypes[kind], text: JSON.stringify(patch) };
    const query = { fieldManager, force, ...(dryRun && rehearsed) };
    const asked = { ...request('PATCH', path, options, query), accept, content };
    return this.#call(asked);
  }

  /**
   * All objects as of one version, however many pages they take. Objects in lists have no `kind` and `apiVersion`.
   * @param record gives the part of each object to keep; undefined leaves the object out.
   */
  async list<R>(
    path: string,
    options: ListOptions,
    record: (object: KubernetesObject) => R | undefined,
  ): Promise<Listed<R>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#listOnce(path, options, record);
      } catch (error) {
        // The version of the first page is no longer there, and pages of two versions do not fit together.
        if (!isKubernetesError(error, 'kubernetes-gone') || attempt >= listAttempts) throw error;
      }
    }
  }

  /** The version that the server is at now: of a list that is cut short. */
  async version(path: string, options: Selection & CallOptions): Promise<string> {
    const { labelSelector, fieldSelector } = options;
    const query = { labelSelector, fieldSelector, limit: 1 };
    const asked = { ...request('GET', path, options, query), accept: metadataTypes.list };
    return pageOf(await this.#call(asked), this.#requests.asked(asked)).resourceVersion;
  }

  /** Whether there is any such object. */
  async exists(path: string, options: Selection & CallOptions): Promise<boolean> {
    const { labelSelector, fieldSelector } = options;
    const query = { labelSelector, fieldSelector, limit: 1 };
    const asked = { ...request('GET', path, options, query), accept: metadataTypes.list };
    const { items, next } = pageOf(await this.#call(asked), this.#requests.asked(asked));
    return items.length > 0 || next !== undefined;
  }

  /**
   * The changes after a version, until the server ends the watch or the caller leaves the loop. Truncated lines are
   * dropped.
   * @param opened called when the server has accepted the watch.
   * @throws KubernetesError also for an error that the watch itself reports: `kubernetes-gone` and others.
   */
  async *watch(path: string, options: WatchOptions, opened?: () => void): AsyncGenerator<WatchEvent> {
    const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, silence, noTemplate } = options;
    const range = { labelSelector, fieldSelector, resourceVersion, timeoutSeconds };
    const asked = request('GET', path, options, { watch: true, allowWatchBookmarks: true, ...range });
    const chunks = await this.#requests.open(asked, silence);
    opened?.();
    for await (const line of linesOf(chunks, this.#clock)) {
      const event = parse(line, this.#requests.asked(asked), { noTemplate }) as WatchLine;
      if (event.type === 'ERROR') throw statusFailure(this.#requests.asked(asked), event.object);
      // A flood of such would never end, and count as a watch that goes well.
      if (!isVersioned(event)) throw noApi(this.#requests.asked(asked), 'an event without a version');
      yield event;
    }
  }

  /** The log of a Pod, as it comes. @param path of its subresource `log` */
  async *logs(path: string, options: LogOptions): AsyncGenerator<string> {
    const { container, follow, tailLines, sinceTime, timestamps, previous, limitBytes } = options;
    const since = sinceTime === undefined ? undefined : new Date(sinceTime).toISOString();
    const query = { container, follow, tailLines, sinceTime: since, timestamps, previous, limitBytes };
    // A character may be cut by the border of two pieces.
    const decoder = new TextDecoder();
    for await (const chunk of await this.#requests.open(request('GET', path, options, query))) {
      const text = decoder.decode(chunk, { stream: true });
      if (text !== '') yield text;
    }
    const rest = decoder.decode();
    if (rest !== '') yield rest;
  }

  /** Ends what is under way. */
  close(): Promise<void> {
    return this.#requests.close();
  }

  async #listOnce<R>(
    path: string,
    options: ListOptions,
    record: (object: KubernetesObject) => R | undefined,
  ): Promise<Listed<R>> {
    const { labelSelector, fieldSelector } = options;
    const { limit: full = 250 } = options;
    let limit = full;
    const items: R[] = [];
    const accept = options.metadataOnly ? metadataTypes.list : undefined;
    const pageAfter = (next: string | undefined): PageAsked => {
      const query = { labelSelector, fieldSelector, limit, continue: next };
      const asked = { ...request('GET', path, options, query), accept };
      return { asked, limit, after: next, answer: this.#requests.send(asked) };
    };
    let bytes = 0;
    let empty = 0;
    let characters = 0;
    // A proxy before servers of two versions may send the list in a circle. Of all tokens one is kept, that of page 1, 2, 4, 8 and so on: it comes
    // again in a circle of any length, and the tokens of all pages would fill the memory.
    let [pages, mark, nextMark] = [0, '', 1];
    /** Pages that stay as small as they are. */
    let small = 0;
    const giveWay = givingWay(this.#clock);
    for (let current = pageAfter(undefined); ;) {
      let read: PageRead;
      try {
        read = await this.#page(current, pageAfter);
      } catch (error) {
        if (!isKubernetesError(error, 'kubernetes-too-large')) throw error;
        if (current.limit <= 1) throw objectTooLarge(path, error, await this.#nameIn(current.asked));
        limit = Math.floor(current.limit / 2);
        small = pagesAlike;
        current = pageAfter(current.after);
        continue;
      }
      const asked = this.#requests.asked(current.asked);
      const {
        page: { items: found, resourceVersion, next },
        early,
        ahead,
      } = read;
      // One large object must not make the rest of a long list slow: its continue token lives for some minutes. Where all are large, a page of
      // twice as many would be asked for in vain each time.
      if (small > 0) small -= 1;
      else limit = Math.min(full, 2 * limit);
      bytes += read.bytes;
      if (bytes > longestList) throw noApi(asked, `a list of more than ${longestList} bytes`);
      for (const object of found) {
        // Others have their turn: secrets may be looked for in each object.
        await giveWay();
        const kept = record(object);
        if (kept === undefined) continue;
        items.push(kept);
        characters += sizeOf(kept);
      }
      if (next === undefined) return { items, resourceVersion };
      if (next === mark) throw noApi(asked, 'a page behind which one comes that was there before');
      if (++pages === nextMark) [mark, nextMark] = [next, 2 * nextMark];
      empty = found.length === 0 ? empty + 1 : 0;
      if (empty > mostEmpty) throw noApi(asked, `more than ${mostEmpty} pages without an object`);
      if (items.length > mostKept.objects)
        throw noApi(asked, `a list of more than ${mostKept.objects} objects`);
      if (characters > mostKept.characters) throw listTooLarge(path);
      current = ahead !== undefined && next === early ? ahead : pageAfter(next);
    }
  }

  /** @throws KubernetesError `kubernetes-too-large`: fewer objects may be less */
  async #page({ asked, answer }: PageAsked, pageAfter: (next: string) => PageAsked): Promise<PageRead> {
    const { body } = await answer;
    const early = continueIn(body);
    // The server makes the next page while this one is read.
    const ahead = early === undefined ? undefined : pageAfter(early);
    ahead?.answer.catch(() => undefined);
    const page = pageOf(parse(body, this.#requests.asked(asked)), this.#requests.asked(asked));
    return { page, bytes: body.length, early, ahead };
  }

  /** Who the one object of a page is that is too large to be read, where its metadata are not. */
  async #nameIn(asked: Request): Promise<string | undefined> {
    try {
      const page = (await this.#call({ ...asked, accept: metadataTypes.list })) as ListPage;
      const { namespace, name } = presentIn(page.items)[0]?.metadata ?? {};
      return name === undefined || namespace === undefined ? name : `${namespace}/${name}`;
    } catch {
      // The list fails all the same, and says why.
      return undefined;
    }
  }

  async #call(request: Request): Promise<object> {
    const answer = await this.#requests.send(request);
    const asked = this.#requests.asked(request);
    const found: KubernetesObject = parse(answer.body, asked);
    const unnamed = whyUnnamed(found.metadata, asked);
    if (unnamed !== undefined) throw unnamed;
    return found;
  }
}

/**
 * Unknown is never zero: what is no list has not said that there is nothing. Go writes a list without elements as null.
 * @throws KubernetesError for what is no list, and for one whose version or token is no such text
 */
function pageOf(answer: object, asked: Asked): Page {
  const { metadata, items } = answer as Readonly<Record<string, unknown>>;
  if (!isObject(metadata) || items === undefined) throw noApi(asked, 'no list');
  const { resourceVersion, continue: next } = metadata;
  if (resourceVersion === undefined) throw noApi(asked, 'no list');
  const all: unknown = items ?? [];
  if (!Array.isArray(all) || !all.every(isObject)) throw noApi(asked, 'a list whose items are no objects');
  const unnamed = whyUnnamed(metadata, asked);
  if (unnamed !== undefined) throw unnamed;
  if (typeof resourceVersion !== 'string') throw noApi(asked, 'a list whose version is no text');
  if (!isToken(next ?? ''))
    throw noApi(asked, `a list whose metadata.continue is no text of at most ${longestToken} characters`);
  return { items: all, resourceVersion, next: (next as string | null | undefined) || undefined };
}

function isToken(next: unknown): boolean {
  return typeof next === 'string' && next.length <= longestToken;
}

/** Whether it is an event as each API server sends them, bookmarks too. */
function isVersioned({ object }: Partial<WatchEvent>): boolean {
  const version = object?.metadata?.resourceVersion;
  return isToken(version) && version !== '';
}

function objectTooLarge(path: string, cause: KubernetesError, name?: string): KubernetesError {
  const which = name === undefined ? `one object of ${path}` : `object ${name} of ${path}`;
  const message = `${which} alone is too large: ${cause.message}`;
  return new KubernetesError({ code: 'kubernetes-too-large', message, maybeDone: false }, {}, { cause });
}

function listTooLarge(path: string): KubernetesError {
  const message = `the objects of ${path} have more than ${mostKept.characters} characters that would be kept in memory`;
  return new KubernetesError({ code: 'kubernetes-too-large', message, maybeDone: false });
}

function request(method: Request['method'], path: string, options: CallOptions, query?: Query): Request {
  const { signal, timeout, once } = options;
  return { method, path, signal, timeout, once, ...(query && { query }) };
}

function json(value: unknown): NonNullable<Request['content']> {
  return { type: 'application/json', text: JSON.stringify(value) };
}
