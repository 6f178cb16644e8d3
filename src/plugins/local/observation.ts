import type { Observation } from '../../worker/observation.ts';
import type { BegunState } from './host.ts';
import type { EndReason, Exit } from './worker-files.ts';

/** Translates a state into an observation. A worker that was ended on purpose is not `failed` of itself. */
export function toObservation(workerId: number, state: BegunState, node: string, now: number): Observation {
  const { at } = state.claim;
  const common = {
    workerId,
    node,
    observedAt: now,
    ...(at === undefined ? {} : { startTime: Math.round(at) }),
  };
  if (state.kind === 'running') return { ...common, status: 'running', nativeStatus: 'running' };
  // A pilot may give its files any time.
  const endTime = Math.max(Math.round(state.exit?.at ?? now), Math.round(at ?? 0));
  const ended = {
    ...common,
    endTime,
    nativeStatus: 'ended',
    ...(state.exit && { exitCode: state.exit.status }),
  };
  if (state.exit?.noNamespace !== true && state.exit?.status === 0) return { ...ended, status: 'finished' };
  return { ...ended, ...unsuccessful(state.endedBy, state.exit) };
}

function unsuccessful(
  endedBy: EndReason | undefined,
  exit: Exit | undefined,
): Pick<Observation, 'status' | 'error'> {
  switch (endedBy) {
    case 'killed':
      return { status: 'cancelled', error: { code: 'killed', message: 'ended on request' } };
    case 'walltime':
      return { status: 'failed', error: { code: 'walltime', message: 'ran longer than its maxWalltime' } };
    case undefined:
      return { status: 'failed', error: failure(exit) };
  }
}

function failure(exit: Exit | undefined): { code: string; message: string } {
  if (exit === undefined) {
    const message =
      'the process is gone without an exit status: the machine restarted, or it was killed from outside';
    return { code: 'exit-status-lost', message };
  }
  const { status } = exit;
  if (exit.noNamespace === true) {
    const message = `its PID namespace could not be made (status ${status}), so its command never began: its stderr says why`;
    return { code: 'pid-namespace-failed', message };
  }
  const bySignal = status > 128 ? `, usually signal ${status - 128}` : '';
  const notFound = status === 127 ? ', usually a command that was not found' : '';
  return { code: 'exit-status', message: `ended with exit status ${status}${bySignal}${notFound}` };
}
