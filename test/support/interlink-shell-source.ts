/**
 * The sidecar for interLink with a plan of its own: a Pod's containers run as commands of the machine, one after the other, and leave
 * the files that a job leaves. A container `["sh", "-c", SCRIPT]` runs SCRIPT.
 */
import { defineInterlink } from '../../src/sources/interlink/define.ts';
import type { Planner } from '../../src/sources/interlink/planner.ts';

const runner = `
cd "$_CONDOR_SCRATCH_DIR" || exit 1
name=$1 script=$2
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
report() {
  printf '{"version":1,"containers":{"%s":{"init":false,"ready":true,"restarts":0,%s}}}' "$name" "$1" > pod-status.part
  mv pod-status.part pod-status.json
}
begun=$(now)
report "\\"state\\":\\"running\\",\\"startedAt\\":\\"$begun\\""
sh -c "$script" > "$name.log" 2>&1
code=$?
printf '%s %s\\n' "$(wc -c < "$name.log")" "$(date +%s)" > "$name.log.times"
report "\\"state\\":\\"terminated\\",\\"exitCode\\":$code,\\"startedAt\\":\\"$begun\\",\\"finishedAt\\":\\"$(now)\\""
exit "$code"
`;

const planner: Planner = ({ pod }) => {
  const [container] = pod.spec.containers;
  if (container === undefined) return ['the Pod has no container'];
  const script = container.command?.[2];
  if (script === undefined) return [`container ${container.name} has no script`];
  const content = Buffer.from(runner).toString('base64');
  return {
    payload: {
      files: [{ name: 'run.sh', mode: 0o755, content }],
      argv: ['sh', './run.sh', container.name, script],
    },
    requirements: {},
    containers: [container.name],
    warnings: [],
  };
};

export const shellInterlink = defineInterlink(() => planner, 'interlink-shell');
