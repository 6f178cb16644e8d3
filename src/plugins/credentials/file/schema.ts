import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

export const FileConfig = Type.Object({
  files: Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description:
      'X.509 proxies or certificates, tokens, or Kerberos caches; the manager detects the kind of each. Relative paths count from the queue file.',
  }),
});
export type FileConfig = Static<typeof FileConfig>;
