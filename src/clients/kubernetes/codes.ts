import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of a Kubernetes API server, or of the way to it. */
export const kubernetesErrors = {
  'kubeconfig-missing': {
    meaning:
      'thresher cannot read the kubeconfig file; or the queue names none, and the daemon does not run in a Pod.',
    remedy: 'Check the path and its permissions, or name a file in `k8s_config_file`.',
  },
  'kubeconfig-wrong': {
    meaning: 'A kubeconfig file has a mistake, or lacks the requested context.',
    remedy:
      'Fix the line that the message names; `kubectl --kubeconfig FILE config view` shows how kubectl reads the file.',
  },
  'kubernetes-other-cluster': {
    meaning:
      'A changed kubeconfig, or that of the machine that took over, names another cluster than before, which does not have its workers or HTCJobs.',
    remedy:
      'Put the old file back until its workers have ended, and give the new cluster a kubeconfig of its own; see the message if it is the same cluster.',
  },
  'kubernetes-credentials': {
    meaning:
      'The login of the kubeconfig does not work: thresher cannot read a token, certificate or key file, or the exec plugin failed.',
    remedy: 'See the message; run the plugin by hand as the user of the daemon.',
  },
  'kubernetes-unauthorized': {
    meaning: 'The API server does not accept the credentials (401), even after thresher read them again.',
    remedy: 'Renew the token or certificate; the daemon reads the files again by itself.',
  },
  'kubernetes-forbidden': {
    meaning: 'The user lacks a right (403); the message names verb, resource and namespace.',
    remedy: 'Give the user this right with a Role and a RoleBinding.',
  },
  'kubernetes-quota': {
    meaning: 'A ResourceQuota of the namespace does not allow more objects.',
    remedy: 'Wait for room, raise the quota, or lower the limits of the queue.',
  },
  'kubernetes-admission': {
    meaning: "The cluster's admission control refused the object: a policy, a webhook or a limit range.",
    remedy: 'Change the template as the message says, or ask the administrators of the cluster.',
  },
  'kubernetes-namespace': {
    meaning: 'The namespace does not exist, or is being deleted.',
    remedy: 'Create it, or correct `k8s_namespace`.',
  },
  'kubernetes-not-found': {
    meaning: 'The object does not exist.',
    remedy: 'None needed if thresher was about to remove the object; otherwise another client removed it.',
  },
  'kubernetes-already-exists': {
    meaning: 'An object of this name exists already.',
    remedy: 'Nothing to do if the object is ours; otherwise remove or rename it.',
  },
  'kubernetes-conflict': {
    meaning: 'The object has changed meanwhile, or is another one of the same name (409).',
    remedy: 'Nothing to do: thresher looks at it again.',
  },
  'kubernetes-gone': {
    meaning: 'The API server no longer has the version of a list or watch (410).',
    remedy: 'Nothing to do: thresher lists everything again.',
  },
  'kubernetes-rewound': {
    meaning:
      "The API server's versions went backwards: an operator restored its etcd to an older state, which lacks all later changes.",
    remedy:
      'Nothing to do: thresher lists everything again, asks by name for each missing worker, and ends the rows of those that are gone.',
  },
  'kubernetes-invalid': {
    meaning: 'The API server finds fields of the object wrong (422); the message names them.',
    remedy: 'Fix the template.',
  },
  'kubernetes-refused': {
    meaning: 'The API server refused the request for another reason (4xx).',
    remedy: 'See the message.',
  },
  'kubernetes-too-many-requests': {
    meaning: 'The API server asks thresher to wait (429) for longer than the request may take.',
    remedy:
      'Nothing to do: all requests to that cluster wait for the requested time. If it lasts, lower the rate.',
  },
  'kubernetes-server-error': {
    meaning: 'The API server failed (5xx); it may have carried out the request.',
    remedy: 'Look at the health of the API server; thresher tries again.',
  },
  'kubernetes-unreachable': {
    meaning:
      'The API server gives no answer: no connection, no such name, an untrusted certificate, a broken connection or silence.',
    remedy: 'See the message; check `server`, `certificate-authority` and `proxy-url` of the kubeconfig.',
  },
  'kubernetes-given-up': {
    meaning: 'The daemon abandoned a request before its answer came, for instance because the daemon stops.',
    remedy: 'Nothing to do.',
  },
  'kubernetes-no-api': {
    meaning:
      'The server that answers is no Kubernetes API server (a proxy, a login page), or does not serve this kind of object.',
    remedy: 'Check `server` in the kubeconfig, and the version of the cluster.',
  },
  'kubernetes-secret-name': {
    meaning:
      'The server gave an object whose name, namespace, uid or version has a token or password of thresher in it: it, or a proxy before it, echoes the login that it was sent. The answer counts as none.',
    remedy:
      'Look at what stands before the API server, and renew the login. If a password merely is as the name of an object, change the password.',
  },
  'kubernetes-too-large': {
    meaning:
      'An answer has more bytes or values than the daemon reads at once (8 MB, 400,000 values, 40,000 keys), or a list has more than it keeps in memory (512 MiB of characters). A list asks for smaller pages by itself, so one object alone is that large, or the server is no Kubernetes API server.',
    remedy:
      'See the message, which names the object where its metadata can be read; make it smaller, or delete it.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof kubernetesErrors> {}
}
