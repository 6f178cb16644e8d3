import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { readFileSync } from 'node:fs';
import { loadTemplate, parseTemplate } from '../../../../src/plugins/kubernetes/template/template.ts';
import type { TemplateOptions } from '../../../../src/plugins/kubernetes/template/template-checks.ts';
import { files } from '../../../support/operator-files.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const fixtures = join(import.meta.dirname, '../../../fixtures/kubernetes');
const own = join(import.meta.dirname, '../../../../templates/kubernetes');

const good = `apiVersion: batch/v1
kind: Job
metadata:
  name: pilot
spec:
  backoffLimit: 0
  podReplacementPolicy: Failed
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: pilot
          image: busybox
          resources:
            limits:
              memory: 2Gi
          env:
            - name: SITE
              value: $computingSite
`;

/** "line code message" of every finding in the good template with one text replaced by another. */
function findings(from: string, to: string, options: TemplateOptions = {}): string[] {
  const text = good.replace(from, () => to);
  if (from !== '' && text === good) throw new Error(`${from} is not in the template`);
  const loaded = parseTemplate(text, 'pilot.yaml', options);
  const problems = loaded.ok ? loaded.warnings : loaded.problems;
  return problems.map(
    ({ line, code, message, severity }) =>
      `${line ?? 0} ${severity === 'warning' ? 'warning ' : ''}${code}: ${message}`,
  );
}

describe('a Kubernetes template', () => {
  it('without a fault has nothing said of it', () => {
    expect(findings('', '')).to.deep.equal([]);
  });

  it('of Harvester is taken as it is, and has nothing said of it', async () => {
    const loaded = await loadTemplate(files, join(fixtures, 'job_cern.yaml'));
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    expect(loaded.template.pilot).to.equal('atlas-grid-centos7');
    expect(loaded.warnings).to.deep.equal([]);
  });

  for (const [what, from, to, expected] of [
    [
      'more than one Pod at once',
      'backoffLimit: 0',
      'backoffLimit: 0\n  parallelism: 2',
      [/^7 warning template-risky: parallelism is 2/],
    ],
    [
      'more than one completion',
      'backoffLimit: 0',
      'backoffLimit: 0\n  completions: 3',
      [/^7 warning template-risky: completions is 3/],
    ],
    [
      'retries',
      'backoffLimit: 0',
      'backoffLimit: 4',
      [/^6 warning template-risky: backoffLimit is 4, .*: write 0$/],
    ],
    [
      'the retries that Kubernetes has by itself',
      '  backoffLimit: 0\n',
      '',
      [/^5 warning .*backoffLimit is not there, which counts as 6/],
    ],
    [
      'restarts in the Pod',
      'restartPolicy: Never',
      'restartPolicy: OnFailure',
      [/^10 warning .*restartPolicy is OnFailure/],
    ],
    [
      'a replacement beside a Pod on its way out',
      'backoffLimit: 0\n  podReplacementPolicy: Failed',
      'backoffLimit: 2\n  podReplacementPolicy: TerminatingOrFailed',
      [/^6 warning .*backoffLimit is 2/, /^7 warning .*write Failed$/],
    ],
    [
      'a controller that makes its Pod in another cluster',
      'backoffLimit: 0',
      'backoffLimit: 0\n  managedBy: kueue.x-k8s.io/multikueue',
      [/^7 warning .*managedBy is kueue.x-k8s.io\/multikueue: Kubernetes makes no Pod/],
    ],
    [
      'a short life after the end',
      'backoffLimit: 0',
      'backoffLimit: 0\n  ttlSecondsAfterFinished: 60',
      [/^7 warning .*ttlSecondsAfterFinished is 60/],
    ],
    [
      'its identity written down',
      '- name: SITE\n              value: $computingSite',
      '- name: workerID\n              value: "5"',
      [/^18 warning .*workerID says who the worker is .* write "\$workerID"/],
    ],
    [
      'a variable twice',
      '- name: SITE\n',
      '- name: SITE\n              value: a\n            - name: SITE\n',
      [/^20 warning .*SITE stands twice in env of pilot/],
    ],
    [
      "thresher's label",
      '  name: pilot\nspec',
      '  name: pilot\n  labels: { thresher/factory: me }\nspec',
      [/^5 warning .*is replaced: remove it/],
    ],
    [
      'args that no command takes',
      'image: busybox',
      'image: busybox\n          args: [-c, mine]',
      [/^14 warning .*the starter of pilots runs, and not these args/],
    ],
  ] as const) {
    it(`is warned about for ${what}`, () => {
      const found = findings(from, to);
      expect(found).to.have.length(expected.length);
      for (const [index, pattern] of expected.entries()) expect(found[index]).to.match(pattern);
    });
  }

  for (const [when, policy] of [
    ['is not there', ''],
    ['is TerminatingOrFailed', '  podReplacementPolicy: TerminatingOrFailed\n'],
  ] as const) {
    it(`has no warning of a second Pod when podReplacementPolicy ${when} and backoffLimit is 0`, () => {
      expect(findings('  podReplacementPolicy: Failed\n', policy)).to.deep.equal([]);
    });
  }

  it('has no warning of a second Pod when a podFailurePolicy makes Failed the default', () => {
    const rules = 'podFailurePolicy: { rules: [] }';
    const found = findings('backoffLimit: 0\n  podReplacementPolicy: Failed', `backoffLimit: 2\n  ${rules}`);
    expect(found.map((line) => line.split(' is ')[0])).to.deep.equal([
      '6 warning template-risky: backoffLimit',
    ]);
  });

  describe('c25: with a rule about failures', () => {
    it('has no warning of a second Pod where backoffLimitPerIndex is 0', () => {
      const indexed = 'completionMode: Indexed\n  completions: 1';
      expect(findings('backoffLimit: 0', `backoffLimitPerIndex: 0\n  ${indexed}`)).to.deep.equal([]);
      expect(findings('backoffLimit: 0', `backoffLimitPerIndex: 2\n  ${indexed}`)).to.deep.equal([
        '6 warning template-risky: backoffLimitPerIndex is 2, so a pilot that failed is started again as another Pod: write 0',
      ]);
    });

    it('is warned about where the rule ignores a failure: another Pod follows, whatever backoffLimit says', () => {
      const policy = (action: string) =>
        `backoffLimit: 0\n  podFailurePolicy: { rules: [{ action: FailJob, onExitCodes: { operator: In, values: [3] } }, { action: ${action}, onPodConditions: [{ type: DisruptionTarget }] }] }`;
      const [found, ...others] = findings('backoffLimit: 0', policy('Ignore'));
      expect(found).to.match(
        /^7 warning template-risky: a failure that this rule ignores counts as none, .*write FailJob$/,
      );
      expect(others).to.deep.equal([]);
      expect(findings('backoffLimit: 0', policy('Count'))).to.deep.equal([]);
      for (const odd of ['{ rules: 5 }', '{ rules: [5] }', '{}'])
        expect(findings('backoffLimit: 0', `backoffLimit: 0\n  podFailurePolicy: ${odd}`), odd).to.deep.equal(
          [],
        );
    });
  });

  describe('c02: with a container beside the pilot', () => {
    const image = '          image: busybox\n';
    const beside = `${image}        - name: log-shipper\n          image: fluent-bit\n          workingDir: "/\${nothing}"\n`;
    const plain = `${image}        - name: log-shipper\n          image: fluent-bit\n`;

    it('is warned about: the Pod does not end with the pilot, and Harvester starts the first container alone', () => {
      const [found, ...others] = findings(image, plain);
      expect(found).to.match(
        /^14 warning template-risky: container log-shipper runs beside the pilot, and the Pod ends when both have ended .*init container with restartPolicy Always.*onlyPilotContainer$/,
      );
      expect(others).to.deep.equal([]);
      expect(findings(image, plain, { pilotContainer: 'log-shipper' })[0]).to.match(
        /^12 .*container pilot runs beside/,
      );
    });

    it('has the pilot alone where the queue wants that, and nothing is said of the others', () => {
      for (const pilotContainer of ['pilot', 'log-shipper']) {
        const text = good.replace(image, plain);
        const loaded = parseTemplate(text, 'pilot.yaml', { pilotContainer, onlyPilotContainer: true });
        if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
        expect(loaded.template.job.spec.template.spec.containers.map(({ name }) => name)).to.deep.equal([
          pilotContainer,
        ]);
        expect(loaded.template.pilot).to.equal(pilotContainer);
        expect(loaded.warnings).to.deep.equal([]);
      }
      expect(findings(image, beside, { onlyPilotContainer: true })).to.deep.equal([]);
      expect(findings(image, beside).join()).to.match(/is not a placeholder/);
      expect(
        findings(image, beside, { pilotContainer: 'log-shipper', onlyPilotContainer: true })[0],
      ).to.match(/^16 unknown-placeholder/);
      expect(findings(image, plain, { pilotContainer: 'other', onlyPilotContainer: true })[0]).to.match(
        /there is no container other/,
      );
    });
  });

  it('is warned about for a starter that the queue does not want', () => {
    const command = 'image: busybox\n          command: [python3, "$EXEC_DIR/pilots_starter.py"]';
    expect(findings('image: busybox', command)).to.deep.equal([]);
    const [found] = findings('image: busybox', command, { pilotsStarterConfigMap: '' });
    expect(found).to.match(/^14 warning .*mounts nothing there: leave that option out$/);
  });

  for (const [what, from, to, expected] of [
    ['broken YAML', 'kind: Job', 'kind: [Job', /^\d+ syntax: not valid YAML: /],
    ['a tab', '  backoffLimit', '\tbackoffLimit', /^6 syntax: not valid YAML: /],
    [
      'a key twice',
      'backoffLimit: 0',
      'backoffLimit: 0\n  backoffLimit: 1',
      /^7 syntax: not valid YAML: Map keys must be unique/,
    ],
    [
      'several documents',
      'kind: Job\n',
      'kind: Job\n---\nkind: Pod\n',
      /^\d+ syntax: there are several YAML documents/,
    ],
    [
      'a Pod',
      'batch/v1\nkind: Job',
      'v1\nkind: Pod',
      /^2 template-wrong: it is a Pod of v1; .* must be a Job of batch\/v1/,
    ],
    ['a CronJob', 'kind: Job', 'kind: CronJob', /^2 template-wrong: it is a CronJob of batch\/v1/],
    ['a Job of the past', 'batch/v1', 'batch/v1beta1', /^2 template-wrong: it is a Job of batch\/v1beta1/],
    ['no kind', 'kind: Job\n', '', /^1 template-wrong: it is a thing without kind of batch\/v1/],
    [
      'no container',
      'containers:',
      'noContainers:',
      /^9 template-wrong: in the Job "containers" is missing here/,
    ],
    [
      'an empty list of containers',
      /containers:[^]*/.exec(good)![0],
      'containers: []\n',
      /^11 template-wrong: containers is empty/,
    ],
    [
      'a container instead of a list',
      '        - name: pilot\n          image',
      '          name: pilot\n          image',
      /^\d+ template-wrong: in the Job containers is .* it must be a list/,
    ],
    [
      'a container without image',
      '          image: busybox\n',
      '',
      /^12 template-wrong: container pilot has no image/,
    ],
    [
      'a container without a name',
      'name: pilot\n          image',
      'nam: pilot\n          image',
      /^12 template-wrong: in the Job "name" is missing here/,
    ],
    [
      'a quantity that is none',
      '2Gi',
      '2GB',
      /^16 template-wrong: memory is "2GB"; it must be a quantity such as/,
    ],
    ['a negative quantity', '2Gi', '-2Gi', /^16 template-wrong: memory is "-2Gi"/],
    [
      'a request above its limit',
      'memory: 2Gi',
      'memory: 2Gi\n            requests: { memory: 3Gi }',
      /^17 template-wrong: memory is requested with 3Gi, more than its limit 2Gi/,
    ],
    [
      'a name that is none',
      '$computingSite',
      '$computingSit',
      /^19 unknown-placeholder: SITE is "\$computingSit", which is no known name; did you mean \$computingSite\? For a variable of the container write \$\(computingSit\)$/,
    ],
    [
      'a placeholder that is none',
      '$computingSite',
      'x-${computingSit}',
      /^19 unknown-placeholder: "\$\{computingSit\}" is not a placeholder/,
    ],
    [
      'a placeholder that is none, in a label',
      '  name: pilot\nspec',
      '  name: pilot\n  labels: { a: "${b}" }\nspec',
      /^5 unknown-placeholder: "\$\{b\}"/,
    ],
    [
      'a variable that is a number',
      '$computingSite',
      '1',
      /^19 template-wrong: SITE has the value 1; it must be a string: write it in quotes/,
    ],
    [
      'a variable that YAML reads as a boolean',
      '$computingSite',
      'yes',
      /^19 template-wrong: SITE has the value true/,
    ],
    [
      'env as a map',
      '- name: SITE\n              value: $computingSite',
      'SITE: a',
      /^\d+ template-wrong: in the Job env is .* it must be a list/,
    ],
    [
      'the value of a variable twice',
      'value: $computingSite',
      'value: a\n              valueFrom: { fieldRef: {} }',
      /^18 template-wrong: SITE has both value and valueFrom/,
    ],
    [
      'a restart policy that Jobs cannot have',
      'restartPolicy: Never',
      'restartPolicy: Always',
      /^10 template-wrong: restartPolicy is "Always"; Kubernetes refuses/,
    ],
    [
      'no restart policy',
      '      restartPolicy: Never\n',
      '',
      /^9 template-wrong: restartPolicy is not there, which counts as Always/,
    ],
    [
      'a mount of no volume',
      'image: busybox',
      'image: busybox\n          volumeMounts: [{ name: proxi, mountPath: /p }]\n      volumes: [{ name: proxy, emptyDir: {} }]\n      x:\n        - a: b',
      /^14 template-wrong: container pilot mounts proxi, which is none of the volumes; did you mean proxy\?/,
    ],
    [
      'a selector',
      'backoffLimit: 0',
      'backoffLimit: 0\n  selector: {}',
      /^7 template-wrong: selector would be the same for all workers/,
    ],
    [
      'a label that is none',
      '  name: pilot\nspec',
      '  name: pilot\n  labels: { a: "b c" }\nspec',
      /^5 template-wrong: label a is "b c"; it must be/,
    ],
    [
      'a label that is a number',
      '  name: pilot\nspec',
      '  name: pilot\n  labels: { a: 1 }\nspec',
      /^5 template-wrong: in the Job a is 1; it must be a string/,
    ],
    [
      'two containers of one name',
      '          image: busybox',
      '          image: busybox\n        - name: pilot\n          image: busybox',
      /^14 template-wrong: a second container has the name pilot/,
    ],
    [
      'a container name in capitals',
      'name: pilot\n          image',
      'name: Pilot\n          image',
      /^12 template-wrong: container name Pilot must be/,
    ],
    [
      'a deadline in words',
      'restartPolicy: Never',
      'restartPolicy: Never\n      activeDeadlineSeconds: 1h',
      /^11 template-wrong: in the Job activeDeadlineSeconds is "1h"; it must be an integer/,
    ],
    ['an empty file', good, '', /template-wrong: it is empty; the template of a worker must be a Job/],
    [
      'what Helm would make a Job of',
      'image: busybox',
      'image: {{ .Values.image }}',
      /^\d+ syntax: this is a template of Helm, and thresher reads a Job: render it first/,
    ],
    ['a list', good, '- a\n', /^1 template-wrong: it is a list or a plain value/],
  ] as const) {
    it(`is refused for ${what}, with file and line`, () => {
      const found = findings(from, to);
      expect(found.join('\n')).to.match(expected);
    });
  }

  it('is refused where the queue names a container that it does not have', () => {
    expect(findings('', '', { pilotContainer: 'plot' })).to.deep.equal([
      "11 template-wrong: there is no container plot, which the queue names as the pilot's; there is pilot",
    ]);
  });

  it('needs no image where the queue has one', () => {
    expect(findings('          image: busybox\n', '', { hostImage: 'almalinux:9' })).to.deep.equal([]);
  });

  it('is warned about for a namespace that is not the one of its queue', () => {
    const named = ['name: pilot\nspec', 'name: pilot\n  namespace: other\nspec'] as const;
    expect(findings(...named, { namespace: 'pilots' })[0]).to.match(
      /^5 warning .*namespace is other, and the queue's is pilots/,
    );
    expect(findings(...named, { namespace: 'other' })).to.deep.equal([]);
  });

  it('may use what the shell knows in command and args', () => {
    const shell = 'image: busybox\n          command: [sh, -c, "${HOME}/x ${1:-y}"]';
    expect(findings('image: busybox', shell)).to.deep.equal([]);
  });

  it('may hold keys without a value, which count as not written', () => {
    expect(findings('  name: pilot\nspec', '  name: pilot\n  labels:\n  annotations:\nspec')).to.deep.equal(
      [],
    );
  });

  it('is read as Kubernetes reads YAML: octal modes, yes and no, merge keys', () => {
    const volumes = `      volumes:
        - name: proxy
          secret: &secret { secretName: a, defaultMode: 0400, optional: no }
        - name: again
          secret: { <<: *secret, secretName: b }
        - name: mode
          secret: { secretName: c, defaultMode: 0o644 }
`;
    const loaded = parseTemplate(good + volumes, 'pilot.yaml');
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const secrets = loaded.template.job.spec.template.spec.volumes?.map(
      (one) => (one as { secret?: unknown }).secret,
    );
    expect(secrets).to.deep.equal([
      { secretName: 'a', defaultMode: 256, optional: false },
      { secretName: 'b', defaultMode: 256, optional: false },
      { secretName: 'c', defaultMode: 420 },
    ]);
  });

  it('that is not there is said to be so', async () => {
    const file = join(temporaryDirectory(), 'missing.yaml');
    const loaded = await loadTemplate(files, file);
    expect(loaded).to.deep.include({ ok: false });
    expect(JSON.stringify(loaded)).to.include('file-unreadable').and.include(file);
    writeFileSync(file, good);
    expect((await loadTemplate(files, file)).ok).to.equal(true);
  });

  it('is not the file of volume claims beside it', async () => {
    const loaded = await loadTemplate(files, join(fixtures, 'k8s_cvmfs_1.15.yaml'));
    expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).to.match(/several YAML documents/);
  });
});

describe('the templates that ship with the program', () => {
  for (const name of readdirSync(own).filter((file) => file.startsWith('pilot-'))) {
    it(`${name} has nothing to be warned about`, async () => {
      const loaded = await loadTemplate(files, join(own, name), { namespace: 'pilots' });
      expect(loaded.ok ? loaded.warnings : loaded.problems).to.deep.equal([]);
    });
  }

  it('are four', () => {
    expect(readdirSync(own).filter((file) => file.startsWith('pilot-'))).to.have.length(4);
  });

  const manifests = readdirSync(own, { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      // Settings of thresher, and what Helm reads, are no objects.
      file.endsWith('.yaml') && !/^pilot-|^htcondor-pool\/chart\/|\/thresher\.yaml$/.test(file),
  );
  for (const name of manifests) {
    it(`${name} is YAML in which every object has its kind and name`, () => {
      for (const document of parseAllDocuments(readFileSync(join(own, name), 'utf8'))) {
        expect('errors' in document ? document.errors : []).to.deep.equal([]);
        const object = (document as { toJS(): unknown }).toJS();
        expect(object).to.have.property('apiVersion');
        expect(object).to.have.property('kind');
        const { kind, metadata } = object as {
          kind: string;
          metadata?: { name?: string; generateName?: string };
        };
        // kubectl alone reads a Kustomization, and the server completes the name of a workflow.
        if (kind !== 'Kustomization') expect(metadata?.name ?? metadata?.generateName).to.be.a('string');
      }
    });
  }

  it('give thresher no right that it does not use', () => {
    const documents = parseAllDocuments(readFileSync(join(own, 'rbac.yaml'), 'utf8')) as {
      toJS(): unknown;
    }[];
    const roles = documents.map(
      (one) =>
        one.toJS() as {
          kind: string;
          metadata: { name: string; namespace?: string };
          rules: { resources: string[]; resourceNames?: string[]; verbs: string[] }[];
        },
    );
    expect(roles.filter(({ kind }) => kind.startsWith('Cluster'))).to.deep.equal([]);
    const rights = roles
      .filter(({ kind }) => kind === 'Role')
      .map(({ metadata, rules }) => [
        metadata.name,
        Object.fromEntries(
          rules.map(({ resources, resourceNames = [], verbs }) => [
            [...resources, ...resourceNames].join(' '),
            verbs.join(),
          ]),
        ),
      ]);
    expect(Object.fromEntries(rights)).to.deep.equal({
      thresher: {
        jobs: 'create,get,list,watch,delete',
        pods: 'list,watch,delete',
        'pods/log': 'get',
        events: 'create,list',
      },
      'thresher-starter': { configmaps: 'create', 'configmaps pilots-starter': 'get,patch,delete' },
      'thresher-payload': { jobs: 'patch', 'configmaps secrets': 'create' },
      'thresher-secrets': { secrets: 'create,get,list,patch,delete' },
    });
  });
});
