import { hostname } from 'node:os';

/**
 * The name of this machine that `$hostname` stands for: short, or with `useFQDN` as the machine gives it.
 * Source: Harvester's htcondor_submitter.
 */
export function hostnameFor({ useFQDN }: { readonly useFQDN?: unknown } = {}, name = hostname()): string {
  return useFQDN ? name : (name.split('.')[0] ?? name);
}

/** Harvester's `$hostname` and `${hostname}`. */
export function withHostname(text: string, hostname: string): string {
  return text.replace(/\$hostname\b|\$\{hostname\}/g, () => hostname);
}
