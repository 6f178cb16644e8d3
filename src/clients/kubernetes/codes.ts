import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** What a Kubernetes API server says, or keeps from being asked. */
export const kubernetesErrors = {
  'kubeconfig-missing': {
    meaning: 'The kubeconfig file cannot be read, or the daemon does not run in a Pod and none was named.',
    remedy: 'Check the path and its permissions, or name a file in `k8s_config_file`.',
  },
  'kubeconfig-wrong': {
    meaning: 'A kubeconfig file has a mistake, or lacks the context that is asked for.',
    remedy: 'Mend the place named; `kubectl --kubeconfig FILE config view` shows what kubectl makes of it.',
  },
  'kubernetes-other-cluster': {
    meaning: 'A kubeconfig that names one cluster was changed to name another, where its workers are not.',
    remedy:
      'Put the old one back until its workers have ended, and give the new one a kubeconfig of its own; see the message if it is the same cluster.',
  },
  'kubernetes-credentials': {
    meaning:
      'What the kubeconfig names for the login does not come: a token, certificate or key file cannot be read, or the exec plugin failed.',
    remedy: 'See the message; run the plugin by hand as the user of the daemon.',
  },
  'kubernetes-unauthorized': {
    meaning: 'The API server does not accept the credentials (401), also after they were read again.',
    remedy: 'Renew the token or certificate; the daemon reads the files again by itself.',
  },
  'kubernetes-forbidden': {
    meaning: 'The user lacks a right (403); the message names verb, resource and namespace.',
    remedy: 'Give it the right with a Role and a RoleBinding.',
  },
  'kubernetes-quota': {
    meaning: 'A ResourceQuota of the namespace does not allow more.',
    remedy: 'Wait for room, raise the quota, or lower the limits of the queue.',
  },
  'kubernetes-admission': {
    meaning: "The cluster's admission control refused the object: a policy, a webhook or a limit range.",
    remedy: 'Change the template as the message says, or ask who runs the cluster.',
  },
  'kubernetes-namespace': {
    meaning: 'The namespace does not exist, or is being deleted.',
    remedy: 'Create it, or correct `k8s_namespace`.',
  },
  'kubernetes-not-found': {
    meaning: 'The object does not exist.',
    remedy: 'None needed where it was to be removed; else somebody removed it.',
  },
  'kubernetes-already-exists': {
    meaning: 'An object of this name exists already.',
    remedy: 'Nothing to do where it is ours; else remove or rename it.',
  },
  'kubernetes-conflict': {
    meaning: 'The object changed meanwhile, or is another one of the same name (409).',
    remedy: 'Nothing to do: it is looked at again.',
  },
  'kubernetes-gone': {
    meaning: 'The API server no longer has the version of a list or watch (410).',
    remedy: 'Nothing to do: everything is listed again.',
  },
  'kubernetes-rewound': {
    meaning:
      "The API server's versions went backwards: an operator restored its etcd to an older state, which knows nothing of what came after it.",
    remedy:
      'Nothing to do: thresher lists everything again, asks by name for each worker that is missing, and ends those that are gone.',
  },
  'kubernetes-invalid': {
    meaning: 'The API server finds fields of the object wrong (422); the message names them.',
    remedy: 'Mend the template.',
  },
  'kubernetes-refused': {
    meaning: 'The API server refused the request for another reason (4xx).',
    remedy: 'See the message.',
  },
  'kubernetes-too-many-requests': {
    meaning: 'The API server asks for patience (429), longer than the request could wait.',
    remedy:
      'Nothing to do: all requests to that cluster wait as long as it said. If it lasts, lower the rate.',
  },
  'kubernetes-server-error': {
    meaning: 'The API server failed (5xx); the request may have been carried out.',
    remedy: 'Look at its health; it is tried again.',
  },
  'kubernetes-unreachable': {
    meaning:
      'No answer from the API server: no connection, no such name, a certificate that is not trusted, a broken connection or silence.',
    remedy: 'See the message; check `server`, `certificate-authority` and `proxy-url` of the kubeconfig.',
  },
  'kubernetes-given-up': {
    meaning: 'A request was given up by the daemon before its answer came, for instance because it stops.',
    remedy: 'Nothing to do.',
  },
  'kubernetes-no-api': {
    meaning:
      'What answers is no Kubernetes API server (a proxy, a login page), or it does not serve this kind of object.',
    remedy: 'Check `server` in the kubeconfig, and the version of the cluster.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof kubernetesErrors> {}
}
