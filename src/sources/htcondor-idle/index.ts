import { resolve } from 'node:path';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { checkQueue, checkSettings } from './check.ts';
import { lookerOf, placeOf } from './looker.ts';
import { IdleOptions, IdleQueueOptions, idleSource } from './options.ts';
import { drainStartd } from '../../clients/htcondor/drain.ts';
import { CondorTools } from '../../clients/htcondor/tools.ts';
import { Drainer } from './shrink/drainer.ts';
import { IdleSource } from './source.ts';
import { Tokens } from './tokens.ts';

/** A look that takes so long is fresh still, ms: on a big pool it takes longer than a short interval. */
const slowLook = 5000;

/** Workers that are machines of a HTCondor pool, as many as its waiting jobs can use. */
export const HTCondorIdleSource = defineSource({
  name: idleSource,
  module: builtInSources,
  description:
    'Asks for machines of a HTCondor pool: exactly as many as its waiting jobs can use ([pool.md](pool.md)). The workers of the queue start a startd, which joins the pool.',
  payload: ['values', 'files', 'env'],
  config: IdleOptions,
  queueConfig: IdleQueueOptions,
  check: checkSettings,
  checkQueue,
  create: (options, { clock, log, files, factoryId, configDir }) => {
    const at = (path: string | undefined) => (path === undefined ? undefined : resolve(configDir, path));
    const { tokenIdentity: identity } = options;
    const keyFile = at(options.signingKeyFile);
    const looker = lookerOf(options, { clock, factoryId, configDir, log });
    const orders = new CondorTools({ place: placeOf(options, configDir), clock, environment: process.env });
    const drainer = new Drainer({
      pool: { drain: (wish, signal) => drainStartd(orders, wish, signal) },
      factory: factoryId,
      log,
      now: () => clock.now(),
      freshFor: 2 * options.interval * 1000 + slowLook,
    });
    const { signingKeyName: keyName } = options;
    const tokens = keyFile && new Tokens({ keyFile, keyName, identity, files, clock });
    return new IdleSource({ options, looker, drainer, clock, log, files, ...(tokens && { tokens }) });
  },
});
