import { dirname } from 'node:path';
import { crd } from '../clients/htcjob/crd.ts';
import { deployment, rights, settings as settingsManifests } from '../clients/htcjob/manifests.ts';
import { HtcJobReader, jobNumberOf, type ReaderParts } from '../clients/htcjob/reading.ts';
import { type HtcJob, htcJobSource } from '../clients/htcjob/resource.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { Store } from '../store/store.ts';
import type { WorkerNews } from '../worker/news.ts';

export { type HtcJob, type HtcJobReader, jobNumberOf };

/** Documents of Kubernetes by the subcommand that prints them. */
export const htcJobDocuments = {
  crd: { summary: 'print the CustomResourceDefinition of HTCJobs', made: () => [crd()] },
  rbac: { summary: 'print the rights of the operator and of users', made: rights },
  manifests: {
    summary: 'print everything that an operator in the cluster needs',
    made: () => [...settingsManifests(), crd(), ...rights(), ...deployment()],
  },
} as const;

/** Reads the HTCJobs of the cluster that the settings name. @throws ThresherError `wrong-type` */
export function htcJobReader(
  { file, values }: Pick<LoadedSettings, 'file' | 'values'>,
  parts: Omit<ReaderParts, 'configDir'>,
): HtcJobReader {
  const written = Object.entries(values.sources[htcJobSource] ?? {});
  const options = Object.fromEntries(written.filter(([key]) => key !== 'module'));
  return new HtcJobReader(options, { ...parts, configDir: dirname(file) });
}

/** The workers of a HTCJob that are kept, oldest first. */
export function originsOf(store: Pick<Store, 'origins'>, uid: string): Promise<readonly WorkerNews[]> {
  return store.origins.find(htcJobSource, [{ uid }]);
}
