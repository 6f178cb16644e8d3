import { Buffer } from 'node:buffer';
import type { HtcJob, HtcJobSpec } from '../../src/clients/htcjob/resource.ts';
import { ImageJobs, type MakerContext } from '../../src/sources/htcjob/job/image-jobs.ts';
import type { JobToMake } from '../../src/sources/htcjob/job-maker.ts';
import type { Payload } from '../../src/worker/payload.ts';

/** A resource as the API server has it. */
export function htcJob(spec: Partial<HtcJobSpec> = {}, name = 'zero', uid = `uid-of-${name}`): HtcJob {
  return {
    metadata: { name, namespace: 'default', uid, resourceVersion: '1', generation: 1 },
    spec: { name, script: { image: 'centos', command: 'sh', source: 'echo "A"\n' }, ...spec },
  };
}

/** The payload of a job of a resource that has no mistake. */
export function payloadOf(
  resource: HtcJob,
  number: number,
  { secrets = new Map(), ...context }: Partial<MakerContext & Pick<JobToMake, 'secrets'>> = {},
): Payload {
  const maker = new ImageJobs({ binds: [], runtime: 'none', events: undefined, ...context });
  const problems = maker.problems(resource.spec);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return maker.payload({ resource, number, index: number, secrets });
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
