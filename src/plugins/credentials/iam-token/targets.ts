import { createHash } from 'node:crypto';
import type { IamTokenOptions, Target } from './schema.ts';

/** One token that is wanted. */
export interface WantedToken {
  readonly endpoint: string;
  /** In the directory of the tokens. */
  readonly file: string;
  readonly audience: string;
  /** Between spaces. */
  readonly scope: string;
}

/** Source: Harvester's token_utils.py, from the WLCG token profile. */
const computeScopes = 'compute.read compute.modify compute.create compute.cancel';

/** Ports of computing elements that are named without one. Source: Harvester's iam_token_cred_manager.py. */
const defaultPorts: Readonly<Record<string, number>> = { 'htcondor-ce': 9619, 'arc-ce': 443 };
const gridFtpPort = '2811';

/** The tokens for the targets of the options and of `lines`, those of a file with more. One token per file. */
export function wantedTokens(options: IamTokenOptions, lines: readonly string[]): WantedToken[] {
  const { target_type, target_list, panda_token_filename } = options;
  const scope = options.scope ?? (target_type === 'ce' ? computeScopes : '');
  if (target_type === 'panda') {
    const server = pandaServer(options);
    if (server === undefined) return [];
    return [{ endpoint: server, file: panda_token_filename, audience: server, scope }];
  }
  const more = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const wanted = [...target_list, ...more].map((target) => wantedToken(target, scope));
  return [...new Map(wanted.map((one) => [one.file, one])).values()];
}

/** Targets of the options whose token another one with another audience or scope would overwrite, by their index. */
export function clashingTargets({ target_type, target_list, scope = '' }: IamTokenOptions): number[] {
  if (target_type === 'panda') return [];
  const wanted = target_list.map((target) => wantedToken(target, scope));
  const same = (one: WantedToken, other: WantedToken) =>
    one.audience === other.audience && one.scope === other.scope;
  return wanted.flatMap((one, index) => {
    const first = wanted.find(({ file }) => file === one.file) ?? one;
    return same(first, one) ? [] : [index];
  });
}

/** "https://pandaserver.cern.ch" of "https://pandaserver.cern.ch:25443/server/panda". */
export function pandaServer({ pandaURLSSL = '' }: IamTokenOptions): string | undefined {
  return /^https:\/\/[^:/]+/.exec(pandaURLSSL)?.[0];
}

function wantedToken(target: Target, scope: string): WantedToken {
  const given = typeof target === 'string' ? { endpoint: target } : target;
  const flavour = given.ce_flavour?.toLowerCase();
  const endpoint = flavour === undefined ? given.endpoint : endpointOf(given.endpoint, flavour);
  return {
    endpoint,
    file: createHash('md5').update(endpoint, 'latin1').digest('hex'),
    audience: given.audience ?? (flavour === 'arc-ce' ? arcAudience(endpoint) : endpoint),
    scope: given.scope ?? scope,
  };
}

function endpointOf(given: string, flavour: string): string {
  const bare = given.replace(/^\w+:\/\//, '');
  const port = defaultPorts[flavour];
  return port === undefined || /:\w*$/.test(bare) ? bare : `${bare}:${port}`;
}

/**
 * ARC wants a URL, without the port if that is the one of HTTPS; the port of its old GridFTP interface does not count.
 */
function arcAudience(endpoint: string): string {
  const [, host = endpoint, port = '443'] = /^(.*):(\d+)$/.exec(endpoint) ?? [];
  return port === '443' || port === gridFtpPort ? `https://${host}` : `https://${host}:${port}`;
}
