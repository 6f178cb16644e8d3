import Type, { type Static } from 'typebox';
import { toolOptions } from '../../../clients/credentials/tool-options.ts';

const path = (description: string) =>
  Type.Optional(
    Type.String({ minLength: 1, description: `${description} Relative paths count from the queue file.` }),
  );

export const KerberosConfig = Type.Object({
  principal: Type.Optional(
    Type.String({
      pattern: '^[^-\\s][^\\s]*$',
      description:
        'Principal to log in as: `pilot@EXAMPLE.ORG`; without a realm, in the default one. Needed unless `secretDirectory` has it.',
    }),
  ),
  ccache: Type.String({
    minLength: 1,
    pattern: '^(?![A-Z]+:)',
    description: 'File of the credential cache, a plain path. Relative paths count from the queue file.',
  }),
  keytab: path('Keytab to log in with.'),
  passwordFile: path(
    'File with the password in its first line, instead of a keytab; no program gets it as an argument.',
  ),
  secretDirectory: path(
    'Directory where a Secret is mounted, instead of `principal`, `keytab` and `passwordFile`: with the keys `user` and `keytab`, or `username` and `password`. The manager uses a changed Secret at the next renewal.',
  ),
  lifetime: Type.Integer({ default: 24, minimum: 1, description: 'Hours to request for the ticket.' }),
  renewableLifetime: Type.Integer({
    default: 0,
    minimum: 0,
    description: 'Hours for which jobs may renew the ticket themselves; 0: not at all.',
  }),
  renewBelow: Type.Number({
    default: 12,
    exclusiveMinimum: 0,
    description:
      'The manager gets a new ticket once less is left, h; if the KDC gave less than `lifetime`, at the same part of that life.',
  }),
  minNewLifetime: Type.Number({
    default: 1,
    minimum: 0,
    description: 'The manager does not use a new ticket that has fewer hours left.',
  }),
  ...toolOptions('kinit', 60),
});
export type KerberosConfig = Static<typeof KerberosConfig>;
