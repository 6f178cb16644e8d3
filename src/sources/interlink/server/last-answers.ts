import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../util/clock.ts';
import type { PodService } from '../pod-service.ts';

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
