import { expect } from 'chai';
import { parse, whyUnnamed } from '../../../src/clients/kubernetes/answers.ts';
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
  return parse(JSON.stringify({ type: 'ADDED', object }), asked, { noTemplate: true });
}

describe('a Job that is read without the template of its Pods', () => {
  it('has all that stands beside the template', () => {
    const job = jobWith({});
    const { parallelism, backoffLimit, ttlSecondsAfterFinished, completionMode, suspend } = job.spec;
    const spec = { parallelism, backoffLimit, ttlSecondsAfterFinished, completionMode, suspend };
    const object = { ...job, spec };
    expect(read(job)).to.deep.equal({ type: 'ADDED', object });
    const managedFields = [{ manager: 'thresher', fieldsV1: { 'f:spec': { 'f:template': {} } } }];
    const managed = { ...job, metadata: { ...job.metadata, managedFields } };
    expect(read(managed)).to.deep.equal({ type: 'ADDED', object });
  });

  it('has it whatever the template holds, and whatever keys stand behind it', () => {
    const labels = { completionMode: 'mine', template: 'mine' };
    for (const completionMode of ['NonIndexed', undefined]) {
      const job = jobWith({ metadata: { labels }, template: {} }, { completionMode });
      const { spec } = (read(job) as { object: { spec: object } }).object;
      expect(spec).to.include({ parallelism: 1, suspend: false, ...(completionMode && { completionMode }) });
      expect(spec).not.to.have.property('template');
    }
  });

  it('is read whole where it has no template', () => {
    const pod = {
      kind: 'Pod',
      metadata: { name: 'one', labels: { template: 'a' } },
      spec: { containers: [] },
    };
    expect(read(pod)).to.deep.equal({ type: 'ADDED', object: pod });
  });
});

describe('an answer that is as long as it may be', () => {
  const within = (inner: string) =>
    `{"metadata":{"name":"a"},"spec":{"labels":{"annotations":{"ownerReferences":{"command":{"template":{"managedFields":${inner}}}}}}}}`;
  const long = 100_000;
  const early = '"a":1,"managedFields":[{"f:}]":{}}],';
  const inners = {
    blanks: `[${' '.repeat(long)}]`,
    digits: `[${'1'.repeat(long)}]`,
    'a text of quotes': `["${'\\"'.repeat(long / 2)}"]`,
    'a text of slashes': `["${'\\\\'.repeat(long / 2)}"]`,
    'short texts of quotes': `[${'"\\"",'.repeat(long / 6)}1]`,
    lists: `[${'[],'.repeat(long / 3)}1]`,
    'objects that are left out': `[${'{"labels":{"managedFields":[]}},'.repeat(long / 32)}1]`,
    'beginnings of what is left out': `[${'{"labels":'.repeat(long / 10)}`,
    'a text without end': `["${'\\"'.repeat(long / 2)}`,
  };
  const texts = Object.entries(inners).flatMap(([what, inner]) => [
    [what, within(inner)] as const,
    [`${what}, cut off`, within(inner).slice(0, -8)] as const,
    [`${what}, beside an early end`, within(inner).replace('"labels"', `${early}"labels"`)] as const,
  ]);
  for (const [what, text] of texts)
    it(`hole 8: is looked at once: ${what}`, async () => {
      for (const noTemplate of [false, true]) {
        const looked = await charactersLookedAt(() => {
          try {
            parse(text, asked, { noTemplate });
          } catch (error) {
            expect(error).to.have.property('code', 'kubernetes-no-api');
          }
        });
        // Each mask of the sentence on what is no JSON looks at its beginning, too.
        expect(4 * looked, what).to.be.at.most(1.5 * text.length);
      }
    });

  it('hole 8: is not looked at without end where all of it is left out', () => {
    const text = (many: number, piece: string) =>
      `{"metadata":{"name":"a","managedFields":[${piece.repeat(many)}]}}`;
    for (const piece of [' ', '1']) {
      const long = text(4_100_000, piece);
      expect(() => parse(long, asked))
        .to.throw()
        .with.property('code', 'kubernetes-too-large');
      expect(parse(text(3_900_000, piece), asked)).to.deep.equal({ metadata: { name: 'a' } });
    }
  });

  it('hole 8: is looked at no further than its bounds, where nothing of it is left out or all', async () => {
    for (const [piece, most] of [
      ['"managedFields":[]', 1_000_000],
      ['""', 3_500_000],
      ['[', 400_000],
      [',', 500_000],
    ] as const) {
      const text = `{${piece.repeat(7_800_000 / piece.length)}`;
      const looked = await charactersLookedAt(() => {
        expect(() => parse(text, asked), piece)
          .to.throw()
          .with.property('code', 'kubernetes-too-large');
      });
      expect(4 * looked, piece).to.be.at.most(most);
    }
  });

  it('hole 8: has no hundreds of thousands of texts with quotes in them', () => {
    const text = (many: number) => `{"spec":[${Array(many).fill('"\\""').join(',')}]}`;
    expect(() => parse(text(210_000), asked))
      .to.throw()
      .with.property('code', 'kubernetes-too-large');
    expect(parse(text(190_000), asked)).to.have.property('spec');
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
