/** The parts of Pods in their containers: on a real schedd that spools, in a real apptainer, as the logs show them. */
import { expect } from 'chai';
import type { Container } from '../../src/clients/interlink/wire.ts';
import { hostileVariables, hostileWords, variablesIn } from '../support/hostile-words.ts';
import { PodSite, type SentPod } from '../support/interlink-pods.ts';

const sh = (script: string): Partial<Container> => ({ command: ['sh', '-c', script] });
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64');
/** Shell function: the mode and the bytes of files. */
const show =
  'show() { for f in "$@"; do echo "$f $(stat -c %a "$f") $(busybox base64 "$f" | busybox tr -d "\\n")"; done; }';
/** The line that it writes. */
const shown = (path: string, mode: string, content: string | Uint8Array) =>
  `${path} ${mode} ${base64(content)}`;

const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
const config = 'line one\nline "two" $HOME\n';
const configMaps = [
  { metadata: { name: 'cm' }, data: { 'app.conf': config, other: 'no newline' } },
  { metadata: { name: 'bytes' }, data: { text: '\n' }, binaryData: { all: base64(bytes) } },
];
const secrets = [
  {
    metadata: { name: 'sec' },
    type: 'Opaque',
    data: { 'app.conf': base64('p@ss $(id)\n'), raw: base64(bytes) },
  },
];

const certificate = `-----BEGIN CERTIFICATE-----\n${`${'MIIDBTCC'.repeat(8)}\n`.repeat(3)}-----END CERTIFICATE-----\n`;
const labels = 'app="one"\nnote="a \\"b\\" $HOME"\n';

describe('on a real schedd, a Pod of interLink in apptainer', function () {
  this.timeout(240_000);
  let site: PodSite;
  const sent: Record<string, SentPod> = {};
  const pod = (name: string): SentPod => {
    const { [name]: found } = sent;
    if (found === undefined) throw new Error(`no Pod ${name} was sent`);
    return found;
  };

  before(async () => {
    site = await PodSite.start();
    const env = Object.entries(hostileVariables).map(([name, value]) => ({
      name,
      ...(value !== '' && { value }),
    }));
    sent['env'] = site.send('env', {
      containers: [
        { command: ['env', '-0'], env },
        { name: 'beside', command: ['env', '-0'], env: [{ name: 'QUOTES', value: 'other' }] },
      ],
    });
    sent['args'] = site.send('args', {
      containers: [
        { command: ['printf', '%s\\0'], args: hostileWords },
        { name: 'words', command: ['printf', '%s\\0', ...hostileWords] },
      ],
    });
    sent['files'] = site.send('files', {
      objects: { configMaps: [...configMaps, ...configMaps.slice(0, 1)], secrets },
      spec: {
        volumes: [
          {
            name: 'chosen',
            configMap: {
              name: 'cm',
              items: [
                { key: 'app.conf', path: 'deep/er/app.conf', mode: 0o440 },
                { key: 'other', path: 'app.conf' },
              ],
              defaultMode: 0o400,
            },
          },
          { name: 'all', configMap: { name: 'cm', defaultMode: 0o644 } },
          { name: 'secret', secret: { secretName: 'sec', defaultMode: 0o600 } },
          { name: 'bytes', configMap: { name: 'bytes', defaultMode: 0o755 } },
          { name: 'none', configMap: { name: 'none', optional: true } },
        ],
      },
      containers: [
        {
          ...sh(
            `${show}; show /chosen/app.conf /chosen/deep/er/app.conf /all/* /bytes/* /etc/one.conf; ls /none; ` +
              `{ echo no >/all/other; } 2>/dev/null || echo refused; { echo no >/all/new; } 2>/dev/null || echo refused`,
          ),
          volumeMounts: [
            { name: 'chosen', mountPath: '/chosen' },
            { name: 'all', mountPath: '/all' },
            { name: 'bytes', mountPath: '/bytes' },
            { name: 'all', mountPath: '/etc/one.conf', subPath: 'app.conf' },
            { name: 'none', mountPath: '/none' },
          ],
        },
        {
          name: 'beside',
          ...sh(`${show}; show /all/*`),
          volumeMounts: [{ name: 'secret', mountPath: '/all', readOnly: true }],
        },
      ],
    });
    sent['projected'] = site.send('projected', {
      objects: {
        projectedvolumemaps: [
          {
            metadata: { name: 'kube-api-access-f4fcz' },
            data: { token: 'ey.J-_.x', 'ca.crt': certificate, namespace: 'default' },
          },
          { metadata: { name: 'down' }, data: { labels, name: 'projected' } },
        ],
      },
      spec: {
        volumes: [
          {
            name: 'kube-api-access-f4fcz',
            projected: {
              sources: [
                { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
                { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
              ],
              defaultMode: 0o644,
            },
          },
          {
            name: 'down',
            projected: {
              sources: [{ downwardAPI: { items: [{ path: 'labels', mode: 0o440 }, { path: 'name' }] } }],
              defaultMode: 0o600,
            },
          },
        ],
      },
      containers: [
        {
          ...sh(`${show}; show /var/run/secrets/kubernetes.io/serviceaccount/* /down/*`),
          volumeMounts: [
            {
              name: 'kube-api-access-f4fcz',
              readOnly: true,
              mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
            },
            { name: 'down', mountPath: '/down' },
          ],
        },
      ],
    });
    const untilThere = 'until [ -e /shared/file ]; do sleep 1; done;';
    sent['shared'] = site.send('shared', {
      spec: {
        volumes: [
          { name: 'shared', emptyDir: {} },
          { name: 'own', emptyDir: { medium: 'Memory' } },
        ],
      },
      containers: [
        {
          name: 'writer',
          ...sh(
            'ls /shared /own; echo "from the writer" >/shared/part; busybox mv /shared/part /shared/file',
          ),
          volumeMounts: [
            { name: 'shared', mountPath: '/shared' },
            { name: 'own', mountPath: '/own' },
          ],
        },
        {
          ...sh(
            `${untilThere} cat /shared/file; for f in file new; do { echo no >"/shared/$f"; } 2>/dev/null || echo refused; done; ` +
              'busybox rm /shared/file 2>/dev/null || echo refused; cat /shared/file',
          ),
          volumeMounts: [{ name: 'shared', mountPath: '/shared', readOnly: true }],
        },
      ],
    });
    sent['codes'] = site.send('codes', {
      containers: [
        { name: 'first', ...sh('echo first') },
        { name: 'second', ...sh('echo second; exit 1') },
        { name: 'third', ...sh('echo third; sleep 1') },
      ],
    });
    const mounted = { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] };
    const volumes = [{ name: 'shared', emptyDir: {} }];
    sent['inits'] = site.send('inits', {
      spec: { volumes },
      initContainers: [
        { name: 'one', ...sh('sleep 1; echo one >>/shared/order'), ...mounted },
        { name: 'two', ...sh('echo two >>/shared/order; echo from two'), ...mounted },
      ],
      containers: [{ ...sh('cat /shared/order'), ...mounted }],
    });
    sent['failed-init'] = site.send('failed-init', {
      spec: { volumes },
      initContainers: [
        { name: 'one', ...sh('echo one') },
        { name: 'bad', ...sh('echo bad; exit 3') },
        { name: 'never', ...sh('echo never') },
      ],
      containers: [{ ...sh('echo ran') }, { name: 'beside', ...sh('echo ran') }],
    });
  });

  after(async () => {
    await site.clean();
  });

  it('A15: has its variables byte by byte, each container its own, and none of the machine', async () => {
    const main = variablesIn(await pod('env').says());
    expect(main).to.include(hostileVariables);
    const beside = variablesIn(await pod('env').says('beside'));
    expect(beside).to.include({ QUOTES: 'other' });
    const gpus = /^(CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|NVIDIA_VISIBLE_DEVICES)$/;
    const apptainers = /^((APPTAINER|SINGULARITY)_\w+|PATH|USER_PATH|HOME|PWD|PS1|PROMPT_COMMAND)$/;
    const others = Object.keys(beside).filter((name) => !gpus.test(name) && !apptainers.test(name));
    expect(others).to.deep.equal(['QUOTES']);
  });

  it('A16: has the words of its command and arguments as they are', async () => {
    const expected = hostileWords.map((word) => `${word}\0`).join('');
    expect(await pod('args').says()).to.equal(expected);
    expect(await pod('args').says('words')).to.equal(expected);
  });

  it('A17: has the files of ConfigMaps and Secrets with their bytes and modes, also with equal keys in two volumes', async () => {
    const main = await pod('files').says();
    expect(main.split('\n')).to.deep.equal([
      shown('/chosen/app.conf', '400', 'no newline'),
      shown('/chosen/deep/er/app.conf', '440', config),
      shown('/all/app.conf', '644', config),
      shown('/all/other', '644', 'no newline'),
      shown('/bytes/all', '755', bytes),
      shown('/bytes/text', '755', '\n'),
      shown('/etc/one.conf', '644', config),
      'refused',
      'refused',
      '',
    ]);
    expect((await pod('files').says('beside')).split('\n')).to.deep.equal([
      shown('/all/app.conf', '600', 'p@ss $(id)\n'),
      shown('/all/raw', '600', bytes),
      '',
    ]);
  });

  it('A18: has the token, the certificate and the labels of projected volumes, with all their newlines', async () => {
    const account = '/var/run/secrets/kubernetes.io/serviceaccount';
    expect((await pod('projected').says()).split('\n')).to.deep.equal([
      shown(`${account}/ca.crt`, '644', certificate),
      shown(`${account}/namespace`, '644', 'default'),
      shown(`${account}/token`, '644', 'ey.J-_.x'),
      shown('/down/labels', '440', labels),
      shown('/down/name', '600', 'projected'),
      '',
    ]);
  });

  it('A19: shares an emptyDir between its containers, and a container that mounts it read-only cannot write there', async () => {
    expect(await pod('shared').says()).to.equal(
      'from the writer\nrefused\nrefused\nrefused\nfrom the writer\n',
    );
  });

  it('A6: has an exit code for each container', async () => {
    const ends = await pod('codes').ends();
    expect(Object.keys(ends)).to.deep.equal(['first', 'second', 'third']);
    expect(ends['first']).to.include({ exitCode: 0, reason: 'Completed' });
    expect(ends['second']).to.include({ exitCode: 1, reason: 'Error' });
    expect(ends['third']).to.include({ exitCode: 0, reason: 'Completed' });
    const logs = await Promise.all(['first', 'second', 'third'].map((name) => pod('codes').log(name)));
    expect(logs).to.deep.equal(['first\n', 'second\n', 'third\n']);
  });

  it('A7: runs its init containers one after the other, and then the others', async () => {
    expect(await pod('inits').says()).to.equal('one\ntwo\n');
    expect(await pod('inits').log('two')).to.equal('from two\n');
    const { one, two, main } = await pod('inits').ends();
    const times = [one, two, main].flatMap((end) => [end?.startedAt ?? '', end?.finishedAt ?? '']);
    expect(times).to.deep.equal([...times].sort());
  });

  it('A7: ends with its failed init container: the next one and all others never run, and are terminated', async () => {
    const ends = await pod('failed-init').ends();
    expect(Object.keys(ends)).to.deep.equal(['one', 'bad', 'never', 'main', 'beside']);
    expect(ends['one']).to.include({ exitCode: 0 });
    expect(ends['bad']).to.include({ exitCode: 3, reason: 'Error' });
    for (const name of ['never', 'main', 'beside']) {
      expect(ends[name]?.exitCode, name).to.be.greaterThan(0);
      expect(ends[name]?.message, name).to.include('bad');
      expect(await pod('failed-init').log(name), name).to.equal('');
    }
    expect(await pod('failed-init').log('bad')).to.equal('bad\n');
  });
});
