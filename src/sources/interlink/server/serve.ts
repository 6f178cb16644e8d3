import type { SourceHost } from '../../../plugins/contracts/index.ts';
import { readVersion } from '../../../util/version.ts';
import type { PodService } from '../pod-service.ts';
import type { ServedPods } from './answers.ts';
import { makeSidecarApp } from './app.ts';
import { endServer } from './last-answers.ts';
import { listenAt, type Place } from './listen.ts';

/** Answers interLink until `signal` aborts. @throws ThresherError `interlink-listen`, `interlink-open` */
export async function serveSidecar(
  place: Place,
  service: PodService,
  { clock, log }: Pick<SourceHost, 'clock' | 'log'>,
  backend: ServedPods['backend'],
  signal: AbortSignal,
): Promise<void> {
  const isOpen = 'host' in place && place.othersMayReachIt;
  const app = makeSidecarApp({ service, clock, log, backend, version: readVersion(), isOpen });
  const address = await listenAt(app, place);
  log.info('interLink is answered', { address });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
  await endServer(app, service, clock);
}
