import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Component, placesIn, type Ports } from './state.ts';

/** A kubeconfig of the administrator. */
export function kubeconfigFor(server: string, certificates: string): string {
  const file = (name: string) => join(certificates, name);
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': file('ca.crt') } }],
    users: [
      { name: 'admin', user: { 'client-certificate': file('admin.crt'), 'client-key': file('admin.key') } },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}

/** Writes the files that the commands name. */
export function writeConfiguration(directory: string, ports: Ports): void {
  const { root, certificates, kubeconfig } = placesIn(directory);
  const server = `https://127.0.0.1:${ports.apiServer}`;
  writeFileSync(kubeconfig, kubeconfigFor(server, certificates), { mode: 0o600 });
  const scheduler = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: 2000, burst: 4000 },
  };
  writeFileSync(join(root, 'scheduler.yaml'), stringify(scheduler));
}

/** Arguments of a component. All listens on loopback; who needs no port has none, so that environments run side by side. */
export function commandOf(component: Component, directory: string, ports: Ports, stages: string): string[] {
  const { root, certificates, kubeconfig } = placesIn(directory);
  const file = (name: string) => join(certificates, name);
  const etcd = `http://127.0.0.1:${ports.etcd}`;
  const etcdPeers = `http://127.0.0.1:${ports.etcdPeers}`;
  switch (component) {
    case 'etcd':
      return [
        `--data-dir=${join(root, 'etcd')}`,
        `--listen-client-urls=${etcd}`,
        `--advertise-client-urls=${etcd}`,
        `--listen-peer-urls=${etcdPeers}`,
        `--initial-advertise-peer-urls=${etcdPeers}`,
        `--initial-cluster=default=${etcdPeers}`,
        // A machine that crashes takes the tests with it: their data need not survive.
        '--unsafe-no-fsync',
        '--quota-backend-bytes=8589934592',
        '--log-level=warn',
      ];
    case 'kube-apiserver':
      return [
        `--etcd-servers=${etcd}`,
        `--secure-port=${ports.apiServer}`,
        '--bind-address=127.0.0.1',
        '--advertise-address=127.0.0.1',
        `--cert-dir=${certificates}`,
        `--tls-cert-file=${file('apiserver.crt')}`,
        `--tls-private-key-file=${file('apiserver.key')}`,
        `--client-ca-file=${file('ca.crt')}`,
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${file('sa.pub')}`,
        `--service-account-signing-key-file=${file('sa.key')}`,
        '--service-cluster-ip-range=10.96.0.0/16',
        '--authorization-mode=RBAC',
        '--allow-privileged=true',
        '--max-requests-inflight=2000',
        '--max-mutating-requests-inflight=1000',
      ];
    case 'kube-controller-manager':
      return [
        `--kubeconfig=${kubeconfig}`,
        '--leader-elect=false',
        `--service-account-private-key-file=${file('sa.key')}`,
        `--root-ca-file=${file('ca.crt')}`,
        '--controllers=*,-nodeipam,-route,-service',
        '--concurrent-job-syncs=20',
        '--kube-api-qps=2000',
        '--kube-api-burst=4000',
        '--secure-port=0',
      ];
    case 'kube-scheduler':
      return [`--config=${join(root, 'scheduler.yaml')}`, '--secure-port=0'];
    case 'kwok':
      return [
        `--kubeconfig=${kubeconfig}`,
        '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
        `--config=${stages}`,
        '--cidr=10.200.0.0/16',
        '--node-ip=127.0.0.1',
        '--node-port=0',
        // Renewed every quarter of it, so a busy machine loses no node.
        '--node-lease-duration-seconds=40',
      ];
  }
}
