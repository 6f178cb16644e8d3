import { htcJobs } from './resource.ts';

type Manifest = Readonly<Record<string, unknown>>;

const namespace = 'thresher-htcjob';
const name = 'thresher-htcjob';
const labels = { 'app.kubernetes.io/name': name };
const rbac = 'rbac.authorization.k8s.io';
/** Of the operator; Secrets are a role of their own. */
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
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
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

const ticket = '/tmp/krb5cc_thresher';

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

/** The daemon as an operator in the cluster, and the way by which jobs reach it. */
export function deployment(): readonly Manifest[] {
  const volume = (its: string, mountPath: string, readOnly: boolean) => ({ name: its, mountPath, readOnly });
  const container = {
    name: 'thresher',
    image: 'thresher',
    args: ['run', '--config', '/etc/thresher/thresher.yaml'],
    // HTCondor's commands look for their ticket there.
    env: [{ name: 'KRB5CCNAME', value: `FILE:${ticket}` }],
    ports: [{ name: 'http', containerPort: 25085 }],
    readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 30, failureThreshold: 10 },
    resources: { requests: { cpu: '100m', memory: '256Mi' } },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      volume('settings', '/etc/thresher', true),
      volume('http', '/etc/thresher-http', true),
      volume('kerberos', '/etc/thresher-kerberos', true),
      volume('state', '/var/lib/thresher', false),
    ],
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
            serviceAccountName: name,
            terminationGracePeriodSeconds: 60,
            securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
            containers: [container],
            volumes: [
              { name: 'settings', configMap: { name } },
              { name: 'http', secret: { secretName: `${name}-http` } },
              kerberosSecrets,
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
        rules: [
          {
            host: 'htcjob.example.org',
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

/** What the daemon reads: the queue that takes HTCJobs is the one thing to fill in. */
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
          `sources: { htcjob: { leaseNamespace: ${namespace} } }`,
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
