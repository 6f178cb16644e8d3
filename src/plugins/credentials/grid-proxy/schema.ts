import Type, { type Static } from 'typebox';
import { toolOptions } from '../../../clients/credentials/tool-options.ts';

const path = (description: string) =>
  Type.Optional(
    Type.String({ minLength: 1, description: `${description} Relative paths count from the queue file.` }),
  );

/** What both programs are told. Harvester's names, units and defaults. */
const shared = {
  inCertFile: path(
    'Long-lived proxy, or certificate with its key, in one PEM file, of which short-lived proxies are made.',
  ),
  certFile: path('The same, under its older name; `inCertFile` counts if both are given.'),
  outCertFile: Type.String({
    minLength: 1,
    description: 'Where the short-lived proxy is put. Relative paths count from the queue file.',
  }),
  voms: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 })), Type.Null()], {
      description:
        'VO, with group and role where wanted: `atlas:/atlas/Role=production`; several as a list. A new proxy without them is refused.',
    }),
  ),
  lifetime: Type.Integer({
    default: 96,
    minimum: 1,
    description: 'Lifetime that is asked for, of the proxy and of what the VO says, h.',
  }),
  minNewLifetime: Type.Number({
    default: 1,
    minimum: 0,
    description: 'A new proxy that has less is not put in place, h.',
  }),
  extraRenewOpts: Type.String({ default: '', description: 'Further arguments, between spaces.' }),
};

export const NoVomsConfig = Type.Object({
  ...shared,
  genFromKeyCert: Type.Boolean({
    default: false,
    description: 'Make proxies of `cert` and `key` instead of `inCertFile`.',
  }),
  cert: path('Certificate for `genFromKeyCert`.'),
  key: path('Its key, not encrypted.'),
  checkPeriod: Type.Number({
    default: 1,
    minimum: 0,
    description:
      'A proxy is made anew once it has less than `lifetime` - `checkPeriod` left, h; one that got less from its VO, at the same part of its life.',
  }),
  ...toolOptions('voms-proxy-init', 120),
  lifetimeOptFormat: Type.String({
    default: '-valid {lifetime}:00',
    description: 'How the program is told the lifetime.',
  }),
});
export type NoVomsConfig = Static<typeof NoVomsConfig>;

/** What Harvester has fixed are the defaults. */
export const ArcproxyConfig = Type.Object({
  ...shared,
  renewBelow: Type.Number({
    default: 72,
    exclusiveMinimum: 0,
    description:
      'A proxy is made anew once it has less left, h; one that got less from its VO, at the same part of its life.',
  }),
  ...toolOptions('arcproxy', 120),
});
export type ArcproxyConfig = Static<typeof ArcproxyConfig>;
