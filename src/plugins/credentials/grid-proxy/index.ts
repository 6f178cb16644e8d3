import { resolve } from 'node:path';
import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { ProxyMaker, type ProxyPlan } from '../../../clients/credentials/proxy-maker.ts';
import type { Context } from '../../contracts/context.ts';
import type { WriteTarget } from '../../contracts/credential-manager.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { arcproxyPlan, arcproxyProblems, noVomsPlan, noVomsProblems } from './plan.ts';
import { ArcproxyConfig, NoVomsConfig } from './schema.ts';

type PlanOf<Config> = (
  config: Config,
  configDir: string,
  environment: Readonly<Record<string, string>>,
) => ProxyPlan;

function maker<Config>(planOf: PlanOf<Config>, config: Config, { configDir, clock }: Context): ProxyMaker {
  return new ProxyMaker(planOf(config, configDir, toolEnvironment(process.env)), clock);
}

const targets = (
  { outCertFile }: { readonly outCertFile: string },
  { configDir }: { readonly configDir: string },
): readonly WriteTarget[] => [{ kind: 'file', path: resolve(configDir, outCertFile) }];

/** Short-lived proxies by voms-proxy-init, with attributes of a VO where asked for. */
export const NoVomsCredManager = definePlugin({
  kind: 'credmanager',
  name: 'NoVomsCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.no_voms_cred_manager', 'NoVomsCredManager']],
  config: NoVomsConfig,
  check: (config, { configDir }) => noVomsProblems(config, configDir),
  targets,
  create: (config, context) => maker(noVomsPlan, config, context),
});

/** Short-lived proxies by arcproxy, with attributes of a VO where asked for. */
export const ArcproxyCredManager = definePlugin({
  kind: 'credmanager',
  name: 'ArcproxyCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.arcproxy_cred_manager', 'ArcproxyCredManager']],
  config: ArcproxyConfig,
  check: (config, { configDir }) => arcproxyProblems(config, configDir),
  targets,
  create: (config, context) => maker(arcproxyPlan, config, context),
});
