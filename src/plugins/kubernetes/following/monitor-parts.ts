import type { Host } from '../../contracts/context.ts';
import type { OptionsOf } from './following.ts';
import type { K8sNamespace } from '../namespace.ts';

export interface MonitorParts {
  readonly namespace: K8sNamespace;
  readonly context: Host;
  /** Longest time without a byte before a watch counts as dead, ms. Default: the reflector's. */
  readonly silence?: number;
  /** One monitor follows the workers of all queues in its namespace. */
  readonly options: OptionsOf;
}
