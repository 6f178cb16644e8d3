import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import { isKubernetesError } from '../kubernetes/errors.ts';
import type { KubernetesObject } from '../kubernetes/objects.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { check } from '../../util/schema.ts';
import { type Clock, givingWay, nextTurn } from '../../util/clock.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import {
  beginningWithoutOwn,
  factsInTurns,
  holdsOwn,
  mayHide,
  perText,
  withoutOwn,
} from '../../util/own-secrets.ts';
import { sizeOf } from '../../util/json.ts';
import { maskText } from '../../util/secrets.ts';
import { ThresherError } from '../../worker/errors.ts';
import { clientOf } from './client.ts';
import { type HtcJobOptions as Options, HtcJobOptions } from './options.ts';
import { attemptOf } from './numbers.ts';
import {
  apiVersion,
  countingStatus,
  fieldManager,
  type HtcJob,
  htcJobKind,
  htcJobs,
  type HtcJobSpec,
  type HtcJobStatus,
  isNamed,
  writtenStatus,
} from './resource.ts';

export interface ReaderParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly files: OperatorFiles;
  /** Directory of the settings. */
  readonly configDir: string;
}

/** An Event about a HTCJob. */
export interface HtcJobEvent {
  readonly time: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

interface EventObject extends KubernetesObject {
  readonly type?: string | null;
  readonly reason?: string | null;
  readonly message?: string | null;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
}

/** Characters that are shown of an Event: of its message, and of each other part. Source: Kubernetes' validation of events. */
const longestMessage = 1024;
const longestWord = 128;

/** Reads the HTCJobs of the operator's cluster with its login, beside the daemon. */
export class HtcJobReader {
  readonly #client: ReturnType<typeof clientOf>;
  readonly #clock: Clock;
  readonly #options: Options;

  /** @param written `sources.htcjob` of the settings. @throws ThresherError `wrong-type` for a mistake in it */
  constructor(written: unknown, parts: ReaderParts) {
    const checked = check(HtcJobOptions, written);
    if (!checked.ok)
      throw new ThresherError(
        'wrong-type',
        `sources.htcjob of the settings: ${checked.problems.map(({ message }) => message).join('; ')}`,
      );
    this.#options = checked.value;
    this.#clock = parts.clock;
    this.#client = clientOf(this.#options, { ...parts, userAgent: 'thresher' });
  }

  /**
   * As they are shown, without their long parts, and without those that have our login in their names: the client takes no answer about one of
   * these.
   */
  async list(namespace: string | undefined, signal: AbortSignal): Promise<readonly HtcJob[]> {
    const all: HtcJob[] = [];
    for (const job of await this.#list(namespace, signal, withoutLongParts)) {
      const { namespace, name, uid } = job.metadata;
      if (![namespace, name, uid].every(isShown)) continue;
      all.push(await this.#shown(job, signal));
      await nextTurn();
    }
    return all;
  }

  /** As the server has them, without their scripts: for what is written back. */
  listStored(namespace: string | undefined, signal: AbortSignal): Promise<readonly HtcJob[]> {
    return this.#list(namespace, signal, withoutSource);
  }

  async #list(
    namespace: string | undefined,
    signal: AbortSignal,
    kept: (job: HtcJob) => HtcJob,
  ): Promise<readonly HtcJob[]> {
    const { namespaces } = this.#options;
    const wanted = namespace === undefined ? (namespaces.length > 0 ? namespaces : [undefined]) : [namespace];
    const found = await Promise.all(
      [...new Set(wanted)].map((one) => {
        const record = (object: KubernetesObject) => (isNamed(object) ? kept(counting(object)) : undefined);
        return this.#client.list(collectionPath(htcJobs, one), { signal }, record);
      }),
    );
    return found.flatMap(({ items }) => items);
  }

  /** As it is shown. See `oneStored`. */
  async one(name: string, signal: AbortSignal): Promise<HtcJob> {
    return this.#shown(await this.oneStored(name, signal), signal);
  }

  /**
   * @param name NAMESPACE/NAME, or NAME alone where one namespace has it.
   * @throws ThresherError `no-such-htcjob`
   */
  async oneStored(name: string, signal: AbortSignal): Promise<HtcJob> {
    const [namespace, own] = name.includes('/')
      ? (name.split('/', 2) as [string, string])
      : [undefined, name];
    const found =
      namespace === undefined
        ? (await this.listStored(undefined, signal)).filter(({ metadata }) => metadata.name === own)
        : await this.#get(namespace, own, signal);
    const [first, second] = found;
    if (first === undefined) throw new ThresherError('no-such-htcjob', `there is no HTCJob ${name}`);
    if (second === undefined) return first;
    const names = found.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
    throw new ThresherError('no-such-htcjob', `several HTCJobs have the name ${name}: write one of ${names}`);
  }

  /** Oldest first. */
  async events({ metadata }: HtcJob, signal: AbortSignal): Promise<readonly HtcJobEvent[]> {
    const { namespace, uid } = metadata;
    const path = collectionPath({ group: '', version: 'v1', resource: 'events' }, namespace);
    const { items } = await this.#client.list(
      path,
      { signal, fieldSelector: `involvedObject.uid=${uid}` },
      (object) => {
        const { type, reason, message, lastTimestamp, eventTime } = object as EventObject;
        return {
          time: beginningFromOutside(lastTimestamp ?? eventTime ?? '', longestWord),
          type: beginningFromOutside(type ?? '', longestWord),
          reason: beginningFromOutside(reason ?? '', longestWord),
          message: beginningFromOutside(message ?? '', longestMessage),
        };
      },
    );
    return items.sort((one, other) => one.time.localeCompare(other.time));
  }

  /** @throws KubernetesError `kubernetes-conflict` where it is not as it was read any more */
  async writeStatus({ metadata }: HtcJob, status: HtcJobStatus, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid, resourceVersion } = metadata;
    const object = {
      apiVersion,
      kind: htcJobKind,
      metadata: { name, namespace, uid, resourceVersion },
      status: writtenStatus(status),
    };
    const options = { kind: 'apply', fieldManager, force: true, metadataOnly: true, signal } as const;
    await this.#client.patch(objectPath(htcJobs, namespace, name, 'status'), object, options);
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** Who may write a HTCJob, or a proxy before the server, may have our login in it. The names stay, by which it is asked for again. */
  async #shown(job: HtcJob, signal: AbortSignal): Promise<HtcJob> {
    let left = mostMasked;
    const show = (text: string) => {
      const isLong = text.length > longestText;
      const said = isLong ? `${beginningWithoutOwn(text, longestText)}...` : withoutOwn(text);
      const first = said.slice(0, left);
      if (first === '' || !mayHide(first)) return said;
      left = Math.max(0, left - Math.max(first.length, perText));
      return maskText(first) + said.slice(first.length);
    };
    const giveWay = givingWay(this.#clock, shortTurn);
    const { metadata, ...others } = (await factsInTurns(job, show, giveWay, signal)) as HtcJob;
    const { name, namespace, uid } = job.metadata;
    const [shownName, shownNamespace, shownUid] = [name, namespace, uid].map((one) =>
      isShown(one) ? one : withoutOwn(one),
    ) as [string, string, string];
    return {
      ...others,
      metadata: { ...metadata, name: shownName, namespace: shownNamespace, uid: shownUid },
    };
  }

  async #get(namespace: string, name: string, signal: AbortSignal): Promise<readonly HtcJob[]> {
    try {
      return [counting((await this.#client.get(objectPath(htcJobs, namespace, name), { signal })) as HtcJob)];
    } catch (error) {
      if (isKubernetesError(error, 'kubernetes-not-found')) return [];
      throw error;
    }
  }
}

/** Number of the job that an origin is an attempt of. */
export function jobNumberOf(index: number): number {
  return attemptOf(index).number;
}

/** The form of names in Kubernetes, and of its UIDs. */
const kubernetesName = /^[a-z\d.-]{1,253}$/;

/**
 * Whether a name is shown as it is. An issuer may have spelled the name of an object in a token of ours: it is shown. A server may have put a token
 * of ours where the name should be, or any piece of it: these have other letters.
 */
function isShown(name: string): boolean {
  return !holdsOwn(name) && (kubernetesName.test(name) || withoutOwn(name) === name);
}

/** With its status as it counts. */
function counting({ status: written, ...others }: HtcJob): HtcJob {
  const status = countingStatus({ status: written });
  return { ...others, ...(status && { status }) };
}

/** Characters of a resource in which secrets of others are looked for by their form: more of them would hold up the daemon. Ours are looked for in all. */
const mostMasked = 100_000;
/** Characters of a text that are shown: it is looked at in one piece. */
const longestText = 256 * 1024;
/** ms of work on one resource after which others have their turn: one text may take some 20 more. */
const shortTurn = 5;
/** Characters of a field that a list shows, about: a user may fill 1.5 MB of each HTCJob, and a list has all of them. */
const longestListed = 16 * 1024;

/** kubectl keeps the script a second time, in an annotation. */
function withoutSource(job: HtcJob): HtcJob {
  const metadata = { ...job.metadata, annotations: {} };
  // An older schema may have let one through without any.
  const spec = job.spec as HtcJobSpec | null | undefined;
  return { ...job, metadata, ...(spec && { spec: { ...spec, script: { ...spec.script, source: '' } } }) };
}

/** Nor with its command and environment, nor any other field that is long. */
function withoutLongParts(job: HtcJob): HtcJob {
  const { metadata, spec, status, ...others } = withoutSource(job);
  const short = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).filter(
        ([, value]) => value !== undefined && sizeOf(value, longestListed) <= longestListed,
      ),
    );
  const shortSpec = (fields: HtcJobSpec) =>
    short({ ...fields, env: undefined, script: { ...fields.script, command: '' } });
  return {
    ...short(others),
    metadata: short(metadata),
    // An older schema may have let one through without any.
    ...((spec as HtcJobSpec | null | undefined) && { spec: shortSpec(spec) }),
    ...(status && { status: short(status) }),
  } as HtcJob;
}
