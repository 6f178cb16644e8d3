import { Access, type AccessParts } from '../kubernetes/access.ts';
import { KubernetesClient } from '../kubernetes/client.ts';
import { Pacer } from '../kubernetes/pacer.ts';
import { accessSource } from '../kubernetes/place.ts';
import type { HtcJobOptions } from './options.ts';

export interface ClientParts extends AccessParts {
  readonly random: () => number;
  /** Relative paths in the options count from here. */
  readonly configDir: string;
  /** Audit logs show it. */
  readonly userAgent: string;
}

/** The operator's client of its cluster. It connects to nothing before the first call. */
export function clientOf(options: HtcJobOptions, parts: ClientParts): KubernetesClient {
  const { clock, files, random, configDir, userAgent } = parts;
  const access = new Access(accessSource(options, configDir), { clock, files });
  const { requestsPerSecond: perSecond } = options;
  const pacer = new Pacer({ perSecond, burst: 2 * perSecond }, clock, random);
  return new KubernetesClient({ access, pacer, clock, userAgent });
}
