import { expect } from 'chai';
import { parse, whyUnnamed, withoutPodTemplate } from '../../../src/clients/kubernetes/answers.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { charactersLookedAt } from '../../support/masked-characters.ts';

const asked = { server: 'https://server', method: 'GET', path: '/apis/batch/v1/jobs' };

/** A Job as an API server writes it: its fields in the order of their Go types. */
function jobWith(template: object, more: object = {}) {
  return {
    kind: 'Job',
    apiVersion: 'batch/v1',
    metadata: {
      name: 'one',
      annotations: { text: ',"template":{"metadata":{}},"completionMode":"' },
    },
    spec: {
      parallelism: 1,
      backoffLimit: 0,
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'pilot' }] }, ...template },
      ttlSecondsAfterFinished: 5,
      completionMode: 'NonIndexed',
      suspend: false,
      ...more,
    },
    status: { active: 1 },
  };
}

function read(object: unknown): unknown {
  return parse(JSON.stringify({ type: 'ADDED', object }), asked, { shorten: withoutPodTemplate });
}

describe('a Job that is read without the template of its Pods', () => {
  it('has all that stands beside the template', () => {
    const job = jobWith({});
    const { parallelism, backoffLimit, completionMode, suspend } = job.spec;
    const object = { ...job, spec: { parallelism, backoffLimit, completionMode, suspend } };
    expect(read(job)).to.deep.equal({ type: 'ADDED', object });
    const managedFields = [{ manager: 'thresher', fieldsV1: { 'f:spec': { 'f:template': {} } } }];
    const managed = { ...job, metadata: { ...job.metadata, managedFields } };
    expect(read(managed)).to.deep.equal({ type: 'ADDED', object });
  });

  it('is read whole where only the template holds the key that ends it', () => {
    const labels = { completionMode: 'mine' };
    const job = jobWith({ metadata: { labels } }, { completionMode: undefined });
    const whole: unknown = JSON.parse(JSON.stringify(job));
    expect(read(job)).to.deep.equal({ type: 'ADDED', object: whole });
    const both = jobWith({ metadata: { labels } });
    expect(read(both)).to.have.nested.property('object.spec.completionMode', 'NonIndexed');
    expect(read(both)).not.to.have.nested.property('object.spec.template');
  });

  it('is read whole where it has no such key, or no template', () => {
    const old: unknown = JSON.parse(JSON.stringify(jobWith({}, { completionMode: undefined })));
    expect(read(old)).to.deep.equal({ type: 'ADDED', object: old });
    const pod = { kind: 'Pod', metadata: { name: 'one' }, spec: { containers: [] } };
    expect(read(pod)).to.deep.equal({ type: 'ADDED', object: pod });
  });
});

describe('what an object is known by', () => {
  it('hole 8: is no text of more than 253 characters, in which no secret is looked for', async () => {
    rememberSecret('opaque-known-by-0123456789');
    const longest = 'n'.repeat(253);
    const fitting = { name: longest, namespace: longest, uid: longest, resourceVersion: longest };
    expect(whyUnnamed(fitting, asked)).to.equal(undefined);
    expect(whyUnnamed({ name: 'a', uid: null } as object, asked)).to.equal(undefined);
    for (const key of Object.keys(fitting))
      for (const odd of ['x y '.repeat(25_000), Array(25_000).fill('x y'), { of: 'x y' }, 5]) {
        let why: ReturnType<typeof whyUnnamed>;
        const looked = await charactersLookedAt(() => (why = whyUnnamed({ ...fitting, [key]: odd }, asked)));
        expect(why).to.include({ code: 'kubernetes-no-api', maybeDone: true });
        expect(why?.message).to.contain(`metadata.${key} is no text of at most 253 characters`);
        expect(looked, key).to.be.at.most(3000);
      }
  });
});
