import { expect } from 'chai';
import { acceptedPod } from '../../../../src/sources/interlink/accept.ts';
import { readCreate } from '../../../../src/clients/interlink/schemas.ts';
import type { Container, Pod, RetrievedPodData, Volume } from '../../../../src/clients/interlink/wire.ts';
import {
  linesOf,
  planFile,
  planned,
  podData,
  recordedBody,
  refusals,
  volumeFiles,
} from '../../../support/pods.ts';

const configMap = (name: string, data: Readonly<Record<string, string>>) => ({ metadata: { name }, data });
const mount = (name: string, mountPath = `/${name}`) => ({ name, mountPath });

/** A Pod with one volume, which its container mounts at /v. */
function withVolume(volume: Omit<Volume, 'name'>, rest: Partial<RetrievedPodData> = {}): RetrievedPodData {
  return podData({ volumeMounts: [mount('v')] }, { volumes: [{ name: 'v', ...volume }] }, rest);
}

describe('a Pod becomes a job', () => {
  it('as a real virtual kubelet sent it', () => {
    const read = readCreate(recordedBody('POST-create.json'));
    if (!read.ok) throw new Error(read.problems.join('\n'));
    const plan = planned(read.value);
    expect(plan.containers).to.deep.equal(['prepare', 'main', 'side']);
    expect(plan.warnings).to.deep.equal([]);
    expect(plan.requirements).to.deep.equal({ nCore: 1, minRamCount: 1536 });
    expect(plan.payload.submit).to.deep.equal({
      request_cpus: '1',
      request_memory: '1536',
      job_max_vacate_time: '45',
      requirements: '(NumJobStarts =?= undefined || NumJobStarts == 0)',
      '+MaxRuntime': '600',
    });
    const files = new Map(volumeFiles(plan));
    expect([...files.keys()]).to.deep.equal([
      '0400 conf/app.conf',
      '0400 sec/password',
      '0400 sec/token',
      '0644 down/labels',
      '0644 kube-api-access-f4fcz/ca.crt',
      '0644 kube-api-access-f4fcz/namespace',
      '0644 kube-api-access-f4fcz/token',
    ]);
    expect(String(files.get('0644 down/labels'))).to.equal('app="rich"\n');
    expect(linesOf(plan, 'c1', 'bind')).to.include('ro volume conf/app.conf /etc/one.conf');
    expect(linesOf(plan, 'c1', 'probe')).to.deep.equal([
      'startup 0 1 1 1 10',
      'liveness 1 1 3 1 3',
      'readiness 0 1 5 1 3',
    ]);
    expect(linesOf(plan, 'e1', 'env')).to.include('GREETING=hello "world"; $HOME `id` ü');
  });

  describe('hole 8: in time and memory that its size allows', () => {
    const long = 'x'.repeat(50_000);
    const named = (times: number) => ({ args: Array.from({ length: 20 }, () => '$(A)'.repeat(times)) });
    it('variables in it stand for no more than a job takes', () => {
      const env = [{ name: 'A', value: long }];
      expect(refusals(podData({ env, ...named(2000) }))).to.deep.equal([
        '/pod/spec: commands and paths of the Pod have more than 100000 dollar signs, or their variables stand for more than a job takes: 1048576 bytes (1 MiB)',
      ]);
      expect(linesOf(planned(podData({ env, command: ['$(A)$(A)'] })), 'c0', 'word')).to.deep.equal([
        long + long,
      ]);
    });
    it('a word, a path and a flag that begin names and quotes without end stay what they are', () => {
      const open = '$('.repeat(50_000);
      expect(
        linesOf(planned(podData({ command: [open, `${open})`, '$$($(A)'] })), 'c0', 'word'),
      ).to.deep.equal([open, `${open})`, '$($(A)']);
      const quoted = `"${'\\"'.repeat(400)}`;
      const flags = { annotations: { 'slurm-job.vk.io/flags': `priority = 1; description = ${quoted}` } };
      expect(planned(podData({}, {}, flags), { submitCommands: ['*'] }).payload.submit).to.include({
        priority: '1',
        description: quoted,
      });
    });
    it('containers, volumes and mounts have a number, and its text a length', () => {
      const many = <T>(count: number, one: (index: number) => T) =>
        Array.from({ length: count }, (_, index) => one(index));
      const [found = ''] = refusals(
        podData({}, { containers: many(51, (at) => ({ name: `c${at}`, image: 'busybox' })) }),
      );
      expect(found).to.equal('/pod/spec: the Pod has 51 containers; a job has 50 at most');
      const mounts = podData(
        { volumeMounts: many(501, () => mount('v')) },
        { volumes: many(501, () => ({ name: 'v' })) },
      );
      expect(refusals(mounts)).to.deep.equal([
        '/pod/spec: the Pod has 501 volumes; a job has 500 at most',
        '/pod/spec: the Pod has 501 mounts; a job has 500 at most',
      ]);
      expect(refusals(podData({ args: ['x'.repeat(3_000_000)] }))[0]).to.match(
        /^\/pod: the Pod has 3\d{6} bytes/,
      );
    });
    it('a volume has as many files as there are, of which none is a directory, too', () => {
      const data = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, '']));
      const container = [{ name: 'main', configMaps: [configMap('m', { ...data, d: '', dd: '' })] }];
      const items = [...Object.keys(data), 'dd'].map((key) => ({ key, path: key === 'dd' ? 'd/e' : key }));
      const withItems = (more: object[]) =>
        withVolume({ configMap: { name: 'm', items: [...items, ...more] as never } }, { container });
      expect(volumeFiles(planned(withItems([])))).to.have.length(5001);
      expect(refusals(withItems([{ key: 'd', path: 'd' }]))).to.deep.equal([
        '/pod/spec/volumes/0: volume v: "d" cannot be a file and a directory of other files',
      ]);
    });
  });

  describe('hole 2: mounts nothing in the place of which another container could put a link', () => {
    const volumes: readonly Volume[] = [
      { name: 'v', emptyDir: {} },
      { name: 'h', hostPath: { path: '/data/' } },
      { name: 'x', hostPath: { path: '/data/x' } },
      { name: 'files', configMap: { name: 'cm' } },
    ];
    const container = [{ name: 'main', configMaps: [configMap('cm', { a: '' })] }];
    const refused = (main: Partial<Container>, beside: Partial<Container>, inits: Container[] = []) => {
      const other = { name: 'beside', image: 'busybox', command: ['true'], ...beside };
      const data = podData(main, { volumes, initContainers: inits }, { container });
      return refusals(withBeside(data, other), { hostPaths: ['/data'] });
    };
    const withBeside = ({ pod, ...rest }: RetrievedPodData, other: Container): RetrievedPodData => ({
      ...rest,
      pod: { ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, other] } },
    });
    const mounts = (...volumeMounts: object[]) => ({ volumeMounts }) as Partial<Container>;
    const at = (name: string, subPath?: string, more: object = {}) => ({
      name,
      mountPath: `/${name}${subPath ?? ''}`,
      ...(subPath !== undefined && { subPath }),
      ...more,
    });
    const above =
      '/pod/spec/containers/0/volumeMounts/0: container beside mounts what is above it for writing, and could put a link in its place: mount ';

    it('below a volume, or a directory of it, that it may write', () => {
      for (const [mine, others] of [
        [at('v', 'a'), at('v')],
        [at('v', 'a/b'), at('v', 'a')],
        [{ ...at('v'), subPathExpr: 'a/b' }, at('v', 'a')],
        [at('h', 'y'), at('h')],
        [at('x'), at('h')],
        [at('x', 'y'), at('h', 'x')],
      ] as const)
        expect(refused(mounts(mine), mounts(others)), JSON.stringify([mine, others])).to.deep.equal([
          `${above}${mine.name} as a whole, or there with readOnly`,
        ]);
    });

    it('but what it cannot change, has no part of, or mounted before', () => {
      for (const [mine, others] of [
        [at('v'), at('v')],
        [at('v', 'a'), at('v', 'a')],
        [at('v', 'ab'), at('v', 'a')],
        [at('v', 'a'), at('v', undefined, { readOnly: true })],
        [at('files', 'a'), at('files')],
        [at('h', 'y'), at('x')],
      ] as const)
        expect(refused(mounts(mine), mounts(others)), JSON.stringify([mine, others])).to.deep.equal([]);
      const init = { name: 'init', image: 'busybox', command: ['true'], ...mounts(at('v')) } as Container;
      expect(refused(mounts(at('v', 'a')), {}, [init])).to.deep.equal([]);
    });

    it('and not by itself, where a probe has its volumes mounted anew', () => {
      const own = mounts(at('v', 'a'), at('v'));
      expect(refused(own, {})).to.deep.equal([]);
      const readinessProbe = { exec: { command: ['true'] } };
      expect(refused({ ...own, readinessProbe }, {})).to.deep.equal([
        `${above.replace('beside', 'main')}v as a whole, or there with readOnly`,
      ]);
    });

    it('below what it may only read, too, where it has capabilities by an option of the operator', () => {
      const powers = [
        ['--fakeroot', '--fakeroot'],
        ['--fakeroot=true', '--fakeroot'],
        ['-f', '-f'],
        ['-cf', '-cf'],
        ['--add-caps=all', '--add-caps'],
        ['--keep-privs', '--keep-privs'],
        ['--allow-setuid', '--allow-setuid'],
        ['--oci', '--oci'],
      ] as const;
      const readOnly = { readOnly: true };
      const below = [
        [at('v', 'a', readOnly), at('v', undefined, readOnly)],
        [at('files', 'a'), at('files')],
        [at('h', 'y', readOnly), at('h', undefined, readOnly)],
        [at('x', undefined, readOnly), at('h', undefined, readOnly)],
      ] as const;
      for (const [option, shown] of powers)
        for (const [mine, others] of below) {
          const data = withBeside(podData(mounts(mine), { volumes }, { container }), {
            name: 'beside',
            image: 'busybox',
            command: ['true'],
            ...mounts(others),
          });
          const given = (options: string[]) => refusals(data, { hostPaths: ['/data'], options });
          expect(given(['--nv', option]), `${option} ${JSON.stringify(mine)}`).to.deep.equal([
            `${above.replace('for writing', `with ${shown}, so that readOnly does not bind it`)}${mine.name} as a whole`,
          ]);
          expect(given(['--nv', '-c', '-B/afs', '--no-mount', 'hostfs', '--fake'])).to.deep.equal([]);
        }
    });

    it('nor there by the options of interLink, or by a bind for reading', () => {
      const jobConfig = { ApptainerOptions: { fakeroot: true } };
      const annotations = { 'slurm-job.vk.io/singularity-mounts': '--bind /data:/d:ro' };
      const data = podData(mounts(at('x')), { volumes }, { annotations, container, jobConfig });
      const other = { name: 'beside', image: 'busybox', command: ['true'] };
      const [first] = refusals(withBeside(data, other), { hostPaths: ['/data'] });
      expect(first).to.match(/: container beside mounts what is above it with --fakeroot, so that /);
      expect(refusals(withBeside({ ...data, jobConfig: {} }, other), { hostPaths: ['/data'] })).to.deep.equal(
        [],
      );
    });

    it('by the annotation of its binds neither', () => {
      const annotations = { 'slurm-job.vk.io/singularity-mounts': '--bind /data/x:/x' };
      const data = podData(mounts(at('h')), { volumes }, { annotations, container });
      const other = { name: 'beside', image: 'busybox', command: ['true'] };
      const [first, ...more] = refusals(withBeside(data, other), { hostPaths: ['/data'] });
      expect(first).to.match(/^\/pod\/metadata\/annotations: --bind \/data\/x: container main mounts /);
      expect(more).to.deep.equal([]);
    });
  });

  describe('A22: with the resources of its containers', () => {
    const resources = (limits: Record<string, string>, requests = {}) => ({
      resources: { limits, requests },
    });
    const container = (name: string, of: Partial<Container>): Container => ({ name, image: 'x', ...of });
    const requests = (spec: Partial<Pod['spec']>) => {
      const { submit = {} } = planned(podData({}, spec)).payload;
      return Object.fromEntries(Object.entries(submit).filter(([key]) => key.startsWith('request_')));
    };
    it('their sum, rounded up, where a limit counts before a request', () => {
      const containers = [
        container(
          'a',
          resources({ cpu: '100m', memory: '1.5Gi', 'ephemeral-storage': '1G' }, { memory: '1Mi' }),
        ),
        container('b', resources({}, { cpu: '1500m', memory: '1e9' })),
      ];
      expect(requests({ containers })).to.deep.equal({
        request_cpus: '2',
        request_memory: '2490',
        request_disk: '976563',
      });
    });
    it('or those of an init container that needs more', () => {
      const initContainers = [
        container('i', resources({ cpu: '4' })),
        container('j', resources({ cpu: '2' })),
      ];
      const containers = [container('a', resources({ cpu: '1', 'nvidia.com/gpu': '2' }))];
      expect(requests({ initContainers, containers })).to.deep.equal({
        request_cpus: '4',
        request_gpus: '2',
      });
    });
    it('none where it says none', () => {
      expect(requests({})).to.deep.equal({});
    });
    it('and not with a quantity that is none', () => {
      expect(refusals(podData(resources({ memory: '1.5GiB' })))).to.deep.equal([
        '/pod/spec/containers/0/resources: memory is "1.5GiB", which is no amount; write such as 500m or 1.5Gi',
      ]);
    });
    it('and not with more than any machine has, in one container or in all', () => {
      expect(refusals(podData(resources({ memory: '8388607Pi' })))).to.deep.equal([
        '/pod/spec/containers: the containers ask for 9.444731839839384e+21 of memory; a job may have 70368744177664',
      ]);
      const containers = [container('a', resources({ cpu: '3k' })), container('b', resources({ cpu: '3k' }))];
      expect(refusals(podData({}, { containers }))).to.deep.equal([
        '/pod/spec/containers: the containers ask for 6000 of cpu; a job may have 4096',
      ]);
    });
    it('and names a resource that HTCondor has no request for', () => {
      expect(planned(podData(resources({ 'example.org/fpga': '1' }))).warnings).to.deep.equal([
        'container main: HTCondor is not asked for the resource example.org/fpga',
      ]);
    });
  });

  describe('A17 and A18: with its volumes', () => {
    const container = [
      {
        name: 'main',
        configMaps: [configMap('cm', { a: 'A', b: 'B' }), configMap('other', { a: 'other' })],
        secrets: [{ metadata: { name: 's' }, data: { a: 'AP8=' } }],
        projectedvolumemaps: [configMap('v', { 'ca.crt': 'one\ntwo\n', 'deep/labels': 'x' })],
      },
    ];
    const files = (volume: Omit<Volume, 'name'>) => {
      const plan = planned(withVolume(volume, { container }));
      return volumeFiles(plan).map(([file, bytes]) => [file, String(bytes)]);
    };
    for (const [what, volume, expected] of [
      [
        'all keys of its ConfigMap alone',
        { configMap: { name: 'cm' } },
        [
          ['0644 v/a', 'A'],
          ['0644 v/b', 'B'],
        ],
      ],
      [
        'items by their paths and modes',
        {
          configMap: {
            name: 'cm',
            defaultMode: 0o600,
            items: [
              { key: 'b', path: 'x/y', mode: 0o400 },
              { key: 'a', path: 'z' },
            ],
          },
        },
        [
          ['0400 v/x/y', 'B'],
          ['0600 v/z', 'A'],
        ],
      ],
      [
        'a key that is missing, and may be',
        { configMap: { name: 'cm', optional: true, items: [{ key: 'no', path: 'x' }] } },
        [],
      ],
      ['a ConfigMap that is missing, and may be', { configMap: { name: 'no', optional: true } }, []],
      [
        'a projected volume, with new lines',
        { projected: { sources: [] } },
        [
          ['0644 v/ca.crt', 'one\ntwo\n'],
          ['0644 v/deep/labels', 'x'],
        ],
      ],
    ] as const)
      it(what, () => {
        expect(files(volume)).to.deep.equal(expected);
      });
    it('the bytes of a Secret', () => {
      const plan = planned(withVolume({ secret: { secretName: 's', defaultMode: 0o400 } }, { container }));
      expect(volumeFiles(plan)).to.deep.equal([['0400 v/a', Buffer.from([0, 255])]]);
      expect(plan.payload.files?.find(({ name }) => name === 'volumes')).to.include({
        secret: true,
        mode: 0o600,
      });
    });
    it('equal keys of two volumes as two files', () => {
      const volumes = [
        { name: 'one', configMap: { name: 'cm', items: [{ key: 'a', path: 'a' }] } },
        { name: 'two', configMap: { name: 'other' } },
      ];
      const plan = planned(
        podData({ volumeMounts: [mount('one'), mount('two')] }, { volumes }, { container }),
      );
      expect(volumeFiles(plan).map(([file, bytes]) => [file, String(bytes)])).to.deep.equal([
        ['0644 one/a', 'A'],
        ['0644 two/a', 'other'],
      ]);
    });
    it('a path of the machine only where the operator allows it', () => {
      const volume = { hostPath: { path: '/data/x' } };
      const plan = planned(withVolume(volume), { hostPaths: ['/data'] });
      expect(linesOf(plan, 'c0', 'bind')).to.deep.equal(['rw host /data/x /v']);
    });
    for (const [what, volume, sentence] of [
      [
        'a path of the machine',
        { hostPath: { path: '/etc' } },
        'the path "/etc" of the machine cannot be mounted: the operator allows /data',
      ],
      [
        'a way out by ".."',
        { hostPath: { path: '/data/../etc' } },
        'the path "/data/../etc" of the machine cannot be mounted: the operator allows /data',
      ],
      [
        'a name that only begins so',
        { hostPath: { path: '/database' } },
        'the path "/database" of the machine cannot be mounted: the operator allows /data',
      ],
      [
        'a claim',
        { persistentVolumeClaim: { claimName: 'c' } },
        'volume v is the claim "c"; jobs of HTCondor have no persistent volumes: use an emptyDir, or fetch the data in the container',
      ],
      ['another kind', { nfs: {} }, 'volume v is of the kind "nfs", which jobs of HTCondor do not have'],
      [
        'a ConfigMap that is missing',
        { configMap: { name: 'no' } },
        'volume v: interLink sent no ConfigMap no',
      ],
      [
        'a key that is missing',
        { configMap: { name: 'cm', items: [{ key: 'no', path: 'x' }] } },
        'volume v: ConfigMap cm has no key "no"',
      ],
      [
        'an item that leaves its volume',
        { configMap: { name: 'cm', items: [{ key: 'a', path: '../x' }] } },
        'volume v: "../x" is no path below the volume',
      ],
    ] as const)
      it(`and refuses ${what} in a sentence`, () => {
        const [found = ''] = refusals(withVolume(volume, { container }), { hostPaths: ['/data'] });
        expect(found).to.match(/^\/pod\/spec\/volumes\/0/);
        expect(found.replace(/^\S+: /, '')).to.equal(sentence);
      });
  });

  describe('A23: with its annotations', () => {
    const annotated = (annotations: Record<string, string>) => podData({}, {}, { annotations });
    it('flags become commands of the job, and those of sbatch a warning', () => {
      const plan = planned(
        annotated({
          'slurm-job.vk.io/flags': '+MaxRuntime=600; priority = 3; +WantOS = "a; b"\n--partition=x',
        }),
        { submitCommands: ['*'] },
      );
      expect(plan.payload.submit).to.include({
        '+MaxRuntime': '600',
        priority: '3',
        '+WantOS': '"a; b"',
      });
      expect(plan.warnings).to.deep.equal([
        'the flags --partition=x are options of sbatch: HTCondor does not have them',
      ]);
    });
    it('a flag that would make it another job is refused', () => {
      expect(refusals(annotated({ 'slurm-job.vk.io/flags': 'executable = /bin/sh' }))[0]).to.contain(
        '"executable = /bin/sh"',
      );
      expect(refusals(annotated({ 'slurm-job.vk.io/flags': 'queue 5' }))).to.have.length(1);
      for (const cpus of ['-1000000', '1000000000', 'ifThenElse(JobStatus == 1, -1e9, 1)'])
        expect(
          refusals(annotated({ 'slurm-job.vk.io/flags': `request_cpus = ${cpus}` })).join(' '),
        ).to.contain('it must be a whole number from 1 to 4096');
    });
    it('a flag that the operator does not let Pods give is refused', () => {
      const flags = {
        'slurm-job.vk.io/flags': 'accounting_group = other; MY.maxruntime = 5; request_cpus = 2',
      };
      expect(refusals(annotated(flags), { submitCommands: ['request_*', '+MaxRuntime'] })).to.deep.equal([
        '/pod/metadata/annotations/slurm-job.vk.io~1flags: the operator does not let Pods give the command "accounting_group"; they may give request_*, +MaxRuntime',
      ]);
    });
    it('options are words, and those that the runner always sets are not given twice', () => {
      const plan = planned(
        annotated({ 'slurm-job.vk.io/singularity-options': '--nv --cleanenv -C --no-mount=tmp' }),
      );
      expect(linesOf(plan, 'c0', 'option')).to.deep.equal(['--nv', '--no-mount', 'tmp']);
    });
    it('directories that it binds become mounts, which the runner looks at as at those of volumes', () => {
      const plan = planned(
        annotated({
          'slurm-job.vk.io/singularity-options': '--bind /cvmfs -B /cvmfs/a:/b,/cvmfs/c:/d:ro',
          'slurm-job.vk.io/singularity-mounts': '--bind=/cvmfs/e:/f:rw',
        }),
        { hostPaths: ['/cvmfs'] },
      );
      expect(linesOf(plan, 'c0', 'option')).to.deep.equal([]);
      expect(linesOf(plan, 'c0', 'bind')).to.deep.equal([
        'rw host /cvmfs /cvmfs',
        'rw host /cvmfs/a /b',
        'ro host /cvmfs/c /d',
        'rw host /cvmfs/e /f',
      ]);
      expect(linesOf(plan, 'pod', 'host-path')).to.deep.equal(['/cvmfs']);
    });
    for (const option of [
      '--bind /etc:/x',
      '--bind /cvmfs:x',
      '--bind /cvmfs:/x:image-src=/etc',
      '--bind /cvmfs/x\\:/../..:/host',
      '--bind=/cvmfs/a:/b,/cvmfs/x\\,y:/c',
      '-B /cvmfs:/x,/etc',
      '--security x',
      '--fakeroot',
      '--nv -f',
      '-ef',
      '--add-caps=all',
      '--pwd',
      '--overlay /x',
      '$(id)',
    ])
      it(`the option ${option} is refused`, () => {
        expect(
          refusals(annotated({ 'slurm-job.vk.io/singularity-options': option }), { hostPaths: ['/cvmfs'] }),
        ).to.have.length(1);
      });
    it('an option that would give it capabilities is refused with the reason', () => {
      expect(refusals(annotated({ 'slurm-job.vk.io/singularity-options': '--fakeroot' }))).to.deep.equal([
        '/pod/metadata/annotations/slurm-job.vk.io~1singularity-options: the option "--fakeroot" is not taken: no mount would be for reading only. The operator may give it to all containers (runtimeOptions)',
      ]);
    });
    it('the root of images stands before those that have none', () => {
      const image = (name: string, annotations = {}) =>
        linesOf(planned(podData({ image: name }, {}, { annotations })), 'pod', 'image')[0];
      const annotations = { 'slurm-job.vk.io/image-root': '/cvmfs/images/' };
      expect(image('x', annotations)).to.equal('0 path /cvmfs/images/x -');
      expect(image('oras://a/b', annotations)).to.equal('0 remote oras://a/b -');
      expect(image('busybox')).to.equal('0 remote docker://busybox -');
    });
    it('commands before the containers need the word of the operator', () => {
      const data = annotated({ 'slurm-job.vk.io/pre-exec': 'a "b"\nc' });
      expect(refusals(data)[0]).to.contain('which the operator does not allow');
      expect(planFile(planned(data, { preExec: true }), 'pre-exec')).to.equal('a "b"\nc\n');
    });
  });

  it('names in a warning what of a security context apptainer does not have', () => {
    const securityContext = {
      runAsUser: 5,
      privileged: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: false,
    };
    const plan = planned(podData({ securityContext }));
    expect(linesOf(plan, 'c0', 'option')).to.deep.equal(['--no-privs', '--writable-tmpfs']);
    expect(plan.warnings).to.deep.equal([
      'container main runs as the user of the job: apptainer has no privileged, runAsUser of its securityContext',
    ]);
  });

  it('without the containers that stay in the cluster, their resources and their volumes', () => {
    const annotations = {
      'interlink.eu/disable-offload-containers': 'near, other',
      'interlink.eu/disable-offload-init-containers': 'i',
    };
    const stays = (name: string): Container => ({
      name,
      image: 'x',
      resources: { limits: { cpu: '8' } },
      volumeMounts: [mount('claim')],
    });
    const main = podData().pod.spec.containers;
    const spec = {
      containers: [stays('near'), ...main],
      initContainers: [stays('i')],
      // interLink sends no data of a volume that no container of the job mounts.
      volumes: [
        { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
        { name: 'unused', configMap: { name: 'not-sent' } },
      ],
    };
    const plan = planned(podData({}, spec, { annotations }));
    expect(plan.containers).to.deep.equal(['main']);
    const { record } = acceptedPod(podData({}, spec, { annotations }), () => plan, 0);
    expect([...record.initContainers, ...record.containers].map(({ name }) => name)).to.deep.equal(['main']);
    expect(plan.payload.submit).to.not.have.property('request_cpus');
    expect(refusals(podData({}, { containers: [stays('near')] }, { annotations }))).to.deep.equal([
      '/pod/spec/containers: the Pod has no container for a job',
    ]);
  });

  it("takes the switches of interLink's own options for apptainer, and neither its program nor its directories", () => {
    const off = { executable: '', fakeroot: false, containall: false, fuseMode: '', nvidiaSupport: false };
    const empty = {
      SingularityHubProxy: { server: '', master_token: '', cache_validity_seconds: 0 },
      ApptainerOptions: off,
      Volumes: { scratch_area: '', additional_directories_in_path: null, fuse_sleep_seconds: 0 },
    };
    const plain = planned(podData({}, {}, { jobConfig: empty }));
    expect([linesOf(plain, 'c0', 'option'), plain.warnings]).to.deep.equal([[], []]);
    const on = { ...off, executable: 'singularity', fakeroot: true, cleanenv: true, nvidiaSupport: true };
    const jobConfig = { ...empty, ApptainerOptions: on, Volumes: { scratch_area: '/scratch' } };
    const plan = planned(podData({}, {}, { jobConfig }));
    expect(linesOf(plan, 'c0', 'option')).to.deep.equal(['--fakeroot', '--nv']);
    expect(plan.warnings).to.deep.equal([
      "ApptainerOptions.executable, Volumes.scratch_area of interLink's jobConfig have no effect: the settings of thresher name the program and the directories",
    ]);
  });

  it('keeps its Secrets out of the job where the operator says so, those of images as well', () => {
    const content = Buffer.from('{"auths":{"docker.io":{"username":"u","password":"p"}}}').toString('base64');
    const secrets = [{ metadata: { name: 's' }, data: { '.dockerconfigjson': content, k: 'AA==' } }];
    const data = podData(
      { volumeMounts: [mount('v')] },
      { volumes: [{ name: 'v', secret: { secretName: 's' } }], imagePullSecrets: [{ name: 's' }] },
      { container: [{ name: 'main', secrets }] },
    );
    const names = (exportPodData: boolean) =>
      planned(data, { exportPodData }).payload.files?.map(({ name }) => name) ?? [];
    expect(names(true)).to.include.members(['volumes', 'l0']);
    expect(names(false)).to.not.include.members(['volumes']).and.not.include('l0');
    expect(linesOf(planned(data, { exportPodData: false }), 'c0', 'bind')).to.deep.equal([]);
  });

  it('hole 8: has each Secret of its images read once, however many containers bring it', () => {
    const content = Buffer.from('{"auths":{"docker.io":{"username":"u","password":"p"}}}').toString('base64');
    const secrets = [{ metadata: { name: 's' }, data: { '.dockerconfigjson': content } }];
    const containers = Array.from({ length: 10 }, (_, at) => ({
      name: `c${at}`,
      image: 'busybox',
      command: ['true'],
    }));
    const data = podData(
      {},
      { containers, imagePullSecrets: [{ name: 's' }] },
      { container: containers.map(({ name }) => ({ name, secrets })) },
    );
    const { parse } = JSON;
    let reads = 0;
    JSON.parse = ((text: string) => {
      if (text.includes('auths')) reads++;
      return parse(text) as unknown;
    }) as typeof parse;
    try {
      expect(planFile(planned(data), 'l0')).to.equal('user u\npassword p\n');
    } finally {
      JSON.parse = parse;
    }
    expect(reads).to.equal(1);
  });

  it('shows no value of a variable in what it says: interLink sends those of Secrets resolved', () => {
    const value = 's3cr3t:Value/with,signs-0123456789';
    const env = [
      { name: 'TOKEN', value },
      { name: 'HOME', value },
    ];
    const volumes = [
      { name: 'v', emptyDir: {} },
      { name: 'h', hostPath: { path: '/cvmfs' } },
    ];
    const allowed = { hostPaths: ['/cvmfs'] };
    const at = (name: string, subPathExpr: string) => ({ name, mountPath: '/v', subPathExpr });
    const told = (container: Partial<Container>) => {
      const problems = refusals(podData({ env, ...container }, { volumes }), allowed);
      expect(JSON.stringify(problems)).not.to.match(/s3cr3t|signs/);
      return problems;
    };
    for (const name of ['v', 'h'])
      expect(told({ volumeMounts: [at(name, '$(TOKEN)')] })).to.deep.equal([
        `/pod/spec/containers/0/volumeMounts/0: the value of subPathExpr "$(TOKEN)" is no path below the volume ${name}`,
      ]);
    const { warnings } = planned(podData({ env, image: '/cvmfs/x', command: ['$(TOKEN)/run.sh'] }));
    expect(warnings).to.deep.equal([
      'container main starts in "/", whatever directory its image names: if "$(TOKEN)/run.sh" is not there, set workingDir',
      'container main: the value of its HOME is no absolute path that apptainer can take',
    ]);
    const below = { env: [{ name: 'TOKEN', value: 's3cr3t' }], volumeMounts: [at('h', '$(TOKEN)')] };
    expect(planned(podData(below, { volumes }), allowed).warnings).to.deep.equal([
      'the directory $(TOKEN) of volume h must be on the machine',
    ]);
  });

  it('names the parts that a job does not have', () => {
    const env = [{ name: 'HOME', value: 'a:b' }];
    const volumeMounts = [mount('v')];
    const terminationMessagePath = '/v/said';
    const spec: Partial<Pod['spec']> & Record<string, unknown> = {
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }],
      restartPolicy: 'OnFailure',
      hostAliases: [{ ip: '10.0.0.1' }],
      hostPID: false,
    };
    const container: Partial<Container> & Record<string, unknown> = {
      env,
      volumeMounts,
      terminationMessagePath,
      tty: true,
    };
    const plan = planned(podData(container, spec));
    expect(plan.warnings).to.deep.equal([
      'container main: the value of its HOME is no absolute path that apptainer can take',
      'container main: its terminationMessagePath "/v/said" is in a volume, or no path that apptainer can take: its message is left out',
      'restartPolicy is OnFailure: a job runs each container once',
      'hostAliases is left out: containers have /etc/hosts of the machine',
      'container main: tty is left out: a job has no terminal',
      'volume v: sizeLimit is left out: the disk of the job is the bound',
    ]);
  });

  it('has few files for 20 keys that five containers mount, and for 300 keys', () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, `value ${index}`]));
    for (const count of [20, 300]) {
      const names = ['a', 'b', 'c', 'd', 'e'];
      const containers = names.map((name): Container => ({ name, image: 'x', volumeMounts: [mount('v')] }));
      const volumes = [{ name: 'v', configMap: { name: 'cm' } }];
      const container = names.map((name) => ({ name, configMaps: [configMap('cm', keys(count))] }));
      const plan = planned(podData({}, { containers, volumes }, { container }));
      expect(volumeFiles(plan)).to.have.length(count);
      expect(plan.payload.files?.length).to.be.lessThan(25);
    }
  });

  it('keeps a private image and one that is always pulled out of the cache', () => {
    const image = (of: Partial<Container>) =>
      linesOf(planned(podData(of), { imageCache: '/cache' }), 'pod', 'image')[0];
    expect(image({ image: 'x:1', imagePullPolicy: 'IfNotPresent' })).to.match(
      /^0 remote docker:\/\/x:1 \/cache\/[0-9a-f]{64}\.sif$/,
    );
    expect(image({ image: 'x:1', imagePullPolicy: 'Always' })).to.equal('0 remote docker://x:1 -');
  });

  for (const [what, name] of [
    ['..', '../x'],
    ['a slash', 'a/b'],
    ["a shell's words", 'a;id'],
    ['nothing', ''],
  ] as const)
    it(`A27: not with ${what} in a name`, () => {
      const data = podData();
      const meta = (key: string) => ({
        ...data,
        pod: { ...data.pod, metadata: { ...data.pod.metadata, [key]: name } },
      });
      for (const key of ['name', 'namespace', 'uid']) expect(refusals(meta(key)), key).to.have.length(1);
      expect(refusals(podData({ name }))).to.have.length(1);
    });

  it('is refused when its ConfigMaps are more than a job takes', () => {
    const data = { 'a.conf': 'x'.repeat(1_200_000) };
    const [found] = refusals(
      withVolume(
        { configMap: { name: 'cm' } },
        { container: [{ name: 'main', configMaps: [configMap('cm', data)] }] },
      ),
    );
    expect(found).to.contain('more ConfigMaps, Secrets, variables and arguments than a job takes');
  });
});
