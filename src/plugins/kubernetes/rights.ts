import { collectionPath } from '../../clients/kubernetes/paths.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import type { Clock } from '../../util/clock.ts';
import type { Reason } from '../../worker/reason.ts';
import type { K8sNamespace } from './namespace.ts';
import { starterName } from './template/starter.ts';

/** The needs of a queue beside the rights of every queue. */
export interface Needs {
  /** Its proxy goes through a Secret. */
  readonly secrets: boolean;
  /** Its pilots start from thresher's own ConfigMap. */
  readonly starter: boolean;
  /**
   * Whether its workers may get files, secret ones among them; `sometimes`: from another source than the queue's own. Only a
   * rehearsal asks: a worker without files needs no right to them.
   */
  readonly files?: 'always' | 'sometimes' | 'never';
}

/** Where the files of a worker go. */
type FileObject = 'ConfigMap' | 'Secret';

interface Right {
  readonly group: string;
  readonly resource: string;
  /** The right counts for this object alone. */
  readonly name?: string;
  readonly verbs: readonly string[];
}

/** Every queue needs these; templates/kubernetes/rbac.yaml gives them. */
const workerRights: readonly Right[] = [
  { group: 'batch', resource: 'jobs', verbs: ['create', 'get', 'list', 'watch', 'delete'] },
  { group: '', resource: 'pods', verbs: ['list', 'watch', 'delete'] },
];
/** A queue needs these, too, where the proxy goes through a Secret. */
const secretRights: readonly Right[] = [
  { group: '', resource: 'secrets', verbs: ['create', 'list', 'delete'] },
];
/** A queue needs these, too, where the template has no command. A creation cannot be limited to a name. */
const starterRights: readonly Right[] = [
  { group: '', resource: 'configmaps', verbs: ['create'] },
  { group: '', resource: 'configmaps', name: starterName, verbs: ['get', 'patch', 'delete'] },
];

/** A worker needs these, too, where it has files. thresher changes its Job once, and never reads or lists what holds the files. */
const beginRight: Right = { group: 'batch', resource: 'jobs', verbs: ['patch'] };
const fileRights: Readonly<Record<FileObject, Right>> = {
  ConfigMap: { group: '', resource: 'configmaps', verbs: ['create'] },
  Secret: { group: '', resource: 'secrets', verbs: ['create'] },
};

/** A queue works without these, a little worse; `without` says what is lost then. */
const usefulRights: readonly (Right & { readonly without: string })[] = [
  { group: '', resource: 'pods/log', verbs: ['get'], without: '`thresher logs` reads nothing' },
  {
    group: '',
    resource: 'events',
    verbs: ['create', 'list'],
    without:
      'Events do not tell what thresher did, and thresher not why a Pod is not made or a volume not mounted',
  },
];

const reviews = collectionPath({
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'selfsubjectaccessreviews',
});

/** How long an answer counts, ms: an admin seldom takes rights away, and gives them while an operator waits. */
const keepAllowed = 300_000;
const keepDenied = 10_000;

/** Which rights the daemon's user lacks in one namespace, as the API server says. */
export class Rights {
  readonly #namespace: K8sNamespace;
  readonly #clock: Clock;
  /** By "verb resource name": whether it is given, and until when that counts, monotonic ms. */
  readonly #known = new Map<string, { readonly allowed: boolean; readonly until: number }>();

  constructor(namespace: K8sNamespace, clock: Clock) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  /** @throws KubernetesError when the server cannot be asked. */
  async missing({ secrets, starter, files }: Needs, signal: AbortSignal): Promise<readonly Reason[]> {
    const wanted = [...workerRights, ...(secrets ? secretRights : []), ...(starter ? starterRights : [])];
    const missing = await this.#lacking(wanted, signal);
    if (files !== 'always') return missing;
    return [...missing, ...(await this.missingForFiles(['ConfigMap', 'Secret'], signal))];
  }

  /** Rights that a worker with files lacks, beside those of its queue. @throws KubernetesError when the server cannot be asked. */
  async missingForFiles(kinds: readonly FileObject[], signal: AbortSignal): Promise<readonly Reason[]> {
    return this.#lacking([beginRight, ...kinds.map((kind) => fileRights[kind])], signal);
  }

  /** Rights that a queue can do without, and what then fails. @throws KubernetesError when the server cannot be asked. */
  async missed(signal: AbortSignal): Promise<readonly Reason[]> {
    const each = usefulRights.map(async (right) =>
      (await this.#lacking([right], signal)).map(({ code, message }) => ({
        code,
        message: `${message}; without it ${right.without}`,
      })),
    );
    return (await Promise.all(each)).flat();
  }

  async #lacking(wanted: readonly Right[], signal: AbortSignal): Promise<readonly Reason[]> {
    const asked = wanted.flatMap((right) =>
      right.verbs.map(async (verb) =>
        (await this.#has(right, verb, signal)) ? [] : [{ resource: right.resource, verb }],
      ),
    );
    const lacking = (await Promise.all(asked)).flat();
    return [...Map.groupBy(lacking, ({ resource }) => resource)].map(([resource, verbs]): Reason => {
      const what = `${verbs.map(({ verb }) => verb).join(', ')} ${resource}`;
      const message = `the user lacks the right to ${what} in namespace "${this.#namespace.name}"; templates/kubernetes/rbac.yaml gives it`;
      return { code: 'kubernetes-forbidden', message };
    });
  }

  async #has(right: Right, verb: string, signal: AbortSignal): Promise<boolean> {
    const key = `${verb} ${right.resource} ${right.name ?? ''}`;
    const known = this.#known.get(key);
    if (known !== undefined && this.#clock.monotonic() < known.until) return known.allowed;
    const allowed = await this.#may(right, verb, signal);
    this.#known.set(key, { allowed, until: this.#clock.monotonic() + (allowed ? keepAllowed : keepDenied) });
    return allowed;
  }

  async #may({ group, resource, name }: Right, verb: string, signal: AbortSignal): Promise<boolean> {
    const { client, name: namespace } = this.#namespace;
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace, group, verb, ...(name && { name }), ...partsOf(resource) } },
    };
    try {
      const answer = (await client.create(reviews, review, { signal })) as {
        readonly status?: { readonly allowed?: boolean };
      };
      return answer.status?.allowed !== false;
    } catch (error) {
      // Without the right to ask, thresher learns of a missing right from the call itself.
      if (isKubernetesError(error, 'kubernetes-forbidden', 'kubernetes-no-api')) return true;
      throw error;
    }
  }
}

/** "pods/log" as the server wants it asked. */
function partsOf(name: string): { readonly resource: string; readonly subresource?: string } {
  const [resource = '', subresource] = name.split('/');
  return { resource, ...(subresource !== undefined && { subresource }) };
}
