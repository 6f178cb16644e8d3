import { placeholderNames, unknownPlaceholders } from '../../util/placeholders.ts';
import type { Payload } from '../../worker/payload.ts';
import type { Requirements, Worker } from '../../worker/worker.ts';

/** Facts of its worker that a template of any backend may name, beside the backend's own. */
export const identityPlaceholders = [
  ...['workerID', 'harvesterID', 'factoryID', 'hostname', 'queueName', 'computingSite', 'accessPoint'],
] as const;

/** Placeholders for the needs and the purpose of the worker. */
export const requirementPlaceholders = [
  ...(['nCore', 'minRamCount', 'maxDiskCount', 'maxWalltime'] as const),
  ...(['resourceType', 'jobType', 'pilotType', 'prodSourceLabel'] as const),
] as const satisfies readonly (keyof Requirements)[];

/**
 * The values of all of these. `hostname` is this machine's as `hostnameFor` has it, which is short unless `useFQDN`
 * says else; `accessPoint` is empty where the worker has none.
 */
export function workerPlaceholders(
  worker: Worker,
  factory: { readonly factoryId: string; readonly harvesterId: string; readonly hostname: string },
): Record<string, string | number> {
  return {
    workerID: worker.workerId,
    harvesterID: factory.harvesterId,
    factoryID: factory.factoryId,
    hostname: factory.hostname,
    queueName: worker.queue,
    computingSite: worker.computingSite,
    accessPoint: worker.accessPoint ?? '',
    ...worker.requirements,
  };
}

/** `${payload.image}` in a template: a value of the worker's payload. No shell has such a variable. */
const payloadPlaceholder = /^payload\.([A-Za-z_][\w.-]*)$/;

/** The key of the payload's value that a placeholder names; undefined for every other placeholder. */
export function payloadKeyOf(name: string): string | undefined {
  return payloadPlaceholder.exec(name)?.[1];
}

/** The values of a payload as a template names them. */
export function payloadPlaceholders(payload: Payload | undefined): Record<string, string> {
  const values = Object.entries(payload?.values ?? {});
  return Object.fromEntries(values.map(([key, value]) => [`payload.${key}`, value]));
}

/** The placeholders in a template's text that are neither `known` nor values of a payload. */
export function unknownInTemplate(text: string, known: ReadonlySet<string>): string[] {
  return unknownPlaceholders(text, known).filter((name) => !payloadPlaceholder.test(name));
}

/** The keys of payload values that these texts of a template name. */
export function payloadKeysIn(texts: Iterable<string>): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const text of texts) {
    for (const name of placeholderNames(text)) {
      const key = payloadPlaceholder.exec(name)?.[1];
      if (key !== undefined) keys.add(key);
    }
  }
  return keys;
}
