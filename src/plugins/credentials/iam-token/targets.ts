import { ceEndpoint, tokenFileOf } from '../../../clients/htcondor/ce-endpoint.ts';
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

/** The tokens for the targets of the options and of `lines`, those of a file with more. One token per file. */
export function wantedTokens(options: IamTokenOptions, lines: readonly string[]): WantedToken[] {
  const { target_type, target_list, ce_targets, panda_token_filename } = options;
  const scope = options.scope ?? (target_type === 'ce' ? computeScopes : '');
  if (target_type === 'panda') {
    const server = pandaServer(options);
    if (server === undefined) return [];
    return [{ endpoint: server, file: panda_token_filename, audience: server, scope }];
  }
  const more = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const ofQueues = target_type === 'ce' ? ce_targets : [];
  // What is written for this manager counts before what the queues say.
  const wanted = [...ofQueues, ...target_list, ...more].map((target) => wantedToken(target, scope));
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
  const { endpoint, audience } =
    given.ce_flavour === undefined
      ? { endpoint: given.endpoint, audience: given.endpoint }
      : ceEndpoint(given.endpoint, given.ce_flavour);
  return {
    endpoint,
    file: tokenFileOf(endpoint),
    audience: given.audience ?? audience,
    scope: given.scope ?? scope,
  };
}
