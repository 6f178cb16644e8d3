import type { NamedPod } from '../../../clients/interlink/schemas.ts';
import type { PodStatus } from '../../../clients/interlink/wire.ts';
import { brief } from '../../../util/beginning.ts';
import { type Clock, givingWay } from '../../../util/clock.ts';
import { bounds } from '../bounds.ts';
import { identityOf } from '../identity.ts';
import type { PodBook } from '../pods/pod-book.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';
import { waitText } from '../pods/wait.ts';
import { Refusal } from '../refusal.ts';
import { statusOf, vanished, type ShownContainer, type ShownPod } from './status.ts';
import { disabledIn } from '../pod/disabled.ts';

interface StatusParts {
  readonly book: Pick<PodBook, 'get' | 'isDamaged' | 'isLacking'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Why the job of a Pod has not begun to be submitted. */
  readonly whyPending: (pod: TrackedPod) => string | undefined;
}

/** Characters that each message of a container may have, however many others an answer has. */
const leastMessage = 200;

/** The statuses of Pods that interLink asks for, from memory alone. */
export class PodStatuses {
  readonly #parts: StatusParts;
  readonly #unknown = new UnknownPods();

  constructor(parts: StatusParts) {
    this.#parts = parts;
  }

  /**
   * A Pod that cannot be answered costs the others nothing, and one that is named again is answered once. Others have their turn between two Pods.
   * @throws Refusal where none can
   */
  async of(named: readonly NamedPod[]): Promise<readonly PodStatus[]> {
    const first = new Map<string | undefined, NamedPod>();
    for (const one of named) if (!first.has(one.metadata.uid)) first.set(one.metadata.uid, one);
    // Whatever becomes of the answer, it was asked for.
    for (const uid of first.keys()) this.#hear(uid);
    if (first.size > bounds.statusPods)
      throw new Refusal(413, `the body names ${first.size} Pods; ask for ${bounds.statusPods} at once`);
    const share = Math.floor(bounds.statusMessages / first.size);
    const giveWay = givingWay(this.#parts.clock);
    const answers: (PodStatus | Refusal)[] = [];
    for (const one of first.values()) {
      await giveWay();
      answers.push(this.#statusOrRefusal(one, share));
    }
    const statuses = answers.filter((one): one is PodStatus => !(one instanceof Refusal));
    const [refusal] = answers.filter((one) => one instanceof Refusal);
    if (refusal !== undefined && statuses.length === 0) throw refusal;
    return statuses;
  }

  /** Its /create has come. */
  created(uid: string): void {
    this.#unknown.forget(uid);
  }

  #hear(uid: string | undefined): void {
    const pod = uid === undefined ? undefined : this.#parts.book.get(uid);
    if (pod !== undefined) pod.silentFor = 0;
  }

  /** @param share characters that the messages of the Pod may have together */
  #statusOrRefusal(named: NamedPod, share: number): PodStatus | Refusal {
    const identity = identityOf(named);
    if (typeof identity === 'string') return new Refusal(400, identity);
    const { book, clock } = this.#parts;
    const pod = book.get(identity.uid);
    if (pod !== undefined) pod.isAnswered = true;
    // The file of a Pod may have been lost before it was deleted.
    if (pod !== undefined && pod.record.containers.length > 0) {
      const { record, report, facts, unfetched, words } = pod;
      const shown = shownPod(record, named);
      const most = Math.max(
        leastMessage,
        Math.floor(share / (shown.containers.length + shown.initContainers.length)),
      );
      const show = (message: string) => brief(words.of(message), most);
      return statusOf(shown, report, facts, this.#whyWaits(pod), unfetched, show);
    }
    // Its job may run on: any state would be a wrong one.
    if (book.isDamaged(identity.uid))
      return new Refusal(500, `the file of the Pod ${identity.uid} is damaged, and its job is left alone`);
    if (book.isLacking(identity.uid))
      return new Refusal(500, `the file of the Pod ${identity.uid} is missing, and its job is left alone`);
    const { containers, initContainers } = named.spec ?? {};
    const unknown = {
      ...identity,
      containers: imagesOf(containers),
      initContainers: imagesOf(initContainers),
    };
    if (unknown.containers.length === 0)
      return new Refusal(
        404,
        `no Pod with the UID ${identity.uid} is known, and the request lists no container`,
      );
    if (unknown.containers.length + unknown.initContainers.length > bounds.statusContainers)
      return new Refusal(
        413,
        `the Pod ${identity.uid} is not known, and lists more than ${bounds.statusContainers} containers`,
      );
    // The virtual kubelet writes this annotation once /create has answered: a Pod without it is not accepted yet.
    const jid = named.metadata.annotations?.['JobID'];
    if (typeof jid === 'string') return vanished(unknown, jid, 'thresher knows no job of this Pod any more');
    if (this.#unknown.mayCome(identity.uid, clock.monotonic()))
      return statusOf(unknown, undefined, undefined, 'thresher was not asked to create this Pod yet');
    return vanished(unknown, '', 'thresher was never asked to create this Pod, or has lost it');
  }

  #whyWaits(pod: TrackedPod): string | undefined {
    const { facts, endReason, holdReason, wait } = pod;
    const known = endReason ?? holdReason;
    if (known !== undefined) return known;
    if (wait !== undefined && typeof facts?.batchId === 'string') return waitText(wait, facts.batchId);
    if (facts !== undefined && facts.status !== 'pending') return undefined;
    if (facts === undefined && pod.hadJob)
      return 'its job is looked for, since the database does not know it';
    return this.#parts.whyPending(pod);
  }
}

function imagesOf(
  containers: readonly { readonly name: string; readonly image?: string }[] | null | undefined,
) {
  return (containers ?? []).map(({ name, image = '' }) => ({ name, image }));
}

/** A Pod that was accepted, with the containers that the virtual kubelet left out of /create and lists in /status. */
function shownPod(accepted: ShownPod, { metadata, spec }: NamedPod): ShownPod {
  const { uid, name, namespace } = accepted;
  const withMore = (list: 'containers' | 'initContainers'): readonly ShownContainer[] => {
    const known = accepted[list];
    const listed = spec?.[list] ?? [];
    const names = new Set(known.map(({ name: one }) => one));
    const others = listed.filter((one) => !names.has(one.name));
    if (others.length === 0) return known;
    const disabled = disabledIn({ metadata }, list);
    const more = others.filter((one) => disabled.has(one.name));
    return [
      ...known,
      ...more.map((one) => ({ name: one.name, image: one.image ?? '', isOff: true as const })),
    ];
  };
  return {
    uid,
    name,
    namespace,
    containers: withMore('containers'),
    initContainers: withMore('initContainers'),
  };
}

/** How long a Pod that interLink asks for may be without a /create, ms: interLink waits 5 minutes for its volumes. */
const patience = 15 * 60_000;

/** Pods that are kept in mind; beyond them those that were asked for first are forgotten. */
const most = 10_000;

/** Pods that interLink asks for, and that it has not asked to create. Times are ms of a clock that only grows. */
export class UnknownPods {
  /** By UID: when it was asked for first. */
  readonly #asked = new Map<string, number>();

  /** Whether the /create of a Pod may still come. */
  mayCome(uid: string, now: number): boolean {
    const first = this.#asked.get(uid);
    if (first !== undefined) return now - first < patience;
    const [oldest] = this.#asked.size < most ? [] : this.#asked.keys();
    if (oldest !== undefined) this.#asked.delete(oldest);
    this.#asked.set(uid, now);
    return true;
  }

  /** It is known now. */
  forget(uid: string): void {
    this.#asked.delete(uid);
  }
}
