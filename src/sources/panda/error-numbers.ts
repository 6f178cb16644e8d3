/** The number for all errors that Harvester's table has no nearer one for. */
export const otherError = 9000;

/**
 * The nearest number of Harvester's table for each error that a worker can end with. The server copies it to `supErrorCode` of the
 * worker's jobs, by which its monitor groups them: 2xxx wrapper and proxy, 3xxx schedd, 4xxx CE, 5xxx batch system, 68xx
 * Kubernetes, 89xx removed, 9000 other. The words stay in `diagMessage`. A test holds it against all codes of workers.
 * Source: Harvester's `harvestercore/worker_errors.py`.
 */
export const errorNumbers: Readonly<Record<string, number>> = {
  // Errors of any backend.
  'exit-status': 3831,
  'exit-status-lost': 3841,
  killed: 8971,
  lost: 3811,
  'ended-unseen': 3811,
  walltime: 5573,
  'submit-failed': otherError,
  'never-started': otherError,
  'access-point-failed': otherError,
  'late-creation': otherError,
  'end-unclear': otherError,
  'worker-unreachable': otherError,
  'output-awaited': otherError,
  'htcondor-removing': otherError,
  'htcondor-end-contradicted': otherError,
  'sweep-awaited': otherError,
  'payload-lost': otherError,
  'payload-wrong': otherError,
  'payload-too-large': otherError,
  'payload-value-missing': otherError,

  // The local backend.
  'spawn-failed': 5601,
  'local-root-lost': otherError,
  'local-root-of-other-factory': otherError,
  'local-directory-damaged': otherError,
  'local-not-ending': otherError,
  'k8s-not-ending': otherError,
  'pid-namespace-failed': otherError,
  'pid-namespace-missing': otherError,
  'pid-namespace-required': otherError,
  'no-free-slot': otherError,
  'needs-too-large': otherError,

  // Kubernetes: the Pod.
  'k8s-crash-loop': 6801,
  'k8s-failure-policy': 6801,
  'k8s-rejected-by-node': 6814,
  'k8s-queue-time': 6815,
  'k8s-not-starting': 6819,
  'k8s-evicted': 6819,
  'k8s-node-lost': 6819,
  'k8s-failed': 6819,
  'k8s-preempted': 1001,
  'k8s-pod-gone': 6882,
  'k8s-marks-lost': 6882,
  'k8s-image': 6884,
  'k8s-config': 6884,
  'k8s-container-start': 6884,
  'k8s-oom': 6884,
  'k8s-init-failed': 6884,
  'k8s-container-beside-failed': 6884,
  'proxy-unreadable': 2080,
  'k8s-name-taken': otherError,
  'k8s-starter': otherError,
  'k8s-fenced': otherError,

  // Kubernetes: the API server, which refused the worker.
  'kubernetes-unreachable': 6881,
  'kubernetes-server-error': 6881,
  'kubernetes-too-many-requests': 6881,
  'kubernetes-no-api': 6881,
  'kubernetes-too-large': 6881,
  'kubernetes-secret-name': 6881,
  'kubernetes-not-found': 6882,
  'kubernetes-gone': 6882,
  'kubernetes-quota': 6810,
  'kubernetes-admission': 6814,
  'kubernetes-invalid': 6814,
  'kubernetes-refused': 6814,
  'kubernetes-forbidden': otherError,
  'kubernetes-unauthorized': otherError,
  'kubernetes-credentials': otherError,
  'kubernetes-namespace': otherError,
  'kubernetes-already-exists': otherError,
  'kubernetes-conflict': otherError,
  'kubernetes-rewound': otherError,
  'kubernetes-given-up': otherError,
  'kubernetes-other-cluster': otherError,
  'kubeconfig-missing': otherError,
  'kubeconfig-wrong': otherError,

  // HTCondor: the job.
  'htcondor-credential': 4363,
  'htcondor-ce': 4101,
  'htcondor-input': 3639,
  'htcondor-output': 3649,
  'htcondor-start': 5549,
  'htcondor-memory': 5530,
  'htcondor-disk': 5549,
  'htcondor-held': 8982,
  'htcondor-held-limit': 8982,
  'htcondor-queue-time': 8984,
  'htcondor-removed': 8979,
  'htcondor-owner': otherError,
  'htcondor-owners-file': otherError,
  'htcondor-other-queue': otherError,
  'htcondor-value': otherError,
  'htcondor-fenced': otherError,
  'htcondor-submit-lives': otherError,
  'htcondor-submit-elsewhere': otherError,
  'htcondor-payload': otherError,
  'htcondor-payload-unwritten': otherError,

  // HTCondor: its commands.
  'condor-unreachable': 3200,
  'condor-schedd-unknown': 3200,
  'condor-auth': 3200,
  'condor-timeout': 3200,
  'condor-failed': 3200,
  'condor-answer': 3812,
  'condor-no-job': 3811,
  'condor-not-listed': otherError,
  'condor-limit': 5512,
  'condor-no-tool': otherError,
  'condor-refused': 5512,
  'condor-disk-full': otherError,
  'condor-submit-wrong': otherError,
  'condor-constraint-wrong': otherError,
  'condor-given-up': otherError,
};

/** A code of a third-party plugin has no number of its own. */
export function errorNumberOf(code: string): number {
  return Object.hasOwn(errorNumbers, code) ? (errorNumbers[code] ?? otherError) : otherError;
}
