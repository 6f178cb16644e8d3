import type { SourceHost } from '../../../plugins/contracts/index.ts';
import { readVersion } from '../../../util/version.ts';
import type { PodService } from '../pod-service.ts';
import type { ServedPods } from './answers.ts';
import { makeSidecarApp } from './app.ts';
import { listenAt, type Place } from './listen.ts';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../util/clock.ts';

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

/**
 * How long a /create that waits at the end of the daemon may still find its job, and how long the answers then take to go out, ms. The
 * daemon leaves a source alone after 5 s.
 */
const patience = { jobs: 3000, answers: 1000 };
/** ms. */
const lookEvery = 100;

/**
 * Ends the server. A connection that is cut is a Pod that fails for good, so each request that came gets its answer: a /create that
 * waits gets the id of its job, which the submitter may just have submitted, or hears that there will be none.
 */
export async function endServer(app: FastifyInstance, service: PodService, clock: Clock): Promise<void> {
  let isClosed = false;
  const closed = app.close().finally(() => {
    isClosed = true;
  });
  const wait = async (ms: number, look: () => Promise<void>) => {
    const end = clock.monotonic() + ms;
    while (!isClosed && clock.monotonic() < end) {
      await look();
      await clock.sleep(lookEvery);
    }
  };
  await wait(patience.jobs, () => service.lookUp());
  service.giveUp();
  await wait(patience.answers, async () => undefined);
  await service.settled();
  app.server.closeAllConnections();
  await closed;
}
