import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { ProxyMaker } from '../../../clients/credentials/proxy-maker.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { planOf, problemsOf } from './plan.ts';
import { ArcproxyConfig } from './schema.ts';

/** Short-lived proxies by arcproxy, with attributes of a VO where asked for. */
export const ArcproxyCredManager = definePlugin({
  kind: 'credmanager',
  name: 'ArcproxyCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.arcproxy_cred_manager', 'ArcproxyCredManager']],
  config: ArcproxyConfig,
  connections: () => [],
  check: (config, { configDir }) => problemsOf(config, configDir),
  create: (config, context) =>
    new ProxyMaker(planOf(config, context.configDir, toolEnvironment(process.env)), context.clock),
});
