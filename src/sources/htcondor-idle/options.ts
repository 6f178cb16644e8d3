import type { Static } from 'typebox';
import Type from '../../util/type.ts';

const text = (description: string) => Type.String({ minLength: 1, description });
const seconds = (usual: number, least: number, description: string) =>
  Type.Number({ default: usual, minimum: least, maximum: 86_400, description });

/** Name of the source. */
export const idleSource = 'htcondor-idle';

/** Options in `sources.htcondor-idle` of the settings. */
export const IdleOptions = Type.Object({
  condorPool: Type.Optional(
    text('Collector of the pool, `HOST[:PORT]`. Default: that of the configuration of HTCondor.'),
  ),
  condorConfig: Type.Optional(
    text(
      'Configuration file for the commands of HTCondor (`CONDOR_CONFIG`). Relative paths count from the settings. Default: that of the daemon.',
    ),
  ),
  tokenDirectory: Type.Optional(
    text(
      'Directory with the IDTOKEN by which the daemon reads the pool; its user must own the files. Relative paths count from the settings. Default: that of the configuration of HTCondor.',
    ),
  ),
  schedds: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      description: 'Names of the schedds whose jobs count. Default: all that the collector knows.',
    }),
  ),
  interval: seconds(60, 0.1, 'Seconds between looks at the pool.'),
  joinTimeout: seconds(
    300,
    1,
    'Seconds after its start within which a worker has to join the pool. Afterwards thresher no longer counts it as capacity. The workers get it as `JOIN_TIMEOUT`, and end themselves with a failure.',
  ),
  signingKeyFile: Type.Optional(
    text(
      'Signing key of the pool, with which thresher makes a token for each worker: the secret file `token` of its payload. Relative paths count from the settings. Default: workers have their token from elsewhere.',
    ),
  ),
  tokenIdentity: Type.String({
    default: 'worker@htcondor-pool',
    pattern: '^[^@\\s]+@[^@\\s]+$',
    description:
      'Identity in these tokens, `USER@DOMAIN`: the central manager must let it advertise machines. The domain is the `TRUST_DOMAIN` of the pool.',
  }),
  signingKeyName: Type.String({
    default: 'POOL',
    pattern: '^[A-Za-z0-9._-]+$',
    description: 'Name of that key in `SEC_PASSWORD_DIRECTORY` of the central manager.',
  }),
  tokenLifetime: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: 31_536_000,
      description:
        'Seconds for which such a token is valid. Default: a day more than `maxWalltime` of the worker, and 8 days where that is 0.',
    }),
  ),
});
export type IdleOptions = Static<typeof IdleOptions>;

const cost = Type.Optional(
  Type.Number({
    exclusiveMinimum: 0,
    description:
      'Cost of one worker, in any unit that all shapes share; a cheaper shape is preferred. Default: the `Cpus` of its slot ad.',
  }),
);
const most = Type.Optional(
  Type.Integer({
    minimum: 0,
    description:
      'Workers of the shape that live at once, at most. Default: as many as the limits of the queue let through.',
  }),
);
const slotAd = text(
  'File with the ad of an empty machine of this kind, as `thresher pool learn` writes it. Relative paths count from the queue file.',
);
const natural = (least: number, description: string) =>
  Type.Optional(Type.Integer({ minimum: least, description }));

/** One kind of worker of a queue with several. */
export const ShapeOptions = Type.Object({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
    description: 'Name of the shape, for `POOL_SHAPE` of its workers.',
  }),
  slotAd,
  cost,
  most,
  nCore: natural(1, 'Cores of a worker. Default: those of the queue.'),
  minRamCount: natural(0, 'Memory of a worker, MB. Default: that of the queue.'),
  maxDiskCount: natural(0, 'Disk of a worker, MB. Default: that of the queue.'),
  maxWalltime: natural(0, 'Longest life of a worker, s; 0: no limit. Default: that of the queue.'),
  values: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]*$' }), Type.String(), {
      // A value under another name would reach no template, without a word.
      additionalProperties: false,
      description: 'Values for `${payload.KEY}` in the template of the queue.',
    }),
  ),
});
export type ShapeOptions = Static<typeof ShapeOptions>;

/** Options in the `demand` section of a queue. */
export const IdleQueueOptions = Type.Object({
  slotAd: Type.Optional(slotAd),
  cost,
  most,
  shapes: Type.Optional(
    Type.Array(ShapeOptions, {
      minItems: 1,
      description:
        'Kinds of workers of the queue, if there are several: instead of `slotAd` and `cost`. `most` of the queue then bounds all of them together.',
    }),
  ),
  perCycle: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'New workers of the queue at each look, at most. Default: no bound.',
    }),
  ),
  pressure: Type.Optional(
    Type.Object(
      {
        least: Type.Integer({
          default: 5,
          minimum: 1,
          description: 'So many workers may wait for their start in any case.',
        }),
        share: Type.Number({
          default: 0.25,
          exclusiveMinimum: 0,
          maximum: 1,
          description: 'Part of the machines that the waiting jobs need.',
        }),
      },
      {
        description:
          'Constant pressure: at most `least` workers, or `share` of the demand if that is more, wait for their start. Default: no bound.',
      },
    ),
  ),
  nonePending: Type.Boolean({
    default: false,
    description: 'Whether the queue gets new workers only once none waits for its start.',
  }),
});
export type IdleQueueOptions = Static<typeof IdleQueueOptions>;
