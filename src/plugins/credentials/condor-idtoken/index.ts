import { join, resolve } from 'node:path';
import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { CondorTokenManager } from './manager.ts';
import { CondorTokenConfig } from './schema.ts';

/** HTCondor's IDTOKENs: watched, and made where this host may. */
export const CondorTokenCredManager = definePlugin({
  kind: 'credmanager',
  name: 'CondorTokenCredManager',
  module: 'thresher/credentials',
  config: CondorTokenConfig,
  check: ({ create }) =>
    create.flatMap(({ name }, at) =>
      create.findIndex((other) => other.name === name) === at
        ? []
        : [
            {
              pointer: `/create/${at}/name`,
              code: 'wrong-type' as const,
              message: `name is "${name}", which another token here has too; each needs a file of its own`,
            },
          ],
    ),
  targets: ({ directory, create }, { configDir }) =>
    create.map(({ name }) => ({ kind: 'file', path: join(resolve(configDir, directory), name) })),
  create: (config, context) => new CondorTokenManager(config, context, toolEnvironment(process.env)),
});
