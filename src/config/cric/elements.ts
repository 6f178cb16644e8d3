import { isObject, type JsonObject } from '../../util/json.ts';
import { paramsOf } from './entry.ts';
import { isLine, isUnsaid } from './forms.ts';
import type { Report } from './report.ts';

const flavours: ReadonlySet<string> = new Set(['arc-ce', 'cream-ce', 'htcondor-ce']);

/** A CE as `ceList` has it, which decides about its port and its state. */
export interface Element {
  readonly ce_endpoint: string;
  readonly ce_flavour: string;
  readonly ce_state: string;
  readonly ce_queue_name?: string;
  readonly ce_jobmanager?: string;
  readonly ce_version?: string;
}

/**
 * The CEs of an entry that HTCondor can speak to. One that is not active stays in the list, so that a queue whose CEs
 * are all switched off says that, and sends no worker elsewhere. `ce_hostname` is not taken over: it is that of the endpoint, as
 * in Harvester.
 */
export function cesOf(entry: JsonObject, report: Report): Element[] {
  const { queues } = entry;
  if (isUnsaid(queues)) return [];
  if (!Array.isArray(queues)) {
    report.wrong(['queues'], queues, 'a list');
    return [];
  }
  const { queue } = specialWords(entry);
  return (queues as unknown[]).flatMap((one, at): Element[] => {
    if (!isObject(one)) {
      report.wrong(['queues', at], one, 'an object');
      return [];
    }
    const { ce_endpoint: endpoint, ce_flavour, ce_state, ce_queue_name, ce_jobmanager, ce_version } = one;
    if (isUnsaid(endpoint)) return [];
    if (!isLine(endpoint)) {
      report.wrong(['queues', at, 'ce_endpoint'], endpoint, '"HOST" or "HOST:PORT"');
      return [];
    }
    const flavour = textOf(ce_flavour)?.toLowerCase() ?? '';
    if (!flavours.has(flavour)) return [];
    const parts = {
      ce_queue_name: queue ?? textOf(ce_queue_name),
      ce_jobmanager: textOf(ce_jobmanager),
      ce_version: textOf(ce_version),
    };
    const said = Object.entries(parts).filter(([, value]) => value !== undefined);
    return [
      {
        ce_endpoint: endpoint,
        ce_flavour: flavour,
        // Without a state a CE is not active, as in Harvester; the list's own default is another.
        ce_state: textOf(ce_state)?.toUpperCase() ?? 'UNKNOWN',
        ...Object.fromEntries(said),
      },
    ];
  });
}

/** The namespace of a Kubernetes queue, and where it stands. Source: Harvester's `get_k8s_namespace`. */
export function namespaceIn(
  entry: JsonObject,
  report: Report,
): { readonly name: string; readonly path: readonly (string | number)[] } | undefined {
  const { queues } = entry;
  const first: unknown = Array.isArray(queues) ? queues[0] : undefined;
  const places = [
    { path: ['queues', 0, 'ce_queue_name'], value: isObject(first) ? first.ce_queue_name : undefined },
    { path: ['params', 'k8s.namespace'], value: paramsOf(entry)['k8s.namespace'] },
  ];
  for (const { path, value } of places) {
    if (isUnsaid(value)) continue;
    if (typeof value === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value))
      return { name: value, path };
    report.wrong(path, value, 'the name of a namespace');
  }
  return undefined;
}

/** Parts of `special_par`: `(queue=NAME)(xcount=N)(maxWallTime=S)`. Source: Harvester's make_a_jdl. */
export function specialWords({ special_par: special }: JsonObject): {
  readonly queue?: string;
  readonly xcount?: string;
  readonly maxWallTime?: string;
} {
  if (typeof special !== 'string') return {};
  const words = special
    .matchAll(/\((queue|xcount|maxWallTime)=([^)\r\n]+)(\)?)/g)
    // A part without an end is read once, not anew at each beginning in it.
    .filter(([, , , end]) => end !== '')
    .toArray();
  // The first of several counts.
  return Object.fromEntries(words.toReversed().map(([, key = '', value = '']) => [key, value]));
}

/** Numbers are texts here: a version may be one. */
function textOf(value: unknown): string | undefined {
  if (isLine(value)) return value === '' ? undefined : value;
  return typeof value === 'number' ? String(value) : undefined;
}
