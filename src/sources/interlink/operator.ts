import type { Pod } from '../../clients/interlink/wire.ts';
import type { InterlinkOptions } from './options.ts';
import type { PlannedPod } from './planner.ts';

const imageRoot = 'slurm-job.vk.io/image-root';
const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;

/** A Pod with what the operator adds to each or takes from it, and sentences on what was taken. */
export function asOperatorSays(
  pod: Pod,
  options: Pick<InterlinkOptions, 'imagePrefix' | 'probes'>,
): { readonly pod: Pod; readonly left: readonly string[] } {
  const { metadata, spec } = pod;
  const annotations = { [imageRoot]: options.imagePrefix, ...metadata.annotations };
  const prefixed = { ...pod, metadata: { ...metadata, annotations } };
  if (options.probes) return { pod: prefixed, left: [] };
  const left = spec.containers
    .filter((container) => probes.some((name) => container[name]))
    .map(({ name }) => `container ${name}: its probes are not done, as the operator has it`);
  const none = { startupProbe: null, livenessProbe: null, readinessProbe: null };
  const containers = spec.containers.map((container) => ({ ...container, ...none }));
  return { pod: { ...prefixed, spec: { ...spec, containers } }, left };
}

/** Sleeps, and leaves the files that the runner leaves: HTCondor holds a job whose files are missing. */
const dummyScript = `cd "\${_CONDOR_SCRATCH_DIR:-.}" || exit 1
sleep "$1" || exit 1
printf %s "$2" >pod-status.json
shift 2
for name; do : >"$name.log" >"$name.log.times"; done`;

/** The job of the same needs that does nothing but sleep: no file and no variable of the Pod goes with it. */
export function withDummy<Plan extends PlannedPod>(
  plan: Plan,
  { spec }: Pod,
  seconds: number | undefined,
): Plan {
  if (seconds === undefined) return plan;
  const { submit, values } = plan.payload;
  const init = (spec.initContainers ?? []).map(({ name }) => ({ name, init: true }));
  const all = [...init, ...spec.containers.map(({ name }) => ({ name, init: false }))];
  const sentence = `its job is a dummy that sleeps ${seconds} s: no container runs`;
  const ended = {
    state: 'terminated',
    exitCode: 0,
    reason: 'Dummy',
    message: sentence,
    ready: false,
    restarts: 0,
  };
  const containers = Object.fromEntries(all.map(({ name, init }) => [name, { init, ...ended }]));
  const report = JSON.stringify({ version: 1, containers });
  const argv = ['/bin/sh', '-c', dummyScript, 'sh', String(seconds), report, ...all.map(({ name }) => name)];
  const payload = { argv, ...(submit && { submit }), ...(values && { values }) };
  return { ...plan, payload, warnings: [...plan.warnings, sentence] };
}
