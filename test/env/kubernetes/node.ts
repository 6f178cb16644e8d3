import { Failure } from '../failure.ts';

export interface NodeStatus {
  readonly kubeconfig: string;
}

export async function startNode(directory: string): Promise<NodeStatus> {
  throw new Failure(`--node cannot be had yet in ${directory}`);
}

export async function stopNode(directory: string): Promise<void> {
  await Promise.resolve(directory);
}

export function nodeStatus(directory: string): NodeStatus | undefined {
  return directory === '' ? { kubeconfig: '' } : undefined;
}
