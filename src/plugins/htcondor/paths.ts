import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { HTCondorSubmitterConfig } from './schema.ts';
import { withHostname } from './template/placeholders.ts';

const paths = [
  ...(['executableFile', 'x509UserProxy', 'x509UserProxyAnalysis', 'tokenDir', 'tokenDirAnalysis'] as const),
  ...(['pandaTokenDir', 'pandaTokenKeyPath', 'logDir'] as const),
];

/** The same options with all paths absolute: relative ones count from the queue file. */
export function absolutePaths(config: HTCondorSubmitterConfig, configDir: string): HTCondorSubmitterConfig {
  const absolute = paths.flatMap((key) => {
    const path = config[key];
    return path === undefined ? [] : [[key, resolve(configDir, withHostname(path, hostname()))] as const];
  });
  return { ...config, ...Object.fromEntries(absolute) };
}

/** The proxy without which pilots are of no use. */
export function credentialOf({
  useAnalysisCredentials,
  x509UserProxy,
  x509UserProxyAnalysis,
}: HTCondorSubmitterConfig): string | undefined {
  return (useAnalysisCredentials ? x509UserProxyAnalysis : undefined) ?? x509UserProxy;
}
