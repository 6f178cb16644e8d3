import { expect } from 'chai';
import type { Container, RetrievedPodData } from '../../../../src/clients/interlink/wire.ts';
import { isPlan, planOf } from '../../../../src/sources/interlink/pod/plan.ts';
import { payloadProblems } from '../../../../src/worker/payload-check.ts';
import {
  linesOf,
  planFile,
  planned,
  podData,
  refusals,
  strictContext,
  volumeFiles,
} from '../../../support/pods.ts';

/** By the numbers of the list of defects of interLink's HTCondor plugin; those of its server, status and logs are tested beside these. */
describe('a Pod as a job has none of the known defects of a plugin', () => {
  it('defect 2: a word with blanks, a ";" or "$" stays one word, and an empty one stays', () => {
    const command = ['echo', 'hello  world; echo INJECTED', '$HOME', '', '*', `'"\\`];
    expect(linesOf(planned(podData({ command })), 'c0', 'word')).to.deep.equal([
      ...command.slice(0, 5),
      `'"\\0134`,
    ]);
  });

  it('defect 2: neither a probe nor a name of a variable is text of a shell', () => {
    const livenessProbe = { exec: { command: ['test', '$(touch /tmp/x)'] } };
    const plan = planned(podData({ livenessProbe, env: [{ name: 'a;id', value: '$(id)' }] }));
    expect(linesOf(plan, 'c0', 'word-liveness')).to.deep.equal(['test', '$(touch /tmp/x)']);
    expect(linesOf(plan, 'e0', 'env')).to.deep.equal(['a;id=$(id)']);
  });

  it('defect 3: a name or UID that leaves its directory is refused', () => {
    const data = podData();
    const of = (metadata: object) => ({
      ...data,
      pod: { ...data.pod, metadata: { ...data.pod.metadata, ...metadata } },
    });
    for (const metadata of [{ name: '../../x' }, { uid: '../x' }, { uid: undefined }, { namespace: 'a/b' }])
      expect(refusals(of(metadata))).to.have.length(1);
  });

  it('defect 4: all that comes from a Pod is for the user of the job alone', () => {
    const { payload } = planned(podData({ env: [{ name: 'PASSWORD', value: 'x' }] }));
    const open = (payload.files ?? []).filter(({ secret }) => secret !== true);
    expect(open.every(({ name }) => name.endsWith('.sh'))).to.equal(true);
    expect(payload.env ?? {}).to.deep.equal({});
    expect(payload.argv).to.deep.equal(['./run.sh']);
  });

  it('defect 5: each container has variables of its own', () => {
    const containers = ['a', 'b'].map((name): Container => ({
      name,
      image: 'x',
      env: [{ name: 'WHO', value: name }],
    }));
    const plan = planned(podData({}, { containers }));
    expect([planFile(plan, 'e0'), planFile(plan, 'e1')]).to.deep.equal(['env WHO=a\n', 'env WHO=b\n']);
  });

  it('defect 6: a volume has the keys of its own ConfigMap, and an init container mounts it, too', () => {
    const volumeMounts = [{ name: 'v', mountPath: '/v', subPath: 'k' }];
    const plan = planned(
      podData(
        { volumeMounts },
        {
          initContainers: [{ name: 'i', image: 'x', volumeMounts }],
          volumes: [{ name: 'v', configMap: { name: 'one' } }],
        },
        {
          container: ['i', 'main'].map((name) => ({
            name,
            configMaps: ['one', 'two'].map((map) => ({
              metadata: { name: map },
              data: { k: map, [map]: map },
            })),
          })),
        },
      ),
    );
    expect(volumeFiles(plan).map(([file]) => file)).to.deep.equal(['0644 v/k', '0644 v/one']);
    for (const file of ['c0', 'c1']) expect(linesOf(plan, file, 'bind')).to.deep.equal(['ro volume v/k /v']);
  });

  it('defect 7: no path of the submitting machine gets into a job, and a path below /cvmfs keeps its place', () => {
    const data = (path: string) =>
      podData(
        { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
        { volumes: [{ name: 'v', hostPath: { path } }] },
      );
    expect(refusals(data('/etc/passwd'))).to.have.length(1);
    const plan = planned(data('/cvmfs/a/b'), { hostPaths: ['/cvmfs'] });
    expect(linesOf(plan, 'c0', 'bind')).to.deep.equal(['rw host /cvmfs/a/b /v']);
    expect(plan.payload.files?.every(({ name }) => name !== 'volumes')).to.equal(true);
  });

  it('defect 8: only the image "host" runs on the machine, and only where the operator allows it', () => {
    for (const name of ['localhost:5000/x', 'hostname', 'a/host:1'])
      expect(linesOf(planned(podData({ image: name }), { host: true }), 'pod', 'image')[0]).to.equal(
        `0 remote docker://${name} -`,
      );
    expect(refusals(podData({ image: 'host' }))).to.have.length(1);
    expect(refusals(podData({ image: '/' }), { host: true })).to.have.length(1);
  });

  it('defect 9: memory in each form of Kubernetes is the same memory, and disk and GPUs are asked for', () => {
    for (const [memory, right] of [
      ['1.5Gi', '1536'],
      ['2Ti', '2097152'],
      ['1e9', '954'],
      ['1073741824', '1024'],
      ['512M', '489'],
    ]) {
      const { submit } = planned(podData({ resources: { requests: { memory: memory ?? '' } } })).payload;
      expect(submit?.['request_memory'], memory).to.equal(right);
    }
    const { submit } = planned(
      podData({ resources: { limits: { 'ephemeral-storage': '2Gi', 'nvidia.com/gpu': 1 } } }),
    ).payload;
    expect(submit).to.include({ request_disk: '2097152', request_gpus: '1' });
  });

  it('defect 12: probes are of their container, named ports are ports, and tcpSocket is asked', () => {
    const probed = (name: string): Container => ({
      name,
      image: name,
      ports: [{ name: 'web', containerPort: 8080 }],
      livenessProbe: { tcpSocket: { port: 'web' } },
      startupProbe: { httpGet: { port: 'web', httpHeaders: [{ name: 'A', value: 'b c' }] } },
    });
    const plan = planned(podData({}, { containers: [probed('a'), probed('b')] }));
    for (const file of ['c0', 'c1']) {
      expect(linesOf(plan, file, 'word-liveness')).to.deep.equal(['127.0.0.1', '8080']);
      expect(linesOf(plan, file, 'word-startup')).to.deep.equal(['http', '127.0.0.1', '8080', '/', 'A: b c']);
    }
    expect(refusals(podData({ livenessProbe: { tcpSocket: { port: 'no' } } }))).to.have.length(1);
  });

  it('defect 13: pre-exec is a script of its own, of as many lines as it has', () => {
    const script = `cat <<'EOF' >mesh.sh\n"$@"\nEOF\n`;
    const data = podData({}, {}, { annotations: { 'slurm-job.vk.io/pre-exec': script } });
    expect(planFile(planned(data, { preExec: true }), 'pre-exec')).to.equal(`${script}\n`);
  });

  it('defect 16: working directory, grace, deadline, logins and a job script count', () => {
    const auths = { 'r.io': { auth: Buffer.from('u:p:q').toString('base64') } };
    const secrets = [
      {
        metadata: { name: 's' },
        data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') },
      },
    ];
    const plan = planned(
      podData(
        { image: 'r.io/x', workingDir: '/data' },
        { terminationGracePeriodSeconds: 5, activeDeadlineSeconds: 60, imagePullSecrets: [{ name: 's' }] },
        { container: [{ name: 'main', secrets }] },
      ),
    );
    expect(linesOf(plan, 'c0', 'cwd')).to.deep.equal(['/data']);
    expect(linesOf(plan, 'pod', 'grace')).to.deep.equal(['5']);
    expect(linesOf(plan, 'pod', 'deadline')).to.deep.equal(['60']);
    expect(plan.requirements.maxWalltime).to.equal(60);
    expect(planFile(plan, 'l0')).to.equal('user u\npassword p:q\n');
    expect(refusals(podData({}, {}, { jobScript: '#!/bin/sh\n' }))).to.have.length(1);
    const scripted = planned(podData({}, {}, { jobScript: '#!/bin/sh\n' }), { jobScript: true });
    expect(planFile(scripted, 'job-script')).to.equal('#!/bin/sh\n');
  });
});

/** Numbers from 0 to 1 that are the same in each run. Source: the generator mulberry32. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('2,000 random Pods', () => {
  const random = numbers(18);
  const hostile = [
    '',
    '..',
    '../x',
    'a/b',
    '/etc',
    '/data/x',
    '/data/../etc',
    'host',
    'a',
    'b-1',
    '$(id)',
    'a\nb',
    'x\0y',
    ' ',
    'ü',
    ',:',
    '-x',
    '\ud800',
    '1.5Gi',
    'NaN',
  ];
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const text = () => pick(hostile);
  const often = (good: string) => (random() < 0.97 ? good : text());
  const words = () => some(() => often('word'));
  const some = <T>(make: () => T): T[] | null =>
    random() < 0.1 ? null : Array.from({ length: Math.floor(random() * 3) }, make);
  const maybe = <T>(make: () => T): T | undefined => (random() < 0.5 ? make() : undefined);
  const number = () => pick([0, 1, 8080, 8080, 8080, -1, 1e12, 0.5]);
  const action = () => ({
    exec: maybe(() => ({ command: words() })) ?? null,
    httpGet:
      maybe(() => ({
        port: pick<string | number>([8080, 8080, 'web', number()]),
        path: often('/x'),
        host: often(''),
      })) ?? null,
    tcpSocket: maybe(() => ({ port: number() })) ?? null,
  });
  const container = (index: number): Container => ({
    name: often(`c${index}`),
    image: often(pick(['busybox', '/cvmfs/x', 'oras://a/b'])),
    command: words(),
    args: words(),
    workingDir: often('/w'),
    env: some(() => ({ name: often('V'), value: often('x y') })),
    resources: { limits: { cpu: often('1'), memory: often('1Gi') } },
    volumeMounts: some(() => ({ name: often('v'), mountPath: often('/m'), subPath: often('') })),
    livenessProbe: maybe(action) ?? null,
    lifecycle: { preStop: maybe(action) ?? null },
  });
  const pod = (): RetrievedPodData => ({
    pod: {
      metadata: {
        name: often('p'),
        namespace: often('n'),
        uid: often('u-1'),
        annotations: {
          'slurm-job.vk.io/flags': often('+A=1'),
          'slurm-job.vk.io/singularity-options': often('--nv'),
        },
      },
      spec: {
        containers: [0, 1].map(container),
        initContainers: maybe(() => [container(2)]) ?? null,
        volumes: [
          {
            name: 'v',
            ...pick([
              { emptyDir: {} },
              { hostPath: { path: text() } },
              { configMap: { name: 'cm', items: some(() => ({ key: 'k', path: text(), mode: number() })) } },
            ]),
          },
        ],
        terminationGracePeriodSeconds: number(),
      },
    },
    container: some(() => ({
      name: 'c0',
      configMaps: [{ metadata: { name: 'cm' }, data: { [often('k')]: text() } }],
    })),
  });

  it('become jobs that a backend takes, without a path outside, or sentences', () => {
    let jobs = 0;
    for (let count = 0; count < 2000; count++) {
      const data = pod();
      const plan = planOf(data, { ...strictContext, hostPaths: ['/data'] });
      if (!isPlan(plan)) {
        expect(plan.length).to.be.greaterThan(0);
        for (const { message } of plan) expect(message).to.match(/^[^\n]{5,}$/);
        continue;
      }
      jobs++;
      expect(payloadProblems(plan.payload)).to.deep.equal([]);
      const paths = volumeFiles(plan).map(([file]) => file.split(' ')[1] ?? '');
      const binds = [0, 1, 2].flatMap((index) =>
        linesOf(plan, `c${index}`, 'bind').map((line) => line.split(' ')),
      );
      for (const path of [
        ...paths,
        ...binds.filter(([, kind]) => kind === 'volume').map(([, , path = '']) => path),
      ])
        expect(path)
          .to.match(/^v(\/[^/]+)*$/)
          .and.not.match(/(^|\/)\.\.(\/|$)/);
      for (const [, kind, path] of binds)
        if (kind === 'host') expect(path).to.match(/^\/data(\/(?!\.\.)[^/]+)*$/);
    }
    expect(jobs).to.be.greaterThan(50);
  });
});
