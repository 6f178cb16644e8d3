import { starterName } from './template/starter.ts';
import type { Rendered, RenderedFile } from '../contracts/rendered.ts';
import type { ProxySecret } from './proxy-secrets.ts';
import type { FilledJob } from './template/fill.ts';
import type { PayloadObject } from './template/payload.ts';
import type { EnvEntry } from './template/template-shape.ts';

export interface RenderParts {
  readonly job: FilledJob;
  /** Name of the pilot's container. */
  readonly pilot: string;
  readonly template: string;
  readonly kubeconfig: string | undefined;
  readonly proxy: { readonly file: string; readonly secret: ProxySecret } | undefined;
  /** Its pilot starts from thresher's own ConfigMap. */
  readonly starter: boolean;
  /** The object with the files of the worker's payload, and sentences on the payload. */
  readonly payload: { readonly object: PayloadObject | undefined; readonly notes: readonly string[] };
}

/** A Job as the API server would get it, with what goes to the namespace beside it. */
export function renderJob(parts: RenderParts): Rendered {
  const { job, pilot, template, kubeconfig, proxy, starter, payload } = parts;
  const container = job.spec.template.spec.containers.find(({ name }) => name === pilot);
  const env = (container?.env ?? []) as readonly EnvEntry[];
  const files: RenderedFile[] = [
    { role: 'template', path: template },
    ...(kubeconfig === undefined ? [] : [{ role: 'kubeconfig', path: kubeconfig }]),
    ...(proxy === undefined ? [] : [{ role: 'proxy', path: proxy.file }]),
  ];
  const { namespace } = job.metadata;
  const notes = [
    ...(proxy === undefined
      ? []
      : [`the proxy goes into the Secret ${proxy.secret.name} of ${namespace}, before the Job`]),
    ...(starter
      ? [`the starter goes into the ConfigMap ${starterName} of ${namespace}, before the Job`]
      : []),
    ...(payload.object === undefined
      ? []
      : [
          `the files of the payload go into the ${payload.object.kind} ${payload.object.name} of ${namespace}, which the Job owns; the Job has parallelism 0 until they are there`,
        ]),
    ...payload.notes,
  ];
  return {
    format: 'yaml',
    document: job,
    environment: Object.fromEntries(
      env.map(({ name, value, valueFrom }) => [name, value ?? fromText(valueFrom)]),
    ),
    files,
    notes,
  };
}

function fromText(source: EnvEntry['valueFrom']): string {
  return source === undefined ? '' : `(from ${JSON.stringify(source)})`;
}
