import { collectDefaultMetrics, Registry } from 'prom-client';

/** Gauges that prom-client names like counters, which Prometheus' own check refuses. Each has a twin without `_total`. */
const misnamed = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

let registry: Registry | undefined;

/**
 * The metrics of the process itself (`process_*`, `nodejs_*`). One registry per process, made when it is first asked
 * for: prom-client's observers of the event loop and the garbage collector can never be taken away again.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
    for (const name of misnamed) registry.removeSingleMetric(name);
  }
  return registry;
}
