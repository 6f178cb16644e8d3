import type { Static } from 'typebox';
import { toolOptions } from '../../../clients/credentials/tool-options.ts';
import Type from '../../../util/type.ts';

const path = (description: string) =>
  Type.Optional(
    Type.String({ minLength: 1, description: `${description} Relative paths count from the queue file.` }),
  );

/** The options of both programs. Harvester's names, units and defaults. */
const shared = {
  inCertFile: path(
    'Long-lived proxy, or certificate with its key, in one PEM file, from which the manager makes short-lived proxies.',
  ),
  certFile: path('The same, under its older name; `inCertFile` counts if both are given.'),
  outCertFile: Type.String({
    minLength: 1,
    description: 'File for the short-lived proxy. Relative paths count from the queue file.',
  }),
  voms: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 })), Type.Null()], {
      description:
        'VO, with group and role where wanted: `atlas:/atlas/Role=production`; several as a list. The manager refuses a new proxy without them.',
    }),
  ),
  lifetime: Type.Integer({
    default: 96,
    minimum: 1,
    description: 'Hours to request for the proxy and for the attributes of its VO.',
  }),
  minNewLifetime: Type.Number({
    default: 1,
    minimum: 0,
    description: 'The manager does not use a new proxy that has fewer hours left.',
  }),
  extraRenewOpts: Type.String({ default: '', description: 'Further arguments, between spaces.' }),
};

export const NoVomsConfig = Type.Object({
  ...shared,
  genFromKeyCert: Type.Boolean({
    default: false,
    description: 'Make proxies from `cert` and `key` instead of `inCertFile`.',
  }),
  cert: path('Certificate for `genFromKeyCert`.'),
  key: path('Its key, not encrypted.'),
  checkPeriod: Type.Number({
    default: 1,
    minimum: 0,
    description:
      'The manager makes a new proxy once less than `lifetime` - `checkPeriod` is left, h; one with a shorter life from its VO, at the same part of that life.',
  }),
  ...toolOptions('voms-proxy-init', 120),
  lifetimeOptFormat: Type.String({
    default: '-valid {lifetime}:00',
    description: 'Argument that tells the program the lifetime.',
  }),
});
export type NoVomsConfig = Static<typeof NoVomsConfig>;

/** The defaults are the values that Harvester has fixed. */
export const ArcproxyConfig = Type.Object({
  ...shared,
  renewBelow: Type.Number({
    default: 72,
    exclusiveMinimum: 0,
    description:
      'The manager makes a new proxy once less is left, h; one with a shorter life from its VO, at the same part of that life.',
  }),
  ...toolOptions('arcproxy', 120),
});
export type ArcproxyConfig = Static<typeof ArcproxyConfig>;
