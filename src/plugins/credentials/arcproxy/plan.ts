import { resolve } from 'node:path';
import type { ProxyPlan } from '../../../clients/credentials/proxy-maker.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { ArcproxyConfig } from './schema.ts';

const hour = 3_600_000;

/** What is to be called, from the options. Source: Harvester's arcproxy_cred_manager.py. */
export function planOf(
  config: ArcproxyConfig,
  configDir: string,
  environment: Readonly<Record<string, string>>,
): ProxyPlan {
  const source = sourceOf(config, configDir);
  const [command = '', ...first] = words(config.renewCommand);
  const vos = [config.voms ?? []].flat();
  return {
    source,
    path: resolve(configDir, config.outCertFile),
    voms: vos,
    lifetime: config.lifetime * hour,
    renewBelow: config.renewBelow * hour,
    minNewLifetime: config.minNewLifetime * hour,
    timeLimit: config.timeLimit * 1000,
    environment,
    command,
    args: (temporary) => [
      ...first,
      // Without any it would take those of its own configuration file.
      ...(vos.length === 0 ? ['-S', ''] : vos.flatMap((vo) => ['-S', vo])),
      ...['-P', temporary, '-c', `validityPeriod=${config.lifetime}h`],
      ...['-c', `vomsACvalidityPeriod=${config.lifetime}h`],
      ...['-C', source, '-K', source, ...words(config.extraRenewOpts)],
    ],
  };
}

/** Mistakes that no single option shows. */
export function problemsOf(config: ArcproxyConfig, configDir: string): DefinitionProblem[] {
  const { lifetime, renewBelow, minNewLifetime } = config;
  const source = sourceOf(config, configDir);
  const wrong: (readonly [key: string, message: string] | false)[] = [
    (config.inCertFile ?? config.certFile) === undefined && [
      'inCertFile',
      'inCertFile is missing; it names the proxy of which others are made',
    ],
    source === resolve(configDir, config.outCertFile) && [
      'outCertFile',
      `outCertFile is the file that proxies are made of, ${source}; it must be another`,
    ],
    renewBelow >= lifetime && [
      'renewBelow',
      `renewBelow is ${renewBelow}; it must be less than lifetime, ${lifetime}`,
    ],
    minNewLifetime > lifetime && [
      'minNewLifetime',
      `minNewLifetime is ${minNewLifetime}; no new proxy has more than lifetime, ${lifetime}`,
    ],
  ];
  return wrong
    .filter((one) => one !== false)
    .map(([key, message]) => ({ pointer: `/${key}`, code: 'wrong-type', message }));
}

function sourceOf({ inCertFile, certFile = '' }: ArcproxyConfig, configDir: string): string {
  return resolve(configDir, inCertFile ?? certFile);
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
