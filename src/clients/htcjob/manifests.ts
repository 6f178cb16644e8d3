import { finalizer, htcJobs } from './resource.ts';

type Manifest = Readonly<Record<string, unknown>>;

const namespace = 'thresher-htcjob';
const name = 'thresher-htcjob';
const labels = { 'app.kubernetes.io/name': name };
const rbac = 'rbac.authorization.k8s.io';
/** The operator has these rights; Secrets are a role of their own. */
const subjects = [{ kind: 'ServiceAccount', name, namespace }];
const group = htcJobs.group;

/** Least rights of the operator, and those of users. */
export function rights(): readonly Manifest[] {
  const role = (kind: string, its: string, rules: readonly Manifest[], more: Manifest = {}): Manifest => ({
    apiVersion: `${rbac}/v1`,
    kind,
    metadata: { name: its, ...(kind === 'Role' && { namespace }), ...more },
    rules,
  });
  const binding = (kind: 'RoleBinding' | 'ClusterRoleBinding', its: string, to: string): Manifest => ({
    apiVersion: `${rbac}/v1`,
    kind,
    metadata: { name: its, ...(kind === 'RoleBinding' && { namespace }) },
    roleRef: { apiGroup: rbac, kind: to, name: its },
    subjects,
  });
  const ofUsers = (verbs: readonly string[], aggregate: string) =>
    role('ClusterRole', `htcjobs-${aggregate}`, [{ apiGroups: [group], resources: ['htcjobs'], verbs }], {
      labels: { [`${rbac}/aggregate-to-${aggregate}`]: 'true' },
    });
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    role('ClusterRole', name, [
      { apiGroups: [group], resources: ['htcjobs'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
      { apiGroups: [group], resources: ['htcjobs/status'], verbs: ['patch'] },
      // `thresher htcjob events` lists them.
      { apiGroups: [''], resources: ['events'], verbs: ['create', 'list'] },
    ]),
    binding('ClusterRoleBinding', name, 'ClusterRole'),
    role('Role', `${name}-lease`, [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
      {
        apiGroups: ['coordination.k8s.io'],
        resources: ['leases'],
        resourceNames: [name],
        verbs: ['get', 'patch'],
      },
    ]),
    binding('RoleBinding', `${name}-lease`, 'Role'),
    // An administrator binds it in each namespace whose HTCJobs name Secrets.
    role('ClusterRole', `${name}-secrets`, [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]),
    ofUsers(['create', 'get', 'list', 'watch', 'update', 'patch', 'delete', 'deletecollection'], 'edit'),
    ofUsers(['get', 'list', 'watch'], 'view'),
  ];
}

/**
 * Kubernetes 1.36 gives new HTCJobs their finalizer as they are created, so that thresher need not change them for that. It is no part of the others: an older
 * cluster does not know it, and where no operator runs, nobody would take the finalizer away again.
 */
export function finalizerPolicy(): readonly Manifest[] {
  const admission = { apiVersion: 'admissionregistration.k8s.io/v1' };
  const metadata = { name: `${name}-finalizer`, labels };
  const patch = (path: string, value: string) =>
    `[JSONPatch{op: "add", path: "/metadata/finalizers${path}", value: ${value}}]`;
  const [one, list] = [patch('/-', `"${finalizer}"`), patch('', `["${finalizer}"]`)];
  return [
    {
      ...admission,
      kind: 'MutatingAdmissionPolicy',
      metadata,
      spec: {
        // thresher sets the finalizer of one that came without.
        failurePolicy: 'Ignore',
        reinvocationPolicy: 'Never',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [group], apiVersions: ['*'], operations: ['CREATE'], resources: [htcJobs.resource] },
          ],
        },
        matchConditions: [
          {
            name: 'has-none',
            expression: `!has(object.metadata.finalizers) || !("${finalizer}" in object.metadata.finalizers)`,
          },
        ],
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: { expression: `has(object.metadata.finalizers) ? ${one} : ${list}` },
          },
        ],
      },
    },
    {
      ...admission,
      kind: 'MutatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: metadata.name, matchResources: { namespaceSelector: {} } },
    },
  ];
}

const ticket = '/tmp/krb5cc_thresher';
const host = 'htcjob.example.org';
/** HTCondor reads a token only if the file belongs to the user who asks, which no file of a Secret does. */
const tokens = { secret: '/etc/thresher-condor', copies: '/run/thresher-condor' };
const copyTokens = `for token in ${tokens.secret}/*; do [ ! -f "$token" ] || install -m 600 "$token" ${tokens.copies}/ || exit 1; done`;
const confined = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

/** Either Secret of htc-operator, by its name; a cluster without Kerberos has none. */
const kerberosSecrets = {
  name: 'kerberos',
  projected: {
    defaultMode: 0o400,
    sources: ['kerberos-keytab-secret', 'kinit-secret'].map((secret) => ({
      secret: { name: secret, optional: true },
    })),
  },
};

/** The daemon as an operator in the cluster, and the way by which jobs reach it. Each of its Secrets but the token of HTTP may be missing. */
export function deployment(): readonly Manifest[] {
  const volume = (its: string, mountPath: string, readOnly: boolean) => ({ name: its, mountPath, readOnly });
  const container = {
    name: 'thresher',
    image: 'thresher',
    args: ['run', '--config', '/etc/thresher/thresher.yaml'],
    // HTCondor's commands look for their ticket there.
    env: [
      { name: 'KRB5CCNAME', value: `FILE:${ticket}` },
      { name: 'CONDOR_CONFIG', value: '/etc/thresher/condor_config' },
    ],
    ports: [{ name: 'http', containerPort: 25085 }],
    readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 30, failureThreshold: 10 },
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '2Gi' } },
    securityContext: confined,
    volumeMounts: [
      volume('settings', '/etc/thresher', true),
      volume('http', '/etc/thresher-http', true),
      volume('kerberos', '/etc/thresher-kerberos', true),
      volume('tokens', tokens.copies, true),
      volume('temporary', '/tmp', false),
      volume('state', '/var/lib/thresher', false),
    ],
  };
  const copier = {
    name: 'tokens',
    image: container.image,
    command: ['sh', '-c', copyTokens],
    securityContext: confined,
    volumeMounts: [volume('condor', tokens.secret, true), volume('tokens', tokens.copies, false)],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: `${name}-state`, namespace, labels },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace, labels },
      spec: {
        replicas: 1,
        // Two daemons cannot share a state directory.
        strategy: { type: 'Recreate' },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            // Another Pod that goes on with its state is the same machine to it: what the former one had started is over, unless that Pod was deleted by force.
            hostname: name,
            serviceAccountName: name,
            terminationGracePeriodSeconds: 60,
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 1000,
              runAsGroup: 1000,
              fsGroup: 1000,
              seccompProfile: { type: 'RuntimeDefault' },
            },
            initContainers: [copier],
            containers: [container],
            volumes: [
              { name: 'settings', configMap: { name } },
              { name: 'http', secret: { secretName: `${name}-http` } },
              kerberosSecrets,
              { name: 'condor', secret: { secretName: `${name}-condor`, optional: true } },
              { name: 'tokens', emptyDir: { medium: 'Memory' } },
              { name: 'temporary', emptyDir: {} },
              { name: 'state', persistentVolumeClaim: { claimName: `${name}-state` } },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace, labels },
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name, namespace, labels },
      spec: {
        // The events of jobs carry tokens.
        tls: [{ hosts: [host], secretName: `${name}-tls` }],
        rules: [
          {
            host,
            http: {
              paths: [
                {
                  path: '/sources/htcjob/',
                  pathType: 'Prefix',
                  backend: { service: { name, port: { name: 'http' } } },
                },
              ],
            },
          },
        ],
      },
    },
  ];
}

/** The daemon's files, with the addresses of a site that has to fill in its own. */
export function settings(): readonly Manifest[] {
  const queue = {
    HTCJOBS: {
      demand: 'htcjob',
      queueStatus: 'online',
      maxWorkers: 1000,
      nQueueLimitWorker: 1000,
      submitter: {
        name: 'HTCondorSubmitter',
        module: 'thresher/htcondor',
        condorSchedd: 'schedd.example.org',
        condorPool: 'pool.example.org',
        useSpool: true,
        templateFile: 'job.sub.yaml',
        logDir: '/var/lib/thresher/logs',
      },
      monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
      sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
    },
  };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace, labels },
      data: {
        'thresher.yaml': [
          'master: { stateDir: /var/lib/thresher }',
          'qconf: { configFile: /etc/thresher/panda_queueconfig.json }',
          'http: { host: 0.0.0.0, tokenFile: /etc/thresher-http/token }',
          'sources:',
          '  htcjob:',
          `    leaseNamespace: ${namespace}`,
          `    eventsUrl: https://${host}/sources/htcjob/cloudevents`,
          '# With a Secret kerberos-keytab-secret or kinit-secret:',
          '# credmanager:',
          '#   pluginConfigs:',
          '#     - module: thresher/credentials',
          '#       name: KerberosCredManager',
          '#       configs:',
          '#         kerberos:',
          '#           secretDirectory: /etc/thresher-kerberos',
          `#           ccache: ${ticket}`,
          '',
        ].join('\n'),
        'panda_queueconfig.json': `${JSON.stringify(queue, undefined, 2)}\n`,
        condor_config: [
          'RELEASE_DIR = /usr',
          'LOCAL_DIR = /tmp',
          'CONDOR_HOST = pool.example.org',
          `SEC_TOKEN_DIRECTORY = ${tokens.copies}`,
          'SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS, KERBEROS',
          'SEC_CLIENT_ENCRYPTION = REQUIRED',
          'SEC_CLIENT_INTEGRITY = REQUIRED',
          'LOCAL_CONFIG_DIR =',
          '',
        ].join('\n'),
        'job.sub.yaml': [
          'universe: vanilla',
          'executable: /bin/true',
          'transfer_executable: false',
          'should_transfer_files: YES',
          'when_to_transfer_output: ON_EXIT',
          'output: out.${workerID}',
          'error: err.${workerID}',
          'log: log.${workerID}',
          '',
        ].join('\n'),
      },
    },
  ];
}
