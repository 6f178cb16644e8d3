import { expect } from 'chai';
import type { TSchema } from 'typebox';
import { type CricField, cricFields } from '../../../src/config/cric/fields.ts';
import { cricLayer } from '../../../src/config/cric/layer.ts';
import { QueueOptions, WorkerOptions } from '../../../src/config/queues/queue-schema.ts';
import { HTCondorSubmitterConfig } from '../../../src/plugins/htcondor/schema.ts';
import { K8sSubmitterConfig } from '../../../src/plugins/kubernetes/schema.ts';
import { isObject, type JsonObject } from '../../../src/util/json.ts';
import { check } from '../../../src/util/schema.ts';

const submitterOf = {
  any: { name: 'LocalSubmitter', module: 'thresher/local' },
  kubernetes: { name: 'K8sSubmitter', module: 'thresher/kubernetes' },
  htcondor: { name: 'HTCondorSubmitter', module: 'thresher/htcondor', useCRIC: true },
} as const;

/** The schemas that read the option of a field. */
function schemaOf({ section, option, reach }: CricField): TSchema | undefined {
  const schemas = {
    any: section === 'queue' ? QueueOptions : WorkerOptions,
    kubernetes: K8sSubmitterConfig,
    htcondor: HTCondorSubmitterConfig,
  };
  return (schemas[reach].properties as Readonly<Record<string, TSchema>>)[option];
}

const entryWith = ({ field: [first, second] }: CricField, value: unknown): JsonObject =>
  second === undefined ? { [first]: value } : { [first]: { [second]: value } };

function layerWith(field: CricField, value: unknown) {
  const values = { submitter: submitterOf[field.reach], monitor: {}, sweeper: {} };
  return cricLayer(entryWith(field, value), { name: 'Q', values, file: '/cric.json' });
}

/** The value of the field's option in the layer. */
function optionIn(layer: JsonObject, { section, option }: CricField): unknown {
  const { submitter } = layer;
  if (section === 'queue') return layer[option];
  return isObject(submitter) ? submitter[option] : undefined;
}

/** Values of every kind that JSON has, at and beyond the bounds of the forms. */
const samples: readonly unknown[] = [
  ...['', 'x', '/x', 'true', '8', 'a b', '3.12.4.1', 'two\nlines', '/two\nlines'],
  ...[true, false, null, [], {}, ['x'], { a: 1 }],
  ...[0, 1, 8, -1, -0.5, 0.5, 2500.5, 90, 99, 100, 101, 150, 2 ** 40, 2 ** 53, 2 ** 60, 1e300],
];

describe('a field of CRIC that becomes one option', () => {
  for (const field of cricFields) {
    const name = field.field.join('.');
    describe(`${name} (${field.reach})`, () => {
      it(`is an option that there is: ${field.option}`, () => {
        expect(schemaOf(field)).to.not.equal(undefined);
      });

      it('passes no value that the option would refuse, and says which it leaves out', () => {
        const schema = schemaOf(field);
        if (schema === undefined) throw new Error(`no schema has ${field.option}`);
        const usual = optionIn(layerWith(field, undefined).values, field);
        const verdicts = samples.map((sample) => {
          const { values, problems } = layerWith(field, sample);
          const value = optionIn(values, field);
          const unsaid = sample === null || sample === '' || (sample === 0 && field.zeroIsUnsaid === true);
          if (unsaid) return [sample, value === usual && problems.length === 0];
          if (value === undefined || (value === usual && problems.length > 0))
            return [sample, problems.length === 1 && problems[0]?.pointer === `/${field.field.join('/')}`];
          return [sample, problems.length === 0 && check(schema, value).ok];
        });
        expect(verdicts.filter(([, isRight]) => isRight !== true)).to.deep.equal([]);
      });

      it('passes a value', () => {
        const passed = samples.filter(
          (sample) => optionIn(layerWith(field, sample).values, field) !== undefined,
        );
        expect(passed).to.not.deep.equal([]);
      });
    });
  }

  it('stands in the table once for each kind of queue', () => {
    const keys = cricFields.map(({ field, reach }) => `${field.join('.')} ${reach}`);
    expect(new Set(keys).size).to.equal(keys.length);
  });
});
