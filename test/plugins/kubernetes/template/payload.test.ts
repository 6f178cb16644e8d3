import { expect } from 'chai';
import { K8sSubmitterConfig } from '../../../../src/plugins/kubernetes/schema.ts';
import { asPrepared } from '../../../../src/plugins/kubernetes/payload-objects.ts';
import { withStandIns } from '../../../../src/plugins/kubernetes/queue-template.ts';
import { fill, type FilledJob } from '../../../../src/plugins/kubernetes/template/fill.ts';
import { payloadObjectOf } from '../../../../src/plugins/kubernetes/template/payload.ts';
import { parseTemplate } from '../../../../src/plugins/kubernetes/template/template.ts';
import { check } from '../../../../src/util/schema.ts';
import type { Payload } from '../../../../src/worker/payload.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';
import { workerOf } from '../../../support/samples.ts';

interface Mount {
  readonly key: string;
  readonly path: string;
  readonly mode: number;
}

function parsed(pilot: object = {}, pod: object = {}) {
  const containers = [{ name: 'pilot', image: 'busybox', command: ['pilot'], args: ['-v'], ...pilot }];
  const spec = { restartPolicy: 'Never', containers, ...pod };
  const job = { backoffLimit: 0, podReplacementPolicy: 'Failed', template: { spec } };
  const whole = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'mine' }, spec: job };
  return parseTemplate(JSON.stringify(whole), 'a.yaml');
}

function template(pilot: object = {}, pod: object = {}) {
  const loaded = parsed(pilot, pod);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.template;
}

const withPayload = (payload: Payload): WorkerToStart => ({ ...workerOf(17, { name: 'f-17' }), payload });

function filled(payload: Payload, pilot: object = {}, pod: object = {}): FilledJob {
  const checked = check(K8sSubmitterConfig, { k8s_yaml_file: 'a.yaml' });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  const options = { factoryId: 'f', harvesterId: 'h', hostname: 'host1', config: checked.value };
  return fill(template(pilot, pod), withPayload(payload), options);
}

const podOf = (job: FilledJob) => job.spec.template.spec;
const pilotOf = (job: FilledJob) => podOf(job).containers[0] as unknown as Readonly<Record<string, unknown>>;
const volumesOf = (job: FilledJob) =>
  (podOf(job).volumes ?? []).filter(({ name }) => name === 'thresher-payload');

const open = { name: 'a b', mode: 0o755, content: 'YQ==' };
const secret = { name: 'sub/token', mode: 0o640, content: 'c2VjcmV0', secret: true };

describe('a Job of a worker with a payload', () => {
  it('mounts its files under their names from keys that have none, each with its mode', () => {
    const job = filled({ files: [open] });
    expect(volumesOf(job)).to.deep.equal([
      {
        name: 'thresher-payload',
        configMap: { name: 'f-17-payload-1', items: [{ key: 'f0', path: 'a b', mode: 0o755 }] },
      },
    ]);
    expect(pilotOf(job)).to.deep.include({
      command: ['pilot'],
      args: ['-v'],
    });
    expect(pilotOf(job)['volumeMounts']).to.deep.include({
      name: 'thresher-payload',
      mountPath: '/thresher/payload',
    });
    expect(pilotOf(job)['env']).to.deep.include({ name: 'THRESHER_PAYLOAD_DIR', value: '/thresher/payload' });
    const object = payloadObjectOf(withPayload({ files: [open] }));
    expect(object).to.deep.equal({ kind: 'ConfigMap', name: 'f-17-payload-1', data: { f0: 'YQ==' } });
  });

  it('mounts all from one Secret where one is secret, and holds no content itself', () => {
    const job = filled({ files: [open, secret] });
    expect(volumesOf(job)).to.have.nested.property('[0].secret.secretName', 'f-17-payload-1');
    expect(volumesOf(job)).to.have.nested.property('[0].secret.items[1].mode', 0o600);
    expect(JSON.stringify(job)).not.to.include('c2VjcmV0');
  });

  it('runs its arguments in the place of the command, and Kubernetes expands none of them', () => {
    const job = filled({ argv: ['./run.sh', '$(HOME)', '$$', ''], env: { A: '$(B)' } });
    expect(pilotOf(job)).to.deep.include({
      command: ['./run.sh', '$$(HOME)', '$$$$', ''],
      args: [],
      workingDir: '/thresher/payload',
    });
    expect(pilotOf(job)['env']).to.deep.include({ name: 'A', value: '$$(B)' });
    expect(volumesOf(job)).to.deep.equal([{ name: 'thresher-payload', emptyDir: {} }]);
    expect(payloadObjectOf(withPayload({ argv: ['x'] }))).to.equal(undefined);
  });

  it("has each of its variables once, in the place of the template's", () => {
    const env = [
      { name: 'A', value: 'template' },
      { name: 'KEPT', value: '1' },
    ];
    const job = filled({ env: { A: 'payload', nCore: '7' } }, { env });
    const named = (name: string) =>
      (pilotOf(job)['env'] as readonly { name: string }[]).filter((one) => one.name === name);
    expect(named('A')).to.deep.equal([{ name: 'A', value: 'payload' }]);
    expect(named('nCore')).to.deep.equal([{ name: 'nCore', value: '7' }]);
    expect(named('KEPT')).to.deep.equal([{ name: 'KEPT', value: '1' }]);
    expect(volumesOf(job)).to.deep.equal([]);
  });

  const users: readonly (readonly [what: string, pilot: object, pod: object, modes: readonly number[]])[] = [
    ['root', {}, {}, [0o755, 0o600]],
    [
      'root by number',
      { securityContext: { runAsUser: 0 } },
      { securityContext: { runAsUser: 5 } },
      [0o755, 0o600],
    ],
    ['another user', {}, { securityContext: { runAsUser: 1000 } }, [0o755, 0o644]],
    ['no root', { securityContext: { runAsNonRoot: true } }, {}, [0o755, 0o644]],
    ['a user with a group', {}, { securityContext: { runAsUser: 1000, fsGroup: 5 } }, [0o755, 0o600]],
  ];
  for (const [what, pilot, pod, modes] of users)
    it(`gives files modes that ${what} can read them with`, () => {
      const [volume] = volumesOf(filled({ files: [open, secret] }, pilot, pod));
      const { items } = (volume as unknown as { readonly secret: { readonly items: readonly Mount[] } })
        .secret;
      expect(items.map(({ mode }) => mode)).to.deep.equal(modes);
    });

  it('has its values in the template, inert where the kubelet would expand them', () => {
    const values = { image: 'registry/a:1', word: '$(HOME) ${jobName}' };
    const job = filled({ values }, { image: '${payload.image}', args: ['x=${payload.word}'] });
    expect(pilotOf(job)).to.deep.include({ image: 'registry/a:1', args: ['x=$$(HOME) $${jobName}'] });
  });

  it('is a fence of the attempts before until it begins', () => {
    const payload = payloadObjectOf({ ...withPayload({ files: [open] }), attempt: 3 });
    if (payload === undefined) throw new Error('it has files');
    const prepared = asPrepared(filled({ files: [open] }), 3, payload);
    expect(prepared.spec.parallelism).to.equal(0);
    expect(prepared.metadata.annotations).to.include({
      'thresher/fenced-attempt': '2',
      'thresher/payload': 'ConfigMap/f-17-payload-3',
    });
  });
});

describe('a template for payloads', () => {
  it('may name values of a payload, and says which', () => {
    const keys = template({
      image: '${payload.image}',
      args: ['$${payload.no}', '${payload.a.b}'],
    }).payloadKeys;
    expect([...keys]).to.deep.equal(['image', 'a.b']);
  });

  it('may name no value that a payload cannot have', () => {
    const loaded = parsed({ image: '${payload.}' });
    expect(loaded.ok ? [] : loaded.problems.map(({ code }) => code)).to.deep.equal(['unknown-placeholder']);
  });

  it('leaves the place of the files alone', () => {
    const volumes = [{ name: 'data', emptyDir: {} }];
    const loaded = parsed({ volumeMounts: [{ name: 'data', mountPath: '/thresher/payload/' }] }, { volumes });
    const [problem] = loaded.ok ? [] : loaded.problems;
    expect(problem?.pointer).to.equal('/spec/template/spec/containers/0/volumeMounts/0');
    expect(problem?.message).to.include('choose another name and place');
  });

  it('is tried with a text that is a label, a number and a name, where a worker has no values', () => {
    const asked = template({ image: '${payload.image}' });
    expect(withStandIns(workerOf(1), asked).payload).to.deep.equal({ values: { image: '1' } });
    expect(withStandIns(withPayload({ values: { image: 'b' }, argv: ['c'] }), asked).payload).to.deep.equal({
      values: { image: 'b' },
      argv: ['c'],
    });
    expect(withStandIns(workerOf(1), template())).to.deep.equal(workerOf(1));
  });
});
