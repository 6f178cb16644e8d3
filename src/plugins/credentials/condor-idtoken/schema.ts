import type { Static } from 'typebox';
import { toolOptions } from '../../../clients/credentials/tool-options.ts';
import Type from '../../../util/type.ts';

const CreatedToken = Type.Object(
  {
    name: Type.String({
      pattern: '^(?![.#])[^/]*[^/~]$',
      description: 'Name of its file in the directory.',
    }),
    identity: Type.String({ pattern: '^[^\\s@-][^\\s@]*@[^\\s@]+$', description: 'USER@DOMAIN.' }),
    lifetime: Type.Integer({ default: 86_400, minimum: 60, description: 's' }),
    authz: Type.Array(Type.String({ pattern: '^[A-Z_:]+$' }), {
      default: [],
      description: 'Rights that it is limited to: READ, WRITE ...',
    }),
    key: Type.Optional(Type.String({ pattern: '^[^-\\s][^\\s]*$', description: 'Name of the signing key.' })),
  },
  { additionalProperties: false },
);
export type CreatedToken = Static<typeof CreatedToken>;

export const CondorTokenConfig = Type.Object({
  directory: Type.String({
    minLength: 1,
    description:
      "Directory with IDTOKENs, HTCondor's SEC_TOKEN_DIRECTORY; the manager watches all of them. Relative paths count from the queue file.",
  }),
  create: Type.Array(CreatedToken, {
    default: [],
    description:
      'Tokens to make by condor_token_create, if this host has the signing key: { name, identity, lifetime (s), authz, key }.',
  }),
  renewPart: Type.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'The manager makes a new one at this part of its lifetime.',
  }),
  ...toolOptions('condor_token_create', 60),
});
export type CondorTokenConfig = Static<typeof CondorTokenConfig>;
