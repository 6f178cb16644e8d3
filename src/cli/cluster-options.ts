import type { Command } from 'commander';

/** Options that say which cluster and namespace are meant. */
export function withCluster(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      "kubeconfig of the cluster (default: $KUBECONFIG, ~/.kube/config, or this Pod's own login)",
    )
    .option('--context <name>', 'context in it (default: its current one)')
    .option('--namespace <name>', 'namespace of the pool', 'default');
}
