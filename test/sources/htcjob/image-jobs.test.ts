import { expect } from 'chai';
import { ImageJobs, type MakerContext } from '../../../src/sources/htcjob/job/image-jobs.ts';
import type { HtcJobCluster } from '../../../src/sources/htcjob/cluster.ts';
import { jobsOf, requestsOf } from '../../../src/sources/htcjob/job-request.ts';
import type { HtcJobSpec, Runtime, SpecProblem } from '../../../src/clients/htcjob/resource.ts';
import { payloadProblems } from '../../../src/worker/payload-check.ts';
import type { Payload } from '../../../src/worker/payload.ts';
import { base64, htcJob, payloadOf } from '../../support/htc-jobs.ts';

const maker = new ImageJobs({ binds: ['/cvmfs'], runtime: 'apptainer', events: undefined });
const script = { image: 'centos', command: 'bash', source: 'echo "A"\n' };
const problemsOf = (spec: Partial<HtcJobSpec>): readonly SpecProblem[] => maker.problems(htcJob(spec).spec);

describe('the needs of a HTCJob', () => {
  it('are refused where no machine has so much, since those of all jobs are added up', () => {
    expect(problemsOf({ requests: { cpus: 4096, memory: '64Ti', disk: '900Ti' } })).to.deep.equal([]);
    expect(problemsOf({ requests: { cpus: 4097, memory: '8388607Pi', disk: '1e30' } })).to.deep.equal([
      { at: '/spec/requests/cpus', message: 'cpus is 4097: no machine has so much; write at most 4096' },
      {
        at: '/spec/requests/memory',
        message: 'memory is 8388607Pi: no machine has so much; write at most 64Ti',
      },
      { at: '/spec/requests/disk', message: 'disk is 1e30: no machine has so much; write at most 900Ti' },
    ]);
  });
});

describe('the mistakes of a HTCJob', () => {
  it('are told without the whole text of an image, a variable or a file, which may be as long as the HTCJob', () => {
    const long = 'x'.repeat(500_000);
    const found = problemsOf({
      script: { ...script, image: `${long} ` },
      env: [{ name: `1${long.slice(0, 50_000)}`, value: '' }],
      output: { files: [long] },
    });
    expect(found.map(({ at }) => at)).to.include.members([
      '/spec/script/image',
      '/spec/env/0',
      '/spec/output/files/0',
    ]);
    for (const { at, message } of found) expect(message.length, at).to.be.lessThan(400);
  });

  for (const runtime of ['apptainer', 'singularity', 'container', 'none'] as const)
    it(`are the variables that a shell sets itself, for ${runtime} as well`, () => {
      const names = ['PWD', 'OLDPWD', 'IFS', 'OPTIND', 'PPID', 'SHLVL', '_'];
      const { spec } = htcJob({ runtime, script, env: names.map((name) => ({ name, value: 'x' })) });
      const found = new ImageJobs({ binds: [], runtime, events: undefined }).problems(spec);
      expect(found.map(({ at }) => at)).to.deep.equal(names.map((_, index) => `/spec/env/${index}`));
      expect(found[0]?.message).to.equal('a shell sets "PWD" itself; set it in the script');
    });
});

describe('hole 8: a HTCJob', () => {
  it('has each Secret and each of its keys once: a few bytes would name a large one very often', () => {
    const keys = Array.from({ length: 49 }, () => 'a');
    const found = problemsOf({
      secrets: [
        { name: 's', keys: ['a', 'b'] },
        { name: 't', keys },
        { name: 's', keys: ['c'] },
      ],
    });
    expect(found).to.deep.equal([
      { at: '/spec/secrets', message: 'the Secret "s" is there twice; keep one of them' },
      { at: '/spec/secrets/1/keys', message: 'the key "a" is there twice; keep one of them' },
    ]);
  });

  it('whose jobs have many words brings them when they are made, and counts each word', async () => {
    const cluster = { secretsOf: async () => new Map() } as unknown as HtcJobCluster;
    const jobs = async (command: string) => {
      const { spec, metadata } = htcJob({ queue: 10, script: { ...script, command } });
      return jobsOf({ meta: metadata, spec }, { cluster, maker }, new AbortController().signal);
    };
    const follows = async (command: string) =>
      requestsOf(await jobs(command), [0]).get(0)?.payloadFollows === true;
    expect(await follows('a '.repeat(10))).to.equal(false);
    expect(await follows('a '.repeat(1900))).to.equal(true);
    const words = 49_000;
    expect((await jobs('a '.repeat(words))).size).to.be.greaterThan(words * 10);
  });
});

describe('the payload of a job of an HTCJob', () => {
  it('shares what its jobs have in common: a source of 900 kB is encoded once', () => {
    const resource = htcJob({ script: { ...script, source: 'x'.repeat(900_000) }, queue: 2 });
    const [first, second] = [0, 1].map((index) =>
      maker.payload({ resource, number: index, index, secrets: new Map() }),
    );
    const sourceOf = ({ files = [] }: Payload) => files.find(({ name }) => name === 'script.sh');
    expect(sourceOf(first!)?.content).to.have.length(1_200_000);
    expect(sourceOf(second!)).to.equal(sourceOf(first!));
  });

  it("is that of htc-operator's zero.yaml", () => {
    const payload = payloadOf(htcJob(), 2, { runtime: 'apptainer', binds: ['/cvmfs', '/afs'] });
    const files = payload.files?.map(({ name, mode }) => `${name} ${mode.toString(8)}`);
    expect({ ...payload, files }).to.deep.equal({
      values: { image: 'centos' },
      files: ['run.sh 755', 'script.sh 755'],
      argv: ['./run.sh', 'apptainer', 'docker://centos', '-', '2', '0', '2', '/cvmfs', '/afs', 'sh'],
      env: { JOB_NAME: 'zero' },
      output: false,
    });
    expect(payload.files?.[1]?.content).to.equal(base64('echo "A"\n'));
    expect(payloadProblems(payload)).to.deep.equal([]);
  });

  const images: readonly (readonly [Runtime, string, string])[] = [
    ['apptainer', 'centos', 'docker://centos'],
    ['singularity', 'registry.site:5000/a/b:1', 'docker://registry.site:5000/a/b:1'],
    ['apptainer', 'oras://a/b', 'oras://a/b'],
    ['apptainer', '/cvmfs/unpacked/a', '/cvmfs/unpacked/a'],
    ['apptainer', './image.sif', './image.sif'],
    ['container', 'centos', 'centos'],
    ['container', 'docker://centos', 'docker://centos'],
    ['container', '/cvmfs/a', '/cvmfs/a'],
    ['none', 'centos', 'centos'],
  ];
  for (const [runtime, image, named] of images)
    it(`names the image ${image} for ${runtime} as ${named}`, () => {
      const { argv } = payloadOf(htcJob({ script: { ...script, image }, runtime }), 0, {
        imagePaths: ['/cvmfs'],
        runtime,
      });
      expect(argv?.slice(1, 3)).to.deep.equal([runtime, named]);
    });

  const elsewhere: readonly (readonly [Runtime, string])[] = [
    ...[
      '/',
      '/etc',
      '/cvmfs',
      '/cvmfs/../etc',
      '/cvmfs//a',
      '/cvmfs/',
      '/cvmfsx/a',
      '//cvmfs/a',
      './../dir_7',
      './.condor_creds',
    ].map((image) => ['apptainer', image] as const),
    ...['../dir_7', 'instance://other', 'docker-daemon://a', 'file:///etc'].map(
      (image) => ['singularity', image] as const,
    ),
    ...[
      ...['/etc/shadow', './secret', '../secret', 'a/../../secret', 'file:///etc/shadow'],
      ...['a.sif,/etc/passwd', 'https://a.org/a.sif,/etc/passwd,https://a.org/a.sif', 'https://a,docker://b'],
    ].map((image) => ['container', image] as const),
  ];
  for (const [runtime, image] of elsewhere)
    it(`hole 2: is refused for the image ${image} of ${runtime}, which may show other jobs or the machine`, () => {
      const { spec } = htcJob({ script: { ...script, image }, runtime });
      const found = new ImageJobs({
        binds: [],
        runtime,
        events: undefined,
        imagePaths: ['/cvmfs/'],
      }).problems(spec);
      expect(found.map(({ at }) => at)).to.deep.equal(['/spec/script/image']);
    });

  it('hole 2: is refused for a runtime that the administrator does not allow: by default, all but those with an image', () => {
    const found = (runtime: Runtime, allowed: Partial<MakerContext> = {}) =>
      new ImageJobs({ binds: [], runtime: 'apptainer', events: undefined, ...allowed }).problems(
        htcJob({ runtime, script: { ...script, image: 'docker://centos' } }).spec,
      );
    expect(found('none')).to.deep.equal([
      {
        at: '/spec/runtime',
        message:
          'the runtime is none; the administrator allows apptainer, singularity (runtimes of sources.htcjob)',
      },
    ]);
    for (const runtime of ['apptainer', 'singularity'] as const) expect(found(runtime)).to.deep.equal([]);
    expect(found('container')).to.have.length(1);
    expect(found('none', { runtimes: ['none'] })).to.deep.equal([]);
    expect(found('none', { runtime: 'none', runtimes: [] })).to.deep.equal([]);
    expect(found('apptainer', { runtime: 'none', runtimes: [] })).to.have.length(1);
  });

  it('hole 2: says of jobs in a container that nothing of them may run outside of it', () => {
    const of = (runtime: Runtime) => payloadOf(htcJob({ script, runtime }), 0, { runtime }).image;
    expect([of('container'), of('apptainer'), of('none')]).to.deep.equal([true, undefined, undefined]);
  });

  it('hole 2: gets no further job where an earlier version, or other settings, took what is refused now', () => {
    for (const [changes, why] of [
      [{ runtime: 'none' }, /^\/spec\/runtime: the runtime is none/],
      [{ script: { ...script, image: '/etc/shadow' } }, /^\/spec\/script\/image: /],
      [{ htcopts: 'queue 5' }, /^\/spec\/htcopts: /],
    ] as const)
      expect(() =>
        maker.payload({ resource: htcJob(changes), number: 0, index: 0, secrets: new Map() }),
      ).to.throw(why);
  });

  it('has the lines of htcopts and the GPUs as commands for HTCondor', () => {
    const { submit } = payloadOf(htcJob({ htcopts: '+MaxRuntime=10\n', requests: { gpus: 2 } }), 0);
    expect(submit).to.deep.equal({ request_gpus: '2', '+MaxRuntime': '10' });
  });

  it('has the token of a job in a secret file of this job alone', () => {
    const events = { url: 'https://thresher.site/sources/htcjob/cloudevents', key: Buffer.alloc(32) };
    const payloads = [0, 1].map((number) => payloadOf(htcJob(), number, { events }));
    const tokens = payloads.map(({ files = [], env = {} }) => {
      const file = files.find(({ name }) => name === 'event');
      expect(file).to.include({ mode: 0o600, secret: true });
      const { token } = JSON.parse(`${Buffer.from(file?.content ?? '', 'base64').toString()}}`) as {
        token: string;
      };
      expect(JSON.stringify(env)).to.not.contain(token);
      return token;
    });
    expect(new Set(tokens).size).to.equal(2);
  });

  it('has the keys of a Secret as secret files, those that are named or all', () => {
    const secrets = new Map([['login', { user: base64('u'), password: base64('p') }]]);
    const names = (keys?: readonly string[]) =>
      payloadOf(htcJob({ secrets: [{ name: 'login', ...(keys && { keys }) }] }), 0, { secrets })
        .files?.filter(({ secret }) => secret)
        .map(({ name, mode }) => `${name} ${mode.toString(8)}`);
    expect(names()).to.deep.equal(['secrets/login/user 600', 'secrets/login/password 600']);
    expect(names(['user'])).to.deep.equal(['secrets/login/user 600']);
    const missing = (name: string, optional: boolean) => () =>
      payloadOf(htcJob({ secrets: [{ name, keys: ['nothing'], optional }] }), 0, { secrets });
    expect(missing('other', false)).to.throw('there is no Secret "other" in the namespace default');
    expect(missing('login', false)).to.throw('has no key "nothing"; its keys: user, password');
    expect(missing('other', true)().files?.length).to.equal(2);
    expect(missing('login', true)().files?.length).to.equal(2);
  });

  const wrong: Readonly<Record<string, readonly [Partial<HtcJobSpec>, string, RegExp]>> = {
    'an image that is an option': [
      { script: { ...script, image: '--pwd=/' } },
      '/spec/script/image',
      /the image is "--pwd=\/"; it must be/,
    ],
    'an image with a new line': [
      { script: { ...script, image: 'a\nqueue' } },
      '/spec/script/image',
      /without blanks/,
    ],
    'an empty command': [{ script: { ...script, command: ' ' } }, '/spec/script/command', /is empty/],
    'an empty list as command': [{ script: { ...script, command: [] } }, '/spec/script/command', /is empty/],
    'a number as command': [
      { script: { ...script, command: 5 as unknown as string } },
      '/spec/script/command',
      /the command is 5; it must be a text, or a list of texts/,
    ],
    'an object as command': [
      { script: { ...script, command: { a: 1 } as unknown as string } },
      '/spec/script/command',
      /the command is \{"a":1\}; it must be/,
    ],
    'numbers in a command': [
      { script: { ...script, command: ['nice', 5] as unknown as string[] } },
      '/spec/script/command',
      /the command is \["nice",5\]; it must be/,
    ],
    'a command of a hundred thousand words': [
      { script: { ...script, command: Array.from({ length: 100_001 }, () => '') } },
      '/spec/script/command',
      /has more than 100000 characters, or words$/,
    ],
    'a command of half a million words as a text': [
      { script: { ...script, command: 'a '.repeat(500_000) } },
      '/spec/script/command',
      /has more than 100000 characters, or words$/,
    ],
    'a command with a NUL': [{ script: { ...script, command: ['a\0'] } }, '/spec/script/command', /NUL/],
    'a second queue': [
      { htcopts: '+WantOS=1\nqueue 3' },
      '/spec/htcopts',
      /^line 2, "queue 3": the number of jobs/,
    ],
    'a variable of the runtime': [
      { env: [{ name: 'APPTAINER_BIND', value: '/' }] },
      '/spec/env/0',
      /sets "APPTAINER_BIND"/,
    ],
    'a variable of ours': [
      { env: [{ name: 'HTCJOB_EVENTS_URL', value: '' }] },
      '/spec/env/0',
      /choose another name/,
    ],
    'a variable twice': [
      {
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      },
      '/spec/env/1',
      /"A" is there twice/,
    ],
    'a variable with a NUL': [{ env: [{ name: 'A', value: '\0' }] }, '/spec/env/0', /NUL/],
    'variables that are too long': [
      { env: [{ name: 'A', value: 'x'.repeat(100_001) }] },
      '/spec/env',
      /100000 are allowed/,
    ],
    'a source that is too long': [
      { script: { ...script, source: 'x'.repeat(1_048_576) } },
      '/spec/script/source',
      /1 MiB.*script\.sh/,
    ],
  };
  for (const [what, [spec, at, message]] of Object.entries(wrong))
    it(`is refused for ${what}, with its place`, () => {
      const [first, ...more] = problemsOf(spec);
      expect(first?.at).to.equal(at);
      expect(first?.message).to.match(message);
      expect(more).to.deep.equal([]);
    });

  it('takes a source of 900 kB', () => {
    expect(problemsOf({ script: { ...script, source: 'x'.repeat(900_000) } })).to.deep.equal([]);
  });
});
