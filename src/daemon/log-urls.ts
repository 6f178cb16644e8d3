import type { LogUrls } from '../plugins/contracts/index.ts';
import { withoutEnd } from '../util/without-end.ts';

/** Where the HTTP server shows the texts of a worker, below `/workers/ID/`. */
export const logPaths = {
  stdOut: 'stdout',
  stdErr: 'stderr',
  batchLog: 'job-log',
  jdl: 'rendered',
} as const satisfies Readonly<Record<keyof LogUrls, string>>;

/** The addresses of a worker's texts for browsers elsewhere, by `http.publicUrl`; undefined where nothing serves them. */
export function logUrlsBy({
  enabled,
  publicUrl,
}: {
  readonly enabled: boolean;
  readonly publicUrl?: string;
}): ((workerId: number) => LogUrls) | undefined {
  if (!enabled || publicUrl === undefined) return undefined;
  const base = withoutEnd(publicUrl, '/');
  return (workerId) => {
    const at = (path: string) => `${base}/workers/${workerId}/${path}`;
    return {
      stdOut: at(logPaths.stdOut),
      stdErr: at(logPaths.stdErr),
      batchLog: at(logPaths.batchLog),
      jdl: at(logPaths.jdl),
    };
  };
}
