import { credentialErrors } from '../clients/credentials/codes.ts';
import { htcondorErrors } from '../clients/htcondor/codes.ts';
import { kubernetesErrors } from '../clients/kubernetes/codes.ts';
import { pandaErrors } from '../clients/panda/codes.ts';
import { webErrors } from '../clients/web/codes.ts';
import type { Codes } from '../codes/codes.ts';
import { commandLineErrors } from '../codes/command-line.ts';
import { configurationErrors } from '../codes/configuration.ts';
import { daemonErrors } from '../codes/daemon.ts';
import type { Explanation } from '../codes/explanation.ts';
import { httpErrors } from '../codes/http.ts';
import { poolErrors } from '../codes/pool.ts';
import { reasons } from '../codes/reasons.ts';
import { serviceErrors } from '../codes/services.ts';
import { storeErrors } from '../codes/store.ts';
import { workerErrors } from '../codes/workers.ts';
import { htcondorMistakes, htcondorWorkerErrors } from '../plugins/htcondor/codes.ts';
import { kubernetesWorkerErrors } from '../plugins/kubernetes/codes.ts';
import { localWorkerErrors } from '../plugins/local/codes.ts';
import { htcjobErrors } from '../clients/htcjob/codes.ts';
import { idleReasons } from '../sources/htcondor-idle/codes.ts';
import { interlinkErrors } from '../sources/interlink/codes.ts';
import { pandaReasons } from '../sources/panda/codes.ts';
import type { Reason } from '../worker/reason.ts';

/** The tables of all folders in one. A test holds every code in the sources against it. */
export const everyCode = {
  ...configurationErrors,
  ...storeErrors,
  ...daemonErrors,
  ...httpErrors,
  ...commandLineErrors,
  ...poolErrors,
  ...reasons,
  ...serviceErrors,
  ...workerErrors,
  ...localWorkerErrors,
  ...kubernetesWorkerErrors,
  ...kubernetesErrors,
  ...pandaErrors,
  ...webErrors,
  ...pandaReasons,
  ...htcondorErrors,
  ...htcondorWorkerErrors,
  ...htcondorMistakes,
  ...credentialErrors,
  ...htcjobErrors,
  ...interlinkErrors,
  ...idleReasons,
} satisfies Codes;

/** Whether a reason is a fault that an operator has to fix. A code of a third-party plugin may be one. */
export function isTrouble({ code }: Reason): boolean {
  const explanation = explanationOf(code);
  return explanation?.ordinary !== true && explanation?.note !== true;
}

/** Whether a reason holds nothing back. */
export function isNote({ code }: Reason): boolean {
  return explanationOf(code)?.note === true;
}

/** How to get rid of it; undefined for a code of a third party. */
export function remedyOf(code: string): string | undefined {
  return explanationOf(code)?.remedy;
}

function explanationOf(code: string): Explanation | undefined {
  const known: Readonly<Record<string, Explanation>> = everyCode;
  return Object.hasOwn(known, code) ? known[code] : undefined;
}
