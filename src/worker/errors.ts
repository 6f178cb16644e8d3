import { commandLineErrors } from './catalogue/command-line.ts';
import { configurationErrors } from './catalogue/configuration.ts';
import { credentialErrors } from './catalogue/credentials.ts';
import { daemonErrors } from './catalogue/daemon.ts';
import type { Explanation } from './catalogue/explanation.ts';
import { htcondorErrors } from './catalogue/htcondor.ts';
import { htcondorWorkerErrors } from './catalogue/htcondor-workers.ts';
import { httpErrors } from './catalogue/http.ts';
import { kubernetesWorkerErrors } from './catalogue/kubernetes-workers.ts';
import { kubernetesErrors } from './catalogue/kubernetes.ts';
import { localWorkerErrors } from './catalogue/local-workers.ts';
import { reasons } from './catalogue/reasons.ts';
import { storeErrors } from './catalogue/store.ts';
import { workerErrors } from './catalogue/workers.ts';
import type { Reason } from './reason.ts';

/**
 * Every code this program shows. Codes are never renamed or reused. `docs/errors.md` is generated from these tables, and a
 * test holds every code in the sources against them.
 */
export const errorCatalogue = {
  ...configurationErrors,
  ...storeErrors,
  ...daemonErrors,
  ...httpErrors,
  ...commandLineErrors,
  ...reasons,
  ...workerErrors,
  ...localWorkerErrors,
  ...kubernetesWorkerErrors,
  ...kubernetesErrors,
  ...htcondorErrors,
  ...htcondorWorkerErrors,
  ...credentialErrors,
};

export type ErrorCode = keyof typeof errorCatalogue;

/** An error an operator can act on. `message` is one whole sentence; `facts` are shown beside it in logs. */
export class ThresherError extends Error {
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, facts: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ThresherError';
    this.code = code;
    this.facts = facts;
  }
}

/**
 * Whether a reason is a fault that an operator has to fix, and not in the course of things. An unknown code may be one.
 */
export function isTrouble({ code }: Reason): boolean {
  const explanation = explanationOf(code);
  return explanation?.ordinary !== true && explanation?.note !== true;
}

/** Whether a reason holds nothing back. */
export function isNote({ code }: Reason): boolean {
  return explanationOf(code)?.note === true;
}

function explanationOf(code: string): Explanation | undefined {
  const known: Readonly<Record<string, Explanation>> = errorCatalogue;
  return Object.hasOwn(known, code) ? known[code] : undefined;
}

/** The sentence of whatever was thrown, for a reason or a log line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Converts any thrown value to a reason or a worker's error. */
export function toReason(error: unknown): Reason {
  return { code: error instanceof ThresherError ? error.code : 'plugin-failed', message: messageOf(error) };
}
