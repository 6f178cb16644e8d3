import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { crd } from '../../../src/clients/htcjob/crd.ts';
import { deployment, finalizerPolicy, rights, settings } from '../../../src/clients/htcjob/manifests.ts';
import { longestRanges } from '../../../src/clients/htcjob/numbers.ts';
import { type HtcJobCondition, type HtcJobStatus, mostJobs } from '../../../src/clients/htcjob/resource.ts';
import { notesOf } from '../../../src/sources/htcjob/events.ts';
import type { JobFacts } from '../../../src/sources/htcjob/facts.ts';
import type { Judged } from '../../../src/sources/htcjob/judge.ts';
import { type OutputFacts, withOutputs } from '../../../src/sources/htcjob/output/output-status.ts';
import { directoryOf } from '../../../src/sources/htcjob/output/place.ts';
import { statusOf, whileDeleting } from '../../../src/sources/htcjob/status.ts';
import { KerberosCredManager } from '../../../src/plugins/credentials/kerberos/index.ts';
import { runHere } from '../../support/command-line.ts';
import { mistakes } from '../../support/credential-manager.ts';

const directory = join(import.meta.dirname, '../../../templates/kubernetes/htcjob');
const files = {
  'crd.yaml': [crd()],
  'rbac.yaml': rights(),
  'settings.yaml': settings(),
  'deployment.yaml': deployment(),
  'finalizer-policy.yaml': finalizerPolicy(),
};

interface Bounds {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maximum?: number;
  readonly items?: Bounds;
  readonly properties?: Readonly<Record<string, Bounds>>;
}

const [version] = (crd()['spec'] as { versions: { schema: { openAPIV3Schema: Bounds } }[] }).versions;
const statusSchema = version?.schema.openAPIV3Schema.properties?.['status']?.properties ?? {};

/** Places at which a value is larger than its schema lets it be. */
function excesses(value: unknown, schema: Bounds, at = ''): readonly string[] {
  const { maxLength = Infinity, maxItems = Infinity, maximum = Infinity, items = {}, properties } = schema;
  if (typeof value === 'string') return value.length > maxLength ? [at] : [];
  if (typeof value === 'number') return value > maximum ? [at] : [];
  if (Array.isArray(value))
    return value.length > maxItems
      ? [at]
      : value.flatMap((one, index) => excesses(one, items, `${at}/${index}`));
  return Object.entries(value as object).flatMap(([key, one]) => {
    const its = properties?.[key];
    return its === undefined ? [`${at}/${key} (unknown)`] : excesses(one, its, `${at}/${key}`);
  });
}

/** All that thresher may say of 10,000 jobs: two of three succeeded, and all have long words. */
function largestStatus(): HtcJobStatus {
  const words = 'x'.repeat(100_000);
  const jobs = Array.from({ length: mostJobs }, (_, number): Judged => {
    const outcome = number % 3 < 2 ? 'succeeded' : 'failed';
    const facts = { batchId: words, exitCode: 1, message: words, submitTime: 1, endTime: 1 };
    return { number, index: number, outcome, facts: facts as JobFacts };
  });
  const status = statusOf({
    uid: 'u'.repeat(36),
    generation: 1,
    factory: 'f',
    isClaimed: true,
    round: 1,
    isSuspended: true,
    judgement: { jobs, toEnd: [], retried: 1, isOver: true },
    waiting: { code: 'a-code', message: words },
    lastWords: undefined,
    holdReason: words,
    noMachine: undefined,
    stopped: undefined,
    reports: new Map(jobs.map(({ number }) => [number, 1])),
    before: { takenOver: true },
    now: 0,
  });
  const numbers = jobs.map(({ number }) => number);
  const outputs: OutputFacts = {
    directory: directoryOf(
      { namespace: 'n'.repeat(63), name: 'n'.repeat(253), uid: 'u'.repeat(36), resourceVersion: '1' },
      { output: { directory: `${'d'.repeat(99)}/${'d'.repeat(100)}` } },
    ).join('/'),
    count: mostJobs,
    kept: new Set(numbers.filter((number) => number % 3 < 2)),
    missing: new Map(numbers.filter((number) => number % 3 === 2).map((number) => [number, words])),
    trouble: words,
  };
  return whileDeleting(
    withOutputs(status, outputs, 0),
    { left: 1, whys: [{ code: 'a-code', message: words }, undefined] },
    0,
  );
}

/** Written anew with UPDATE_TEMPLATES=1. */
function textOf(documents: readonly object[]): string {
  return documents
    .map((document) => stringify(document, { aliasDuplicateObjects: false, singleQuote: true }))
    .join('---\n');
}

describe('the manifests of the operator of HTCJobs', () => {
  for (const [name, documents] of Object.entries(files))
    it(`lie in templates/kubernetes/htcjob/${name} as thresher prints them`, () => {
      const file = join(directory, name);
      if (process.env['UPDATE_TEMPLATES']) writeFileSync(file, textOf(documents));
      expect(readFileSync(file, 'utf8')).to.equal(textOf(documents));
    });

  for (const [command, documents] of [
    ['crd', [crd()]],
    ['rbac', rights()],
    ['manifests', [...settings(), crd(), ...rights(), ...deployment()]],
  ] as const)
    it(`are printed by thresher htcjob ${command}, without settings and a daemon`, async () => {
      const { status, stdout, stderr } = await runHere('htcjob', command);
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
      expect(parseAllDocuments(stdout).map((document) => document.toJS() as object)).to.deep.equal(documents);
    });

  it('hole 6: give each new Pod the name of the machine that the former one had, as it has its state', () => {
    const hostnames = deployment().flatMap(({ kind, spec }) =>
      kind === 'Deployment'
        ? [(spec as { template: { spec: { hostname?: string } } }).template.spec.hostname]
        : [],
    );
    expect(hostnames).to.deep.equal(['thresher-htcjob']);
  });

  it('B9: have a credential manager that reads the Secrets which the Deployment mounts, once its # are gone', async () => {
    const [, map] = settings() as readonly { readonly data?: Readonly<Record<string, string>> }[];
    const text = (map?.data?.['thresher.yaml'] ?? '').replaceAll(/^# (?!With)/gm, '');
    const { credmanager } = parse(text) as {
      credmanager: { pluginConfigs: { module: string; name: string; configs: Record<string, object> }[] };
    };
    const [manager] = credmanager.pluginConfigs;
    const { module, name, configs = {} } = manager ?? {};
    expect({ module, name }).to.deep.equal({
      module: KerberosCredManager.module,
      name: KerberosCredManager.name,
    });
    expect(await mistakes(KerberosCredManager, configs['kerberos'])).to.deep.equal([]);
    const { secretDirectory = '', ccache = '' } = configs['kerberos'] as Record<string, string>;
    const pod = JSON.stringify(deployment());
    expect(pod).to.contain(`"mountPath":"${secretDirectory}"`).and.to.contain(`"value":"FILE:${ccache}"`);
    for (const secret of ['kerberos-keytab-secret', 'kinit-secret'])
      expect(pod).to.contain(`"secret":{"name":"${secret}","optional":true}`);
  });

  it('hole 8: bound each text and each list of a status but its conditions, and let the largest one of thresher in', () => {
    const { returnCodes, jobid, jobIds, conditions, ...others } = statusSchema;
    const ofItems = {
      jobid: jobid?.items ?? {},
      jobIds: jobIds?.items ?? {},
      ...conditions?.items?.properties,
    };
    const bounds = Object.entries<Bounds>({ ...others, ...ofItems });
    const unbounded = bounds.filter(([, bound]) => {
      const isFree = bound.type === 'string' && bound.format !== 'date-time' && bound.enum === undefined;
      return isFree && bound.maxLength === undefined;
    });
    expect(unbounded.map(([name]) => name)).to.deep.equal([]);
    expect([returnCodes, jobid, jobIds].map((list) => list?.maxItems)).to.deep.equal([
      mostJobs,
      mostJobs,
      mostJobs,
    ]);
    expect(excesses(largestStatus(), { properties: statusSchema })).to.deep.equal([]);
    const tooLong = { completedIndexes: 'x'.repeat(longestRanges + 1), jobIds: ['x'.repeat(2000)] };
    expect(excesses(tooLong, { properties: statusSchema })).to.deep.equal(['/completedIndexes', '/jobIds/0']);
  });

  it('hole 8: let conditions of other writers stay, whose Events cost a look at each', () => {
    let reads = 0;
    const condition = (type: string): HtcJobCondition => ({
      get type() {
        reads++;
        return type as HtcJobCondition['type'];
      },
      status: 'True',
      reason: 'Theirs',
      message: '',
      lastTransitionTime: '',
    });
    const conditions = Array.from({ length: 5000 }, (_, number) => condition(`Theirs${number}`));
    const after = [...conditions, condition('Held')];
    expect(notesOf({ conditions }, { conditions: after })).to.have.length(1);
    expect(reads).to.be.at.most(4 * after.length);
  });

  it('give the operator no right to read Secrets of the whole cluster, to create HTCJobs or to replace them whole', () => {
    const bound = rights().filter(({ kind }) => kind === 'ClusterRoleBinding');
    expect(bound.map(({ roleRef }) => (roleRef as { readonly name: string }).name)).to.deep.equal([
      'thresher-htcjob',
    ]);
    const role = rights().find(({ kind, metadata }) => {
      return kind === 'ClusterRole' && (metadata as { name: string }).name === 'thresher-htcjob';
    }) as {
      readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
    };
    expect(role.rules.map(({ resources, verbs }) => [resources, verbs])).to.deep.equal([
      [['htcjobs'], ['get', 'list', 'watch', 'patch', 'delete']],
      [['htcjobs/status'], ['patch']],
      [['events'], ['create', 'list']],
    ]);
  });
});
