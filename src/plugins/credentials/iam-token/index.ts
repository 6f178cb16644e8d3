import { join, resolve } from 'node:path';
import { ThresherError } from '../../../worker/errors.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { IamTokenManager } from './manager.ts';
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
  connections: () => [],
  check: (config, { configDir }) => {
    const loaded = loadOptions(config, configDir);
    return loaded.ok ? [] : loaded.problems;
  },
  targets: (config, { configDir }) => {
    const loaded = loadOptions(config, configDir);
    if (!loaded.ok) return [];
    const directory = resolve(configDir, loaded.options.out_dir);
    const { options } = loaded;
    return wantedTokens(options, moreTargets(options, configDir)).map(({ file }) => ({
      ...{ kind: 'file', path: join(directory, file) },
    }));
  },
  create: (config, context) => {
    const loaded = loadOptions(config, context.configDir);
    // The file was right when it was checked.
    if (!loaded.ok) {
      const said = loaded.problems.map(({ message }) => message).join('; ');
      throw new ThresherError('credential-wrong', `${config.inFile ?? 'IamTokenCredManager'}: ${said}`);
    }
    return new IamTokenManager(loaded.options, context);
  },
});
