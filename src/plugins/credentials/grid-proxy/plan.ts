import { resolve } from 'node:path';
import type { ProxyPlan } from '../../../clients/credentials/proxy-maker.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { ArcproxyConfig, NoVomsConfig } from './schema.ts';

const hour = 3_600_000;

type Environment = Readonly<Record<string, string>>;
type Config = NoVomsConfig | ArcproxyConfig;

/** The way in which one program gets its options. */
interface Telling {
  /** The file from which the program makes proxies. */
  readonly source: string;
  /** Hours left below which the manager makes a new proxy. */
  readonly renewBelow: number;
  /** Between those of `renewCommand` and of `extraRenewOpts`. */
  readonly args: (temporary: string, vos: readonly string[]) => readonly string[];
}

/** The command, from the options. Source: Harvester's no_voms_cred_manager.py. */
export function noVomsPlan(config: NoVomsConfig, configDir: string, environment: Environment): ProxyPlan {
  const { certificate, key } = noVomsSource(config, configDir);
  const { genFromKeyCert, lifetime, checkPeriod, lifetimeOptFormat } = config;
  return planOf(config, configDir, environment, {
    source: certificate,
    renewBelow: lifetime - checkPeriod,
    args: (temporary, vos) => [
      ...['-rfc', ...(genFromKeyCert ? [] : ['-noregen'])],
      ...vos.flatMap((vo) => ['-voms', vo]),
      ...['-out', temporary],
      ...words(lifetimeOptFormat.replaceAll('{lifetime}', String(lifetime))),
      ...['-cert', certificate, '-key', key],
    ],
  });
}

/** The same for arcproxy. Source: Harvester's arcproxy_cred_manager.py. */
export function arcproxyPlan(config: ArcproxyConfig, configDir: string, environment: Environment): ProxyPlan {
  const source = sourceOf(config, configDir);
  const { lifetime, renewBelow } = config;
  return planOf(config, configDir, environment, {
    source,
    renewBelow,
    args: (temporary, vos) => [
      // Without any it would take those of its own configuration file.
      ...(vos.length === 0 ? ['-S', ''] : vos.flatMap((vo) => ['-S', vo])),
      ...['-P', temporary, '-c', `validityPeriod=${lifetime}h`, '-c', `vomsACvalidityPeriod=${lifetime}h`],
      ...['-C', source, '-K', source],
    ],
  });
}

/** Mistakes that no single option shows. */
export function noVomsProblems(config: NoVomsConfig, configDir: string): DefinitionProblem[] {
  const { cert, key, genFromKeyCert, lifetime, checkPeriod } = config;
  const needed = 'is missing; genFromKeyCert needs cert and key, two PEM files';
  return [
    ...(genFromKeyCert && cert === undefined ? [wrong('cert', `cert ${needed}`)] : []),
    ...(genFromKeyCert && key === undefined ? [wrong('key', `key ${needed}`)] : []),
    ...(genFromKeyCert ? [] : sourceMissing(config)),
    ...sharedProblems(config, configDir, noVomsSource(config, configDir).certificate),
    ...(checkPeriod >= lifetime
      ? [wrong('checkPeriod', `checkPeriod is ${checkPeriod}; it must be less than lifetime, ${lifetime}`)]
      : []),
  ];
}

export function arcproxyProblems(config: ArcproxyConfig, configDir: string): DefinitionProblem[] {
  const { lifetime, renewBelow } = config;
  return [
    ...sourceMissing(config),
    ...sharedProblems(config, configDir, sourceOf(config, configDir)),
    ...(renewBelow >= lifetime
      ? [wrong('renewBelow', `renewBelow is ${renewBelow}; it must be less than lifetime, ${lifetime}`)]
      : []),
  ];
}

function planOf(
  config: Config,
  configDir: string,
  environment: Environment,
  { source, renewBelow, args }: Telling,
): ProxyPlan {
  const [command = '', ...first] = words(config.renewCommand);
  const vos = [config.voms ?? []].flat();
  return {
    source,
    path: resolve(configDir, config.outCertFile),
    voms: vos,
    environment,
    command,
    lifetime: config.lifetime * hour,
    renewBelow: renewBelow * hour,
    minNewLifetime: config.minNewLifetime * hour,
    timeLimit: config.timeLimit * 1000,
    args: (temporary) => [...first, ...args(temporary, vos), ...words(config.extraRenewOpts)],
  };
}

function sharedProblems(config: Config, configDir: string, source: string): DefinitionProblem[] {
  const { outCertFile, lifetime, minNewLifetime } = config;
  const itself = `outCertFile is the file that proxies are made of, ${source}; it must be another`;
  const short = `minNewLifetime is ${minNewLifetime}; no new proxy has more than lifetime, ${lifetime}`;
  return [
    ...(source === resolve(configDir, outCertFile) ? [wrong('outCertFile', itself)] : []),
    ...(minNewLifetime > lifetime ? [wrong('minNewLifetime', short)] : []),
  ];
}

function sourceMissing({ inCertFile, certFile }: Config): DefinitionProblem[] {
  const message = 'inCertFile is missing; it names the proxy of which others are made';
  return (inCertFile ?? certFile) === undefined ? [wrong('inCertFile', message)] : [];
}

function sourceOf({ inCertFile, certFile = '' }: Config, configDir: string): string {
  return resolve(configDir, inCertFile ?? certFile);
}

function noVomsSource(config: NoVomsConfig, configDir: string): { certificate: string; key: string } {
  const both = sourceOf(config, configDir);
  if (!config.genFromKeyCert) return { certificate: both, key: both };
  const { cert = '', key = '' } = config;
  return { certificate: resolve(configDir, cert), key: resolve(configDir, key) };
}

function wrong(option: string, message: string): DefinitionProblem {
  return { pointer: `/${option}`, code: 'wrong-type', message };
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
