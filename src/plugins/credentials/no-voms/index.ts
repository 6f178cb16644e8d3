import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { ProxyMaker } from '../../../clients/credentials/proxy-maker.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { planOf, problemsOf } from './plan.ts';
import { NoVomsConfig } from './schema.ts';

/** Short-lived proxies by voms-proxy-init, with attributes of a VO where asked for. */
export const NoVomsCredManager = definePlugin({
  kind: 'credmanager',
  name: 'NoVomsCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.no_voms_cred_manager', 'NoVomsCredManager']],
  config: NoVomsConfig,
  connections: () => [],
  check: (config, { configDir }) => problemsOf(config, configDir),
  create: (config, context) =>
    new ProxyMaker(planOf(config, context.configDir, toolEnvironment(process.env)), context.clock),
});
