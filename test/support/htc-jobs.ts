import { Buffer } from 'node:buffer';
import type { HtcJob, HtcJobSpec } from '../../src/sources/htcjob/resource.ts';
import { type JobPlan, planJobs, type PlanContext } from '../../src/sources/htcjob/job/plan.ts';

/** A resource as the API server has it. */
export function htcJob(spec: Partial<HtcJobSpec> = {}, name = 'zero', uid = `uid-of-${name}`): HtcJob {
  return {
    metadata: { name, namespace: 'default', uid, resourceVersion: '1', generation: 1 },
    spec: { name, script: { image: 'centos', command: 'sh', source: 'echo "A"\n' }, ...spec },
  };
}

/** A plan that has to be good. */
export function goodPlan(job: HtcJob, context: Partial<PlanContext> = {}): JobPlan & { readonly ok: true } {
  const plan = planJobs(job, { secrets: new Map(), binds: [], runtime: 'none', ...context });
  if (!plan.ok) throw new Error(JSON.stringify(plan.problems));
  return plan;
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
