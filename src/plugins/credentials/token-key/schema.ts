import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

export const TokenKeyConfig = Type.Object({
  client_name: Type.String({
    pattern: '^\\S(.*\\S)?$',
    description: "Name of the client in the PanDA server's token cache.",
  }),
  token_key_file: Type.String({
    minLength: 1,
    description: 'File of the key. Relative paths count from the queue file.',
  }),
  refresh_interval: Type.Number({
    default: 60,
    exclusiveMinimum: 0,
    maximum: 527_040,
    description: 'Age of the file in minutes at which the manager gets a new key.',
  }),
  timeLimit: Type.Number({
    default: 30,
    exclusiveMinimum: 0,
    maximum: 600,
    description: 'Seconds for one request.',
  }),
});
export type TokenKeyConfig = Static<typeof TokenKeyConfig>;
