import type { ControlPlane, Namespace } from './kubernetes.ts';
import { kubernetesSite } from './kubernetes-site.ts';
import type { Site } from './site.ts';

/** One operator on one namespace, whose jobs are processes of this machine. Queue OTHER takes no HTCJobs. */
export function htcJobSite(
  plane: ControlPlane,
  space: Namespace,
  more: Readonly<Record<string, unknown>> = {},
  access: Parameters<ControlPlane['writeKubeconfig']>[1] = {},
): Site {
  const options = { k8s_config_file: 'kubeconfig', namespaces: [space.name], ...more };
  return kubernetesSite(
    plane,
    {
      queues: {
        Q: { demand: 'htcjob', maxWorkers: 200, nQueueLimitWorker: 200 },
        OTHER: { demand: 'none' },
      },
      settings: { sources: { htcjob: options } },
    },
    {},
    access,
  );
}
