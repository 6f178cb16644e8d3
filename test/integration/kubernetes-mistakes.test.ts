import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { runHere } from '../support/command-line.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { container, type ControlPlane, controlPlane, type Namespace } from '../support/kubernetes.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const good = stringify(jobTemplate());
const limits = (memory: string) => [{ ...container('pilot'), resources: { limits: { memory } } }];

interface Mistake {
  readonly what: string;
  readonly template?: string;
  readonly kubeconfig?: string;
  readonly submitter?: Readonly<Record<string, unknown>>;
  readonly monitor?: Readonly<Record<string, unknown>>;
  readonly all?: Readonly<Record<string, unknown>>;
  /** Of the lines of `check-config`, one of which it must be. */
  readonly said: RegExp;
}

const config = (cluster: object, user: object = {}) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
  });

const mistakes: Readonly<Record<string, Mistake>> = {
  SYNTAX: {
    what: 'a template that is no YAML',
    template: 'kind: Job\nspec: {\n',
    said: /SYNTAX\.yaml:\d+.* error: .*\[syntax\]/,
  },
  POD: {
    what: 'a template that is not a Job',
    template: 'apiVersion: v1\nkind: Pod\n',
    said: /POD\.yaml:2.* error: it is a Pod of v1; the template of a worker must be a Job of batch\/v1 \[template-wrong\]/,
  },
  SEVERAL: {
    what: 'several documents',
    template: `${good}---\nkind: PersistentVolumeClaim\n`,
    said: /SEVERAL\.yaml.* error: there are several YAML documents; keep the Job alone in this file/,
  },
  EMPTY: {
    what: 'no container',
    template: stringify(jobTemplate({}, { containers: [] })),
    said: /EMPTY\.yaml:\d+.* error: containers is empty; the first container/,
  },
  NOTHING: { what: 'an empty file', template: '', said: /NOTHING\.yaml.* error: / },
  QUANTITY: {
    what: 'a quantity that is none',
    template: stringify(jobTemplate({}, { containers: limits('2 gigs') })),
    said: /QUANTITY\.yaml:\d+.* error: memory is "2 gigs"; it must be a quantity such as 2, 500m, 4Gi or 4G/,
  },
  PLACEHOLDER: {
    what: 'an unknown placeholder',
    template: good.replace('name: pilot', 'name: ${workerNo}'),
    said: /PLACEHOLDER\.yaml:\d+.* error: "\$\{workerNo\}" is not a placeholder; known ones are /,
  },
  MISSING: {
    what: 'a template that is not there',
    submitter: { k8s_yaml_file: 'none.yaml' },
    said: /error: .*none\.yaml.* \[file-unreadable\]/,
  },
  NOCONFIG: {
    what: 'a kubeconfig that is not there',
    kubeconfig: 'none',
    said: /error: .*\/none.* \[file-unreadable\]/,
  },
  BADCONFIG: {
    what: 'a kubeconfig that is no YAML',
    kubeconfig: 'broken',
    said: /error: .*\/broken.* \[syntax\]/,
  },
  LISTCONFIG: {
    what: 'a kubeconfig that is a list',
    kubeconfig: 'list',
    said: /error: .*\/list.* \[syntax\]/,
  },
  CONTEXT: {
    what: 'a context that is not in the kubeconfig',
    all: { k8s_context: 'production' },
    said: /error: .*production.* \[syntax\]/,
  },
  NAMESPACE: {
    what: 'a namespace that cannot be',
    all: { k8s_namespace: 'My_Pilots' },
    said: /error: "My_Pilots" cannot be a namespace: at most 63 small letters, digits and inner dashes/,
  },
  RULE: {
    what: 'a pending rule that is no regular expression',
    monitor: { pendingRules: [{ reason: '(', then: 'fail' }] },
    said: /RULE\/monitor\/pendingRules\/0\/reason.* error: reason is "\(", which is no regular expression/,
  },
  ACTION: {
    what: 'a pending rule with an unknown action',
    monitor: { pendingRules: [{ reason: 'A', then: 'stop' }] },
    said: /pendingRules\/0\/then.* error: .*"stop"/,
  },
  LIMIT: {
    what: 'no time in the queue at all',
    monitor: { podQueueTimeLimit: 0 },
    said: /podQueueTimeLimit.* error: .*podQueueTimeLimit is 0.* 1/,
  },
  PROCESSES: {
    what: 'no process',
    submitter: { nProcesses: 0 },
    said: /nProcesses.* error: .*nProcesses is 0.* 1/,
  },
};

/** One bad queue never stops the others. */
describe('a mistake in a Kubernetes queue', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let site: Site;
  let daemon: RunningDaemon | undefined;

  before(async () => {
    plane = await controlPlane();
    space = await plane.namespace('mistakes');
    const queues = Object.entries(mistakes).map(([name, mistake]) => {
      const { template, kubeconfig, all, submitter, monitor } = mistake;
      const sections = { submitter: { ...all, ...submitter }, monitor: { ...all, ...monitor }, sweeper: all };
      const files = {
        template: template === undefined ? 'job.yaml' : `${name}.yaml`,
        ...(kubeconfig && { kubeconfig }),
      };
      return [
        name,
        kubernetesQueue(space, {
          ...files,
          submitter: sections.submitter,
          monitor: sections.monitor,
          ...(all && { sweeper: all }),
        }),
      ] as const;
    });
    const written = Object.entries(mistakes).flatMap(([name, { template }]) =>
      template === undefined ? [] : [[`${name}.yaml`, template] as const],
    );
    site = kubernetesSite(
      plane,
      {
        queues: {
          GOOD: kubernetesQueue(space),
          EDITED: kubernetesQueue(space, {
            template: 'edited.yaml',
          }),
          TOKEN: kubernetesQueue(space, { kubeconfig: 'token' }),
          NOWHERE: kubernetesQueue(space, { kubeconfig: 'nowhere' }),
          NOPROXY: {
            ...kubernetesQueue(space, { submitter: { x509UserProxy: 'no-proxy' } }),
            queueStatus: 'offline',
          },
          NOMOUNT: {
            ...kubernetesQueue(space, { submitter: { proxySecretPath: '/proxy/x509' } }),
            queueStatus: 'offline',
          },
          ...Object.fromEntries(queues),
        },
      },
      { 'job.yaml': good, 'edited.yaml': good, ...Object.fromEntries(written) },
    );
    writeFileSync(site.path('broken'), 'clusters: [\n');
    writeFileSync(site.path('list'), '- a\n- b\n');
    const server = plane.status.server;
    writeFileSync(site.path('token'), config({ server }, { tokenFile: '/no-such-token' }));
    writeFileSync(site.path('nowhere'), config({ server: 'http://127.0.0.1:9' }));
  });

  after(async () => {
    await site.clean();
    await space[Symbol.asyncDispose]();
  });

  for (const [name, { what, said }] of Object.entries(mistakes)) {
    it(`is found before anything starts: ${what}`, async () => {
      const { stdout, status } = await runHere('--config', site.config, 'check-config', name);
      expect(
        stdout
          .split('\n')
          .filter((line) => line.includes(' error: '))
          .join('\n'),
      ).to.match(said);
      expect(status).to.equal(1);
    });
  }

  it('is a token file that is not there: a warning, since it may be written later, and a reason until it is', async () => {
    const { stdout, status } = await runHere('--config', site.config, 'check-config', 'TOKEN');
    expect(stdout).to.match(
      /TOKEN\/submitter\/k8s_config_file.* warning: .*\/token names \/no-such-token, which is not there/,
    );
    expect(status).to.equal(0);
  });

  for (const [name, what, said] of [
    [
      'NOPROXY',
      'a proxy file that is not there',
      /x509UserProxy.* warning: the proxy \S+\/no-proxy is not there/,
    ],
    [
      'NOMOUNT',
      'a path of the proxy where nothing is mounted',
      /proxySecretPath.* warning: no volume of container pilot holds \/proxy\/x509 \(it mounts nothing\)/,
    ],
  ] as const) {
    it(`is worth a warning: ${what}`, async () => {
      const { stdout, status } = await runHere('--config', site.config, 'check-config', name);
      expect(stdout).to.match(said);
      expect(status).to.equal(0);
    });
  }

  /** Started once, by whoever needs it first. */
  const started = () => (daemon ??= site.start());

  it('stops that queue alone in a running daemon', async () => {
    started();
    await until(
      'the good one has its worker',
      async () => (await site.workers({ queue: 'GOOD', status: 'running' })).length === 1,
    );
    const states = new Map((await site.queues()).map(({ name, state }) => [name, state]));
    for (const name of Object.keys(mistakes))
      expect(states.get(name), name).to.be.oneOf(['refused', 'incomplete']);
    expect(states.get('GOOD')).to.equal('running');
    const queues = new Set((await site.workers()).map(({ queueName }) => queueName));
    expect([...queues].filter((name) => Object.hasOwn(mistakes, name))).to.deep.equal([]);
  });

  for (const [name, what, said] of [
    ['NOWHERE', 'a server that is nowhere', /127\.0\.0\.1:9/],
    ['TOKEN', 'a token file that is not there', /tokenFile .*\/no-such-token/],
  ] as const) {
    it(`is a reason that its queue shows: ${what}`, async () => {
      started();
      await until('it is shown', async () => {
        const { reasons } = await site.queue(name);
        return reasons.some(({ code, message }) => said.test(`${code}: ${message}`));
      });
      expect(await site.workers({ queue: name })).to.deep.equal([]);
    });
  }

  it('that comes while the daemon runs stops the queue with its reason, and mended it goes on', async () => {
    started();
    const alive = () => site.workers({ queue: 'EDITED', status: 'running' });
    await until('it has a worker', async () => (await alive()).length === 1);
    const broken = parse(good) as { spec: { template: { spec: { containers: unknown[] } } } };
    broken.spec.template.spec.containers = [];
    writeFileSync(site.path('edited.yaml'), stringify(broken));
    // With the last one gone it would submit another.
    const kill = async () => {
      const [worker] = await alive();
      await site.run('kill', String(worker?.workerID));
    };
    await kill();
    const stopped = await until('the reason is shown', async () => {
      const { reasons } = await site.queue('EDITED');
      return reasons.find(({ message }) => message.includes('containers is empty'));
    });
    expect(stopped.message).to.match(/edited\.yaml:\d+: containers is empty/);
    expect(await site.workers({ queue: 'EDITED' })).to.have.length(1);
    expect((await site.queue('GOOD')).reasons.map(({ code }) => code)).not.to.include(stopped.code);
    await until('the log says it, too', () =>
      /WARN .*the submitter is stopped.*queue=EDITED.*containers is empty/.test(daemon?.output() ?? ''),
    );
    writeFileSync(site.path('edited.yaml'), good);
    await until('it goes on', async () => (await alive()).length === 1);
    await untilSaid(started(), /INFO .*nothing stops the submitter any more.*queue=EDITED/);
  });
});
