import type { Monitor, Observation } from '../../src/plugins/contracts/index.ts';

/** Everything that a monitor has shown since it was started. */
export interface Watched extends AsyncDisposable {
  /** Of each worker, in order. */
  readonly history: ReadonlyMap<number, readonly Observation[]>;
}

/** Observes from now on. */
export function watch(monitor: Monitor): Watched {
  const history = new Map<number, Observation[]>();
  const stop = new AbortController();
  const nothing = () => undefined;
  const work = monitor.observe(
    {
      begin: nothing,
      observe: (observation) => {
        const seen = history.get(observation.workerId) ?? [];
        history.set(observation.workerId, [...seen, observation]);
      },
      complete: nothing,
      gone: nothing,
      trouble: nothing,
    },
    stop.signal,
  );
  return {
    history,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await work;
    },
  };
}
