import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pod, PodStatus, RetrievedPodData } from '../../../src/clients/interlink/wire.ts';
import { bounds } from '../../../src/sources/interlink/bounds.ts';
import { BodyRoom, jsonOf, letGo, partsOf, PartsOfList } from '../../../src/sources/interlink/server/body.ts';
import { payloadBounds } from '../../../src/worker/payload-check.ts';
import { podOf } from '../../support/interlink-client.ts';
import { plainPlanner, SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { planFile, planned, podData, refusals, volumeFiles } from '../../support/pods.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const many = <T>(count: number, one: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => one(index));
const containers = (count: number, more: object = {}) =>
  many(count, (at) => ({ name: `c${at}`, image: 'busybox', command: ['true'], ...more }));
const tooLarge =
  '/container: the Pod has more ConfigMaps, Secrets, variables and arguments than a job takes: 1048576 bytes (1 MiB), and 100 files with two for each container';

/** Bytes of all texts that became buffers while `work` ran. */
function bytesMade(work: () => void): number {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it needs no `this`, and is put back
  const { from } = Buffer;
  let bytes = 0;
  Buffer.from = (...given: Parameters<typeof from>) => {
    const made = from(...given);
    bytes += made.length;
    return made;
  };
  try {
    work();
  } finally {
    Buffer.from = from;
  }
  return bytes;
}

describe('the body of a request of interLink', () => {
  it('is refused for lists within lists before it is read, which need no comma between them', () => {
    const nested = (lists: number) =>
      Buffer.from(`[${many(lists, () => '['.repeat(90) + ']'.repeat(90)).join()}]`);
    expect(jsonOf(nested(2700))).to.have.lengthOf(2700);
    expect(() => jsonOf(nested(2800))).to.throw('the body has more than 250000 values');
  });

  it('hole 8: is refused for blanks and digits without end, and not for long texts', () => {
    const mebibyte = 1024 * 1024;
    for (const piece of [' ', '1']) {
      const body = (mebibytes: number) => Buffer.from(`[1${piece.repeat(mebibytes * mebibyte - 3)}]`);
      expect(jsonOf(body(4))).to.have.lengthOf(1);
      expect(() => jsonOf(body(4.01))).to.throw('the body has more than 4 MiB outside of texts');
    }
    expect(jsonOf(Buffer.from(`["${'\\"'.repeat(7 * mebibyte)}"]`))).to.have.lengthOf(1);
  });
});

describe('a list that comes in pieces', () => {
  const item = { type: 'object', properties: { a: {}, b: { type: 'object', properties: { c: {} } } } };
  const schema = { type: 'array', items: item };
  const read = (text: string, size: number, most = 100) => {
    const list = new PartsOfList(schema, most);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) list.feed(bytes.subarray(at, at + size));
    return list.value();
  };
  /** What it is, or why it is refused. */
  const outcome = (of: () => unknown) => {
    try {
      return { value: of() };
    } catch (error) {
      return { refused: (error as Error).message };
    }
  };
  const texts = [
    '',
    'null',
    ' [ ] ',
    ' [ 1 , "é\\"],[" , {"a":[1,{"c":2}],"b":{"c":"x\\\\"},"d":"]"} ]\n',
    '[[],{},null,{"a":{"c":1}}]',
    '{"a":[1,2]}',
    '[1',
    '[1,]',
    '[,1]',
    '[1}',
    '[1]]',
    '[1][2]',
    '[1] 2',
    'x[1]',
    '1[2]',
    '["',
    ']',
    '[{"a":1},{"a"}]',
    '['.repeat(102) + ']'.repeat(102),
    `[${'1,'.repeat(100)}1]`,
    `[${'{"a":1},'.repeat(49)}{"a":1}]`,
  ];
  for (const text of texts)
    it(`is read, or refused, as in one piece: ${text.slice(0, 40)}`, () => {
      const whole = outcome(() => partsOf(Buffer.from(text), schema, 100));
      for (const size of [1, 2, 3, 7, 1000])
        expect(
          outcome(() => read(text, size)),
          `${size}`,
        ).to.deep.equal(whole);
    });

  it('holds one element and the parts of those before it, of 16 MiB together', () => {
    const passedOver = `{"d":"${'x'.repeat(10_000_000)}"}`;
    const kept = `{"a":"${'x'.repeat(6_000_000)}"}`;
    expect(read(`[${passedOver},${passedOver},${kept}]`, 65_536)).to.have.lengthOf(3);
    for (const some of [
      [kept, kept, kept],
      [kept, kept, passedOver],
    ])
      expect(() => read(`[${some.join()}]`, 65_536)).to.throw('is longer than 16 MiB');
  });
});

describe('the parts of a body that a schema names', () => {
  const schema = {
    type: 'array',
    items: {
      type: 'object',
      properties: { a: { type: 'string' }, in: { type: 'object', properties: { b: {}, 'c"': {} } } },
    },
  };
  const parts = (text: string, most = 100) => partsOf(Buffer.from(text), schema, most);

  it('are those that JSON.parse finds, and nothing else is made', () => {
    expect(
      parts(
        ' [ {"x":[1,{"a":"no"},"]}\\\""], "\\u0061" : "\\u00e4é\\"" ,"in":{"b":null, "c\\"":-1e3,"d":{"b":2}}} ,{}, {"a":"1","a":"2"} ] ',
      ),
    ).to.deep.equal([{ a: 'äé"', in: { b: null, 'c"': -1000 } }, {}, { a: '2' }]);
    expect(parts('[{"a":[1,2],"in":[3]},4,null,{"__proto__":{"a":1}}]')).to.deep.equal([
      { a: [], in: [] },
      4,
      null,
      {},
    ]);
    expect([parts('null'), parts('[]'), parts('{"a":1}'), parts('"x"')]).to.deep.equal([null, [], {}, 'x']);
    expect(partsOf(Buffer.alloc(0), schema, 1)).to.equal(undefined);
  });

  it('are refused where the text is no JSON, wherever it ends', () => {
    const whole = '[{"x":[1,{"y":"z"}],"a":"b","in":{"b":true}}]';
    for (let end = 1; end < whole.length; end++)
      expect(() => parts(whole.slice(0, end)), whole.slice(0, end)).to.throw('the body is no JSON');
    for (const wrong of [
      '[}',
      '[{]',
      '[1,]',
      '[{"a" "b"}]',
      '[{"a":}]',
      '[{a:1}]',
      '[] []',
      ',',
      '[{"a":x}]',
      '[{,}]',
    ])
      expect(() => parts(wrong), wrong).to.throw('the body is no JSON');
  });

  it('have a number, however many others there are', () => {
    const others = JSON.stringify({ x: many(1000, String), a: 'b' });
    expect(parts(`[${others}]`, 3)).to.deep.equal([{ a: 'b' }]);
    expect(() => parts(`[${others}]`, 2)).to.throw('the body has more than 2 values');
  });
});

describe('hole 8: a Pod of interLink is counted before it is copied', () => {
  const data = { data: { a: 'x'.repeat(900_000) } };
  const secretData = { data: { a: Buffer.from(data.data.a).toString('base64') } };
  const source = (volumes: Pod['spec']['volumes']): RetrievedPodData =>
    podData(
      { volumeMounts: (volumes ?? []).map(({ name }) => ({ name, mountPath: `/${name}` })) },
      { volumes: volumes ?? [] },
      {
        container: [
          {
            name: 'main',
            configMaps: [{ metadata: { name: 'm' }, ...data }],
            secrets: [{ metadata: { name: 's' }, ...secretData }],
            projectedvolumemaps: (volumes ?? []).map(({ name }) => ({ metadata: { name }, ...data })),
          },
        ],
      },
    );
  const items = many(200, (at) => ({ key: 'a', path: `p${at}` }));
  const volumes = (one: object) => many(200, (at) => ({ name: `v${at}`, ...one }));
  for (const [title, pod] of [
    ['a key of a ConfigMap as 200 files', source([{ name: 'v', configMap: { name: 'm', items } }])],
    ['a key of a Secret as 200 files', source([{ name: 'v', secret: { secretName: 's', items } }])],
    ['a ConfigMap as 200 volumes', source(volumes({ configMap: { name: 'm' } }))],
    ['a Secret as 200 volumes', source(volumes({ secret: { secretName: 's' } }))],
    ['200 projected volumes', source(volumes({ projected: { sources: [] } }))],
    ['200 volumes of the downward API', source(volumes({ downwardAPI: {} }))],
  ] as const)
    it(`${title}: nothing of it is decoded`, () => {
      let found: readonly string[] = [];
      const made = bytesMade(() => {
        found = refusals(pod);
      });
      expect(found).to.deep.equal([tooLarge]);
      expect(made).to.be.lessThan(payloadBounds.bytes / 2);
    });

  it('two keys that fit become files, as text and as base64, and a key that no volume takes costs nothing', () => {
    const pod = podData(
      { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      {
        volumes: [
          { name: 'v', configMap: { name: 'm', items: many(2, (at) => ({ key: `k${at}`, path: `${at}` })) } },
        ],
      },
      {
        container: [
          {
            name: 'main',
            configMaps: [
              {
                metadata: { name: 'm' },
                data: { k0: 'ü', other: 'x'.repeat(2_000_000) },
                binaryData: { k1: '/w==' },
              },
            ],
          },
        ],
      },
    );
    let files: readonly string[] = [];
    const made = bytesMade(() => {
      files = volumeFiles(planned(pod)).map(([name, bytes]) => `${name} ${bytes.toString('hex')}`);
    });
    expect(files).to.deep.equal(['0644 v/0 c3bc', '0644 v/1 ff']);
    expect(made).to.be.lessThan(payloadBounds.bytes);
  });

  it('a login that is long is not copied for each container', () => {
    const auths = { 'docker.io': { username: 'u', password: 'x'.repeat(900_000) } };
    const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
    const pod = podData(
      {},
      { containers: containers(40), imagePullSecrets: [{ name: 's' }] },
      {
        container: [
          { name: 'c0', secrets: [{ metadata: { name: 's' }, data: { '.dockerconfigjson': text } }] },
        ],
      },
    );
    let found: readonly string[] = [];
    const made = bytesMade(() => {
      found = refusals(pod);
    });
    expect(found).to.deep.equal([tooLarge]);
    // Its base64, and the first copy of it.
    expect(made).to.be.lessThan(3 * payloadBounds.bytes);
  });

  it('a ConfigMap of a hundred thousand empty keys is more than a job takes', () => {
    const data = (keys: number) => Object.fromEntries(many(keys, (at) => [`k${at}`, '']));
    const podWith = (keys: number) =>
      podData(
        { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
        { volumes: [{ name: 'v', configMap: { name: 'm' } }] },
        { container: [{ name: 'main', configMaps: [{ metadata: { name: 'm' }, data: data(keys) }] }] },
      );
    expect(refusals(podWith(100_000))).to.deep.equal([tooLarge]);
    expect(volumeFiles(planned(podWith(10_000)))).to.have.length(10_000);
  });

  it('a Secret for images with hundreds of thousands of values is not read', () => {
    const files = (values: number) => {
      const json = `{"auths":{"docker.io":{"auth":"dTpw"}},"x":[${'[],'.repeat(values)}[]]}`;
      const data = { '.dockerconfigjson': Buffer.from(json).toString('base64') };
      const container = [{ name: 'c0', secrets: [{ metadata: { name: 's' }, data }] }];
      const spec = { containers: containers(1), imagePullSecrets: [{ name: 's' }] };
      return planned(podData({}, spec, { container })).payload.files?.map(({ name }) => name) ?? [];
    };
    expect(files(100)).to.include('l0');
    expect(files(300_000)).not.to.include('l0');
  });

  const annotated = (key: string, text: string, count = 1) =>
    podData({}, { containers: containers(count) }, { annotations: { [key]: text } });
  const options = 'slurm-job.vk.io/singularity-options';
  const atOptions = '/pod/metadata/annotations/slurm-job.vk.io~1singularity-options: ';
  it('directories that its annotations bind are mounts of each container', () => {
    const text = `-B ${many(100, (at) => `/eos/${at}`).join(',')}`;
    const context = { hostPaths: ['/eos'] };
    expect(refusals(annotated(options, text, 5), context)).to.deep.equal([]);
    expect(refusals(annotated(options, text, 6), context)).to.deep.equal([
      '/pod/spec: the Pod has 600 mounts; a job has 500 at most',
    ]);
  });
  it('options of apptainer have a number, and their text a length', () => {
    expect(planFile(planned(annotated(options, '--nv '.repeat(100))), 'c0').match(/--nv/g)).to.have.length(
      100,
    );
    expect(refusals(annotated(options, '--nv '.repeat(101)))).to.deep.equal([
      `${atOptions}the options have 101 words; they may have 100`,
    ]);
    expect(refusals(annotated(options, ' '.repeat(65_537)))).to.deep.equal([
      `${atOptions}the options have 65537 characters; they may have 65536`,
    ]);
  });
  it('dollars in its arguments have a number, since each is looked at, and stay as they are up to that', () => {
    const args = (dollars: number) => podData({ args: ['$('.repeat(dollars - 10), '$x'.repeat(10)] });
    expect(refusals(args(100_001))).to.have.length(1);
    expect(refusals(args(100_001))[0]).to.match(/ dollar signs/);
    expect(refusals(podData({ args: ['$'.repeat(200_002)] }))).to.have.length(1);
    expect(planned(args(100_000)).containers).to.deep.equal(['main']);
  });

  it('items and Secrets for images have a number', () => {
    const configMap = { name: 'm', items: many(10_001, (at) => ({ key: 'a', path: `p${at}` })) };
    expect(refusals(podData({}, { volumes: [{ name: 'v', configMap }] }))).to.deep.equal([
      '/pod/spec: the Pod has 10001 items; a job has 10000 at most',
    ]);
    expect(
      refusals(podData({}, { imagePullSecrets: many(501, (at) => ({ name: `s${at}` })) })),
    ).to.deep.equal(['/pod/spec: the Pod has 501 imagePullSecrets; a job has 500 at most']);
  });
  it('a path or an image that is longer than Linux takes is not copied for each of its mounts', () => {
    const path = `/data/${'x'.repeat(5000)}`;
    const pod = podData(
      { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      { volumes: [{ name: 'v', hostPath: { path } }] },
    );
    expect(refusals(pod, { hostPaths: ['/data'] })).to.deep.equal([
      `/pod/spec/volumes/0/hostPath: the path "/data/${'x'.repeat(74)}..." of the machine has 5006 characters; a path has 4095 at most`,
    ]);
    const rooted = { annotations: { 'slurm-job.vk.io/image-root': 'docker://'.padEnd(5000, 'x') } };
    expect(refusals(podData({}, {}, rooted))[0]).to.match(/is no name of an image$/);
  });
});

describe('hole 8: a question of interLink costs no more than its length allows', () => {
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  const keeps = 'interlink.eu/disable-offload-containers';

  async function start(one: SidecarUnderTest): Promise<void> {
    sidecar = one;
    app = await sidecar.start();
  }
  afterEach(() => sidecar.stop());

  const ask = async (url: string, body: unknown) => {
    const { statusCode, payload } = await app.inject({ method: 'POST', url, payload: JSON.stringify(body) });
    return { status: statusCode, text: payload };
  };
  const create = (pod: unknown) => ask('/create', { pod, container: null, jobConfig: {} });
  const statuses = async (pods: readonly unknown[]) =>
    JSON.parse((await ask('/status', pods)).text) as PodStatus[];
  const fresh = (planner = plainPlanner) => new SidecarUnderTest(join(temporaryDirectory(), 'root'), planner);
  const metadataOf = (annotations: Readonly<Record<string, string>> = {}) => ({
    ...podOf('many', randomUUID(), 'true').metadata,
    annotations,
  });

  it('a Pod with more containers than any may have now is still answered and deleted', async () => {
    await start(fresh());
    const names = many(3000, (at) => `kept${at}`);
    const metadata = metadataOf({ [keeps]: names.join(' , ') });
    const own = containers(120);
    expect((await create({ metadata, spec: { containers: own } })).status).to.equal(200);
    await sidecar.stop();
    await start(sidecar.next());
    const pod = { metadata, spec: { containers: [...own, ...names.map((name) => ({ name, image: 'b' }))] } };
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back, and called with its own `this`
    const { split } = String.prototype;
    let characters = 0;
    String.prototype.split = function (this: string, ...given: readonly unknown[]) {
      if (given[0] === ',') characters += this.length;
      return Reflect.apply(split, this, given) as string[];
    };
    const [status] = await statuses([pod]).finally(() => {
      String.prototype.split = split;
    });
    expect(status?.containers.map(({ name }) => name)).to.deep.equal([
      ...own.map(({ name }) => name),
      ...names,
    ]);
    expect(characters).to.be.lessThan(2 * names.join(' , ').length);
    expect((await ask('/delete', pod)).status).to.equal(200);
    expect(sidecar.jobs.get(metadata.uid)?.status).to.equal('cancelled');
  });

  it('of the labels and annotations of a Pod none is read but those that count, and as many as there are cost no other its status', async () => {
    await start(fresh());
    const pod = podOf('one', randomUUID(), 'true');
    expect((await create(pod)).status).to.equal(200);
    const labels = Object.fromEntries(many(150_000, (at) => [`l${at}`, '']));
    const annotations = { ...labels, [keeps]: 'kept' };
    const crowded = many(2, () => ({
      metadata: { ...metadataOf(annotations), labels },
      spec: { containers: [{ name: 'main', image: 'b', env: [{ name: 'A', value: '' }] }] },
    }));
    const text = { status: JSON.stringify([pod, ...crowded]), delete: JSON.stringify(crowded[0]) };
    const { parse } = JSON;
    let characters = 0;
    JSON.parse = (json: string) => {
      characters += json.length;
      return parse(json) as unknown;
    };
    const post = (url: string, payload: string) => app.inject({ method: 'POST', url, payload });
    const answers = await Promise.all([post('/status', text.status), post('/delete', text.delete)]).finally(
      () => {
        JSON.parse = parse;
      },
    );
    expect(answers.map(({ statusCode }) => statusCode)).to.deep.equal([200, 200]);
    expect((JSON.parse(answers[0].payload) as PodStatus[]).map(({ UID }) => UID)).to.deep.equal(
      [pod, ...crowded].map(({ metadata }) => metadata.uid),
    );
    expect(characters).to.be.lessThan(2000);
  });

  it('large Pods of one user keep none from its state where all are asked for at once, and hold nothing up', async () => {
    await start(fresh());
    const pods = many(5, (at) => podOf(`p${at}`, randomUUID(), 'true'));
    await Promise.all(pods.map(create));
    const env = [{ name: 'A', value: 'x\\"]}'.repeat(280_000) }];
    const large = many(20, (at) => {
      const pod = podOf(`large${at}`, randomUUID(), 'true');
      return { ...pod, spec: { ...pod.spec, containers: [{ name: 'main', image: 'i', env }] } };
    });
    const ordinary = many(2000, (at) => {
      const pod = podOf(`ordinary${at}`, randomUUID(), 'true');
      return { ...pod, status: { text: 'x'.repeat(10_000) } };
    });
    const all = [...large, ...ordinary, ...pods];
    expect(JSON.stringify(all).length).to.be.greaterThan(3 * bounds.bodyBytes);
    const answered = await statuses(all);
    expect(answered.map(({ UID }) => UID)).to.deep.equal(all.map(({ metadata }) => metadata.uid));
  });

  it('a Pod that is named again and again is answered once, and there are only so many', async () => {
    await start(fresh());
    const pod = podOf('one', randomUUID(), 'true');
    await create(pod);
    const { metadata } = pod;
    expect(await statuses(many(20_000, () => ({ metadata })))).to.have.length(1);
    const named = many(10_001, () => ({ metadata: metadataOf() }));
    expect(await ask('/status', [pod, ...named.slice(2)])).to.include({ status: 200 });
    expect(await ask('/status', named)).to.deep.equal({
      status: 413,
      text: 'the body names 10001 Pods; ask for 10000 at once',
    });
  });

  it('the log has some parts of a Pod that are left out, and how many more there are', async () => {
    const warnings = ['x'.repeat(5000), ...many(49_999, (at) => `part ${at}`)];
    await start(
      fresh((data) => {
        const plan = plainPlanner(data);
        return 'payload' in plan ? { ...plan, warnings } : plan;
      }),
    );
    await create(podOf('one', randomUUID(), 'true'));
    const told = sidecar.logged.flatMap(({ warning }) => (typeof warning === 'string' ? [warning] : []));
    expect(told).to.have.length(21);
    expect(told[0]).to.have.length(1000);
    expect(told.at(-1)).to.equal('49980 further parts');
  });

  it('of all mistakes of a Pod a few are told', async () => {
    await start(fresh(() => many(50_000, (at) => `/at: mistake ${at}`)));
    const { status, text } = await create(podOf('one', randomUUID(), 'true'));
    expect({ status, told: text.split('; ').length }).to.deep.equal({ status: 400, told: 20 });
  });

  it('Pods that wait for jobs keep no other body from being read', async () => {
    await start(fresh());
    sidecar.submits = false;
    // Together they are longer than all bodies may be that are looked at.
    const filler = { metadata: { name: 'm' }, data: { other: 'x'.repeat(10_000_000) } };
    const pods = many(8, (at) => podOf(`p${at}`, randomUUID(), 'true'));
    const bodyOf = (pod: unknown) => ({
      pod,
      container: [{ name: 'main', configMaps: [filler] }],
      jobConfig: {},
    });
    const answers = pods.map((pod) => ask('/create', bodyOf(pod)));
    await until('all are accepted', async () => {
      await sidecar.pass();
      return sidecar.wanted.length === pods.length;
    });
    await sidecar.stop();
    expect((await Promise.all(answers)).map(({ status }) => status)).to.deep.equal(pods.map(() => 500));
  });

  it('a Pod that waited at a restart has its body in its file, and gets its job', async () => {
    await start(fresh());
    sidecar.submits = false;
    const pod = podOf('one', randomUUID(), 'true');
    const { uid } = pod.metadata;
    const first = create(pod);
    await until('it is asked for', () => sidecar.wanted.length === 1);
    // As a crash leaves it.
    const file = join(sidecar.root, 'pods', `${uid}.json`);
    const text = readFileSync(file, 'utf8');
    await sidecar.stop();
    expect((await first).status).to.equal(500);
    const root = join(temporaryDirectory(), 'root');
    mkdirSync(join(root, 'pods'), { recursive: true });
    writeFileSync(join(root, 'pods', `${uid}.json`), text);
    const next = new SidecarUnderTest(root);
    await next.book.load();
    const loaded = next.book.get(uid);
    expect(loaded).to.include({ body: undefined, bodyBytes: text.length, isWanted: true });
    await start(next);
    expect((await create(pod)).status).to.equal(200);
    expect(sidecar.jobs.get(uid)?.status).to.equal('submitted');
  });

  it('bodies that memory has no room for are not read before others are done with, in their order', async () => {
    const room = new BodyRoom();
    const socket = new EventEmitter();
    const entered: string[] = [];
    const enter = (name: string, headers: Readonly<Record<string, string>>) => {
      const request = { headers, raw: { socket } } as unknown as FastifyRequest;
      const raw = new EventEmitter();
      const inside = room.enter(request, { raw } as unknown as FastifyReply).then(() => entered.push(name));
      return { request, raw, inside };
    };
    const half = { 'content-length': String(bounds.bodyBytes) };
    const [one] = many(bounds.bodiesBytes / bounds.bodyBytes, (at) => enter(`full ${at}`, half));
    const gone = enter('gone', half);
    const chunked = enter('chunked', { 'transfer-encoding': 'chunked' });
    const large = enter('large', { 'content-length': '65537' });
    const small = enter('small', { 'content-length': '65536' });
    await small.inside;
    expect(entered).to.have.members(['full 0', 'full 1', 'full 2', 'full 3', 'small']);
    gone.raw.emit('close');
    if (one === undefined) throw new Error('there is room for one');
    letGo(one.request);
    one.raw.emit('close');
    await chunked.inside;
    expect(entered.slice(5)).to.deep.equal(['gone', 'chunked']);
    chunked.raw.emit('close');
    await large.inside;
    expect(entered.slice(7)).to.deep.equal(['large']);
    // Its connection ends while answers of it wait behind another one.
    const last = enter('last', half);
    socket.emit('close');
    await last.inside;
    expect(socket.listenerCount('close')).to.equal(0);
  });
});
