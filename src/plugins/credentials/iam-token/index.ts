import { join, resolve } from 'node:path';
import { ThresherError } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import { LaterManager } from '../../contracts/later-manager.ts';
import { definePlugin } from '../../contracts/definition.ts';
import type { IamTokenManager } from './manager.ts';
import { IamTokenConfig } from './schema.ts';
import { loadOptions, moreTargets } from './settings.ts';
import { wantedTokens } from './targets.ts';

/** Tokens by OAuth2 client credentials, for computing elements and for the PanDA server. */
export const IamTokenCredManager = definePlugin({
  kind: 'credmanager',
  name: 'IamTokenCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.iam_token_cred_manager', 'IamTokenCredManager']],
  config: IamTokenConfig,
  check: async (config, context) => {
    const loaded = await loadOptions(config, context);
    return loaded.ok ? [] : loaded.problems;
  },
  targets: async (config, context) => {
    const loaded = await loadOptions(config, context);
    if (!loaded.ok) return [];
    const { options } = loaded;
    const directory = resolve(context.configDir, options.out_dir);
    return wantedTokens(options, await moreTargets(options, context)).map(({ file }) => ({
      kind: 'file',
      path: join(directory, file),
    }));
  },
  create: (config, context) => new LaterManager(() => makeManager(config, context)),
});

async function makeManager(config: IamTokenConfig, context: Context): Promise<IamTokenManager> {
  const loaded = await loadOptions(config, context);
  if (loaded.ok) {
    // A daemon without such tokens does not load the packages of an OAuth2 client.
    const { IamTokenManager } = await import('./manager.ts');
    return new IamTokenManager(loaded.options, context);
  }
  // The file was right when it was checked.
  const said = loaded.problems.map(({ message }) => message).join('; ');
  throw new ThresherError('credential-wrong', `${config.inFile ?? 'IamTokenCredManager'}: ${said}`);
}
