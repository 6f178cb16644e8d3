import { LongText } from '../../../util/beginning.ts';
import type { Facts } from './pod-facts.ts';
import { timeOf } from './pod-facts.ts';
import type { Waiting } from './pending-rules.ts';

/** Longest text of the cluster's that is kept, and most containers: a row holds 20,000 characters. */
const maxText = 400;
const maxContainers = 16;

/** Everything about a Pod that an operator may ask for afterwards, as bounded JSON: all containers, whatever they are for. */
export function describePod(facts: Facts, waiting: readonly Waiting[]): Record<string, unknown> {
  const { job, pod, pods, containers, jobIs } = facts;
  return withoutNothing({
    job: job?.metadata?.name,
    jobConditions: [...jobIs.values()].map(({ type, reason, message }) =>
      withoutNothing({ type, reason, message: short(message) }),
    ),
    pod: pod?.metadata?.name,
    pods: pods > 1 ? pods : undefined,
    podReason: pod?.status?.reason,
    podMessage: short(pod?.status?.message),
    waiting: waiting.slice(0, maxContainers).map((one) => ({
      ...one,
      ...(one.message !== undefined && { message: short(one.message) }),
    })),
    restarts: containers.reduce((sum, { restarts }) => sum + restarts, 0) || undefined,
    containers: containers.slice(0, maxContainers).map(({ name, role, restarts, state, lastState }) => {
      const last = lastState.terminated;
      const { exitCode, signal, reason, message } = state.terminated ?? last ?? {};
      const began = state.running?.startedAt ?? state.terminated?.startedAt ?? last?.startedAt;
      return withoutNothing({
        name,
        role,
        state: state.running ? 'running' : state.terminated ? 'terminated' : 'waiting',
        reason: state.waiting?.reason ?? reason,
        message: short(state.waiting?.message ?? message),
        exitCode,
        signal: signal || undefined,
        restarts: restarts || undefined,
        startedAt: timeOf(began),
        finishedAt: timeOf(state.terminated?.finishedAt ?? last?.finishedAt),
      });
    }),
  });
}

function short(text: string | null | undefined): string | LongText | undefined {
  if (text === null || text === undefined || text === '') return undefined;
  return text.length > maxText ? new LongText(text, maxText) : text;
}

/** A row of the database has better things to hold than nulls and empty lists. */
function withoutNothing(from: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(from).filter(
      ([, value]) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  );
}
