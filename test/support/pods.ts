import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Container, Pod, RetrievedPodData } from '../../src/clients/interlink/wire.ts';
import { isPlan, type PlanContext, planOf, type PodPlan } from '../../src/sources/interlink/pod/plan.ts';

/** A plan's context that allows a Pod no more than it must. */
export const strictContext: PlanContext = {
  runtime: 'apptainer',
  options: [],
  hostPaths: [],
  imagePaths: ['/cvmfs'],
  readOnlyImages: true,
  host: false,
  preExec: false,
  jobScript: false,
  commandPrefix: '',
  exportPodData: true,
  submitCommands: ['request_*', '+MaxRuntime', '+A', '+X'],
  logBytes: 0,
};

/** A body of /create with one container, `main`. */
export function podData(
  container: Partial<Container> = {},
  spec: Partial<Pod['spec']> = {},
  rest: Partial<RetrievedPodData> & { readonly annotations?: Readonly<Record<string, string>> } = {},
): RetrievedPodData {
  const { annotations = {}, ...data } = rest;
  return {
    pod: {
      metadata: {
        name: 'one',
        namespace: 'default',
        uid: 'd6795d3f-d7a0-42b6-8932-68ea81c8af0f',
        annotations,
      },
      spec: { containers: [{ name: 'main', image: 'busybox', command: ['true'], ...container }], ...spec },
    },
    container: null,
    ...data,
  };
}

export function planned(data: RetrievedPodData, context: Partial<PlanContext> = {}): PodPlan {
  const plan = planOf(data, { ...strictContext, ...context });
  if (!isPlan(plan)) throw new Error(plan.map(({ at, message }) => `${at}: ${message}`).join('\n'));
  return plan;
}

export function refusals(data: RetrievedPodData, context: Partial<PlanContext> = {}): readonly string[] {
  const plan = planOf(data, { ...strictContext, ...context });
  return isPlan(plan) ? [] : plan.map(({ at, message }) => `${at}: ${message}`);
}

/** Text of a file of the plan's payload. */
export function planFile({ payload }: PodPlan, name: string): string {
  const file = payload.files?.find((one) => one.name === name);
  return Buffer.from(file?.content ?? '', 'base64').toString();
}

export const linesOf = (plan: PodPlan, name: string, key: string): readonly string[] =>
  planFile(plan, name)
    .split('\n')
    .filter((line) => line.startsWith(`${key} `))
    .map((line) => line.slice(key.length + 1));

/** The files of the plan's volumes: "MODE PATH" and the bytes of each. */
export function volumeFiles(plan: PodPlan): readonly (readonly [string, Buffer])[] {
  const packed = plan.payload.files?.find(({ name }) => name === 'volumes')?.content ?? '';
  const bytes = Buffer.from(packed, 'base64');
  return linesOf(plan, 'pod', 'file').map((line) => {
    const [offset = '', length = '', mode = '', path = ''] = line.split(' ');
    return [`${mode} ${path}`, bytes.subarray(Number(offset), Number(offset) + Number(length))];
  });
}

/** The body of a request that a virtual kubelet sent. */
export function recordedBody(name: string): unknown {
  const file = join(import.meta.dirname, '../fixtures/interlink', name);
  return (JSON.parse(readFileSync(file, 'utf8')) as { body: unknown }).body;
}
