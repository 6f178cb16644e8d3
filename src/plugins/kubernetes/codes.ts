import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of workers on Kubernetes; workers.ts has those that backends share. */
export const kubernetesWorkerErrors = {
  'k8s-image': {
    meaning: 'The node could not pull the image of a container, or the name of the image is invalid.',
    remedy: 'Check the name, the registry and `imagePullSecrets` of the template.',
  },
  'k8s-config': {
    meaning: 'A container refers to a Secret or ConfigMap, or to a key of one, that does not exist.',
    remedy: 'Create it in the namespace of the queue; the message names it.',
  },
  'k8s-container-start': {
    meaning: 'The container runtime could not create or start a container.',
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
      'See the message for the missing thing: room in the cluster, a quota, a node that fits. Ask for less, or wait longer.',
  },
  'k8s-oom': {
    meaning:
      'The kernel killed the pilot, or a process that the pilot needs, because the container was out of memory.',
    remedy:
      'Raise the memory limit of the container (`minRamCount`, `k8s.resources.limits.*`, or the template).',
  },
  'k8s-init-failed': {
    meaning: 'An init container of the template failed, so the pilot never started.',
    remedy: 'See `kubectl logs POD -c CONTAINER`; `thresher worker ID` shows all containers.',
  },
  'k8s-container-beside-failed': {
    meaning: "A container beside the pilot's failed, and with it the Pod, before the pilot had ended.",
    remedy: 'Look at its log; make it a sidecar (an init container with `restartPolicy: Always`).',
  },
  'k8s-not-ending': {
    meaning:
      'A deleted Job or Pod of a worker is still there though its grace is over: its node does not answer, or a finalizer of another program keeps it. The worker counts as living until it is gone.',
    remedy:
      'Look at the node (`kubectl get pod NAME -o wide`, `kubectl get node`). If the machine is gone for good, `kubectl delete node`, or `kubectl delete pod NAME --force`. A finalizer is for the program to remove that set it.',
  },
  'k8s-evicted': {
    meaning:
      'The Pod was evicted: its node was short of disk or memory, or an administrator drained the node.',
    remedy: 'See the message; for disk or memory, request more of it in the template or the queue.',
  },
  'k8s-preempted': {
    meaning: 'The Pod made room for one of higher priority.',
    remedy: 'Nothing to do if pilots fill idle nodes; otherwise set `k8s.scheduler.priorityClassName`.',
  },
  'k8s-node-lost': {
    meaning: 'The node of the Pod was shut down, removed, tainted, or no longer answers.',
    remedy: 'Look at the node; another worker takes the place.',
  },
  'k8s-rejected-by-node': {
    meaning: 'The node refused the Pod that the scheduler gave it.',
    remedy: 'See the message; rare, unless a program other than the scheduler places Pods.',
  },
  'k8s-failure-policy': {
    meaning: "The template's `podFailurePolicy` ended the Job.",
    remedy: 'See the message for the rule.',
  },
  'k8s-pod-gone': {
    meaning:
      'The Job failed with its Pod, and the Pod is gone, so the cause is unknown; or a client deleted the Pod before its pilot began.',
    remedy: 'Find the cause that removes Pods: Pod garbage collection, a drained node, an operator.',
  },
  'k8s-name-taken': {
    meaning: 'A Job that does not belong to this worker has its name.',
    remedy:
      'If the Job is a copy made by hand, remove it. If two factories have one id (`master.factoryId`), give each its own.',
  },
  'k8s-starter': {
    meaning:
      'The ConfigMap `pilots-starter` of the namespace holds no starter, and thresher did not make it.',
    remedy:
      'If nothing needs the ConfigMap, remove it: thresher makes its own. Or name another in `pilotsStarterConfigMap`.',
  },
  'k8s-fenced': {
    meaning:
      'An attempt to create a worker arrived after thresher had given it up, and the fence rejected it.',
    remedy: 'Nothing to do: thresher tries the worker again, or has ended it as missed.',
  },
  'k8s-marks-lost': {
    meaning: 'The Job of a worker exists, but a client removed the labels by which thresher finds it.',
    remedy: 'Put them back (`kubectl label job`), or delete the Job.',
  },
  'proxy-unreadable': {
    meaning: 'thresher cannot read the proxy file of `x509UserProxy`, or the file is no proxy.',
    remedy: 'Check its path and permissions, and the program that renews it.',
  },
  'k8s-failed': {
    meaning: 'The Job or Pod failed for a reason that thresher does not know.',
    remedy: 'See the message, which has the reason of Kubernetes.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof kubernetesWorkerErrors> {}
}
