import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** What became of a worker on Kubernetes; what other backends have too is in workers.ts. */
export const kubernetesWorkerErrors = {
  'k8s-image': {
    meaning: 'The image of a container could not be pulled, or its name is none.',
    remedy: 'Check the name, the registry and `imagePullSecrets` of the template.',
  },
  'k8s-config': {
    meaning: 'A container refers to a Secret or ConfigMap, or a key of one, that is not there.',
    remedy: 'Make it in the namespace of the queue; the message names it.',
  },
  'k8s-container-start': {
    meaning: 'The container runtime could not make or start a container.',
    remedy: 'See the message; often a command that the image does not have, or a mount.',
  },
  'k8s-crash-loop': {
    meaning: 'A container ended again and again.',
    remedy: '`thresher worker ID` shows how each container ended last.',
  },
  'k8s-not-starting': {
    meaning: 'The node took the Pod and did not start it for an hour.',
    remedy: '`kubectl describe pod`: its events name the volume (a missing Secret, CVMFS) or the network.',
  },
  'k8s-queue-time': {
    meaning: 'The pilot did not start within `podQueueTimeLimit`, or within a pending rule of the queue.',
    remedy:
      'See the message for what it waited for: room in the cluster, a quota, a node that fits. Ask for less, or wait longer.',
  },
  'k8s-oom': {
    meaning:
      'The pilot, or a process without which it gave up, was killed because its container was out of memory.',
    remedy:
      'Raise the memory limit of the container (`minRamCount`, `k8s.resources.limits.*`, or the template).',
  },
  'k8s-init-failed': {
    meaning: 'An init container of the template failed, so the pilot never started.',
    remedy: '`kubectl logs POD -c CONTAINER`; `thresher worker ID` shows all containers.',
  },
  'k8s-container-beside-failed': {
    meaning: "A container beside the pilot's failed, and the Pod with it.",
    remedy: 'Look at its log; make it a sidecar (an init container with `restartPolicy: Always`).',
  },
  'k8s-evicted': {
    meaning: 'The Pod was evicted: by its node, short of disk or memory, or by somebody who drains the node.',
    remedy: 'See the message; for disk or memory ask for more of it in the template or the queue.',
  },
  'k8s-preempted': {
    meaning: 'The Pod made room for one of higher priority.',
    remedy: 'Nothing, where pilots fill idle nodes; otherwise set `k8s.scheduler.priorityClassName`.',
  },
  'k8s-node-lost': {
    meaning: 'The node of the Pod was shut down, removed, tainted, or no longer answers.',
    remedy: 'Look at the node; another worker takes the place.',
  },
  'k8s-rejected-by-node': {
    meaning: 'The node refused the Pod that the scheduler gave it.',
    remedy: 'See the message; rare, unless something beside the scheduler places Pods.',
  },
  'k8s-failure-policy': {
    meaning: "The template's `podFailurePolicy` ended the Job.",
    remedy: 'See the message for the rule.',
  },
  'k8s-pod-gone': {
    meaning:
      'The Job failed with its Pod, and the Pod is gone, so nothing says why; or it was deleted before its pilot began.',
    remedy: 'Look who removes Pods: Pod garbage collection, a drained node, an operator.',
  },
  'k8s-name-taken': {
    meaning: "A Job that is not this worker's has its name.",
    remedy:
      'Remove the Job, if it is a copy that somebody made; two factories with one id (`master.factoryId`) need one each.',
  },
  'k8s-starter': {
    meaning:
      'The ConfigMap `pilots-starter` of the namespace holds no starter, and thresher did not make it.',
    remedy:
      'Remove the ConfigMap, if nothing needs it: thresher makes its own. Or name another in `pilotsStarterConfigMap`.',
  },
  'k8s-fenced': {
    meaning: 'An attempt at a worker arrived after it had been given up, and was turned away.',
    remedy: 'Nothing to do: the worker is tried again, or has ended as missed.',
  },
  'k8s-marks-lost': {
    meaning: 'The Job of a worker is there, but somebody took the labels off it by which it is found.',
    remedy: 'Put them back (`kubectl label job`), or delete the Job.',
  },
  'proxy-unreadable': {
    meaning: 'The proxy file of `x509UserProxy` cannot be read, or is no proxy.',
    remedy: 'Check path and permissions, and what renews it.',
  },
  'k8s-failed': {
    meaning: 'The Job or Pod failed for a reason that thresher does not know.',
    remedy: 'See the message, which has the reason of Kubernetes.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof kubernetesWorkerErrors> {}
}
