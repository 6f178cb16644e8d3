import { resolve } from 'node:path';
import { definePlugin } from '../../contracts/definition.ts';
import { inspectFile, watchedOutcome } from '../../../clients/credentials/credential-file.ts';
import { fileVersion } from '../../../clients/credentials/files.ts';
import type { Context } from '../../contracts/context.ts';
import type { CredentialManager, CredentialState, RenewOutcome } from '../../contracts/credential-manager.ts';
import Type from '../../../util/type.ts';

const FileConfig = Type.Object({
  files: Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description:
      'X.509 proxies or certificates, tokens, or Kerberos caches; the manager detects the kind of each. Relative paths count from the queue file.',
  }),
});

/** Watches files that something else renews. */
class FileManager implements CredentialManager {
  readonly #files: readonly string[];
  readonly #clock: Context['clock'];

  constructor(files: readonly string[], { clock }: Pick<Context, 'clock'>) {
    this.#files = files;
    this.#clock = clock;
  }

  inspect(): Promise<readonly CredentialState[]> {
    return Promise.all(this.#files.map(inspectFile));
  }

  async renew({ force }: { readonly force: boolean }): Promise<readonly RenewOutcome[]> {
    const states = await Promise.all(this.#files.map(inspectFile));
    return states.map((state) => watchedOutcome(state, force, this.#clock.now()));
  }

  async fingerprint(): Promise<string> {
    return (await Promise.all(this.#files.map(fileVersion))).join(', ');
  }
}

/** Credentials that something else keeps fresh: their lifetime is watched. */
export const FileCredManager = definePlugin({
  kind: 'credmanager',
  name: 'FileCredManager',
  module: 'thresher/credentials',
  config: FileConfig,
  create: ({ files }, context) =>
    new FileManager([...new Set(files.map((file) => resolve(context.configDir, file)))], context),
});
