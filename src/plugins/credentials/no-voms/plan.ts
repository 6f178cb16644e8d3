import { resolve } from 'node:path';
import type { ProxyPlan } from '../../../clients/credentials/proxy-maker.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { NoVomsConfig } from './schema.ts';

const hour = 3_600_000;

/** What is to be called, from the options. Source: Harvester's no_voms_cred_manager.py. */
export function planOf(
  config: NoVomsConfig,
  configDir: string,
  environment: Readonly<Record<string, string>>,
): ProxyPlan {
  const { certificate, key } = sourceOf(config, configDir);
  const [command = '', ...first] = words(config.renewCommand);
  const vos = [config.voms ?? []].flat();
  return {
    source: certificate,
    path: resolve(configDir, config.outCertFile),
    voms: vos,
    lifetime: config.lifetime * hour,
    renewBelow: (config.lifetime - config.checkPeriod) * hour,
    minNewLifetime: config.minNewLifetime * hour,
    timeLimit: config.timeLimit * 1000,
    environment,
    command,
    args: (temporary) => [
      ...[...first, '-rfc', ...(config.genFromKeyCert ? [] : ['-noregen'])],
      ...vos.flatMap((vo) => ['-voms', vo]),
      ...['-out', temporary],
      ...words(config.lifetimeOptFormat.replaceAll('{lifetime}', String(config.lifetime))),
      ...['-cert', certificate, '-key', key, ...words(config.extraRenewOpts)],
    ],
  };
}

/** Mistakes that no single option shows. */
export function problemsOf(config: NoVomsConfig, configDir: string): DefinitionProblem[] {
  const { cert, key, genFromKeyCert, lifetime, checkPeriod, minNewLifetime } = config;
  const { certificate } = sourceOf(config, configDir);
  const wrong: (readonly [key: string, message: string] | false)[] = [
    genFromKeyCert &&
      cert === undefined && ['cert', 'cert is missing; genFromKeyCert needs cert and key, two PEM files'],
    genFromKeyCert &&
      key === undefined && ['key', 'key is missing; genFromKeyCert needs cert and key, two PEM files'],
    !genFromKeyCert &&
      (config.inCertFile ?? config.certFile) === undefined && [
        'inCertFile',
        'inCertFile is missing; it names the proxy of which others are made',
      ],
    certificate === resolve(configDir, config.outCertFile) && [
      'outCertFile',
      `outCertFile is the file that proxies are made of, ${certificate}; it must be another`,
    ],
    checkPeriod >= lifetime && [
      'checkPeriod',
      `checkPeriod is ${checkPeriod}; it must be less than lifetime, ${lifetime}`,
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

function sourceOf(config: NoVomsConfig, configDir: string): { certificate: string; key: string } {
  const both = config.inCertFile ?? config.certFile;
  const [certificate = '', key = ''] = config.genFromKeyCert ? [config.cert, config.key] : [both, both];
  return { certificate: resolve(configDir, certificate), key: resolve(configDir, key) };
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
