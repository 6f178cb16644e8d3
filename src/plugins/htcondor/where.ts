import { resolve } from 'node:path';
import { hostnameFor } from '../../util/hostname.ts';
import type { CheckContext } from '../contracts/definition.ts';
import {
  readHostConfigSync,
  type ReadSchedds,
  type Schedd,
  scheddsIn,
  scheddsOf,
  submissionHostOf,
} from './place/schedds.ts';
import type { Where } from './schema.ts';

/** Names of connections begin with this. */
export const everywhere = 'htcondor:';

export function connectionName(schedd: Pick<Schedd, 'name' | 'pool'>): string {
  return `${everywhere}${submissionHostOf(schedd)}`;
}

/** Which schedd a connection is: also one that the queue does not name any more, where its workers of before are. */
export function scheddOfConnection(connection: string): Pick<Schedd, 'name' | 'pool'> {
  const host = connection.slice(everywhere.length);
  if (host === 'LOCAL') return {};
  const comma = host.indexOf(',');
  const [name, pool] = [host.slice(0, comma), host.slice(comma + 1)];
  return { ...(name !== 'None' && { name }), ...(pool !== 'None' && { pool }) };
}

/** The schedds that a queue names, those with weight 0 among them. */
export function schedds(
  config: Where & { readonly useFQDN?: unknown },
  { configDir }: Pick<CheckContext, 'configDir'>,
): ReadSchedds {
  const { condorHostConfig } = config;
  if (condorHostConfig === undefined) return scheddsOf(config, hostnameFor(config));
  if (typeof condorHostConfig === 'string') return readHostConfigSync(resolve(configDir, condorHostConfig));
  return scheddsIn(condorHostConfig);
}

/** All schedds that a queue may call: also those to which it submits nothing any more. */
export function called(config: Where, context: Pick<CheckContext, 'configDir'>): string[] {
  const read = schedds(config, context);
  return read.ok ? read.schedds.map(connectionName) : [];
}

/** None where the file of schedds cannot be read: that is said by `check`. */
export function connections(config: Where, context: Pick<CheckContext, 'configDir'>): string[] {
  const read = schedds(config, context);
  if (!read.ok) return [];
  return read.schedds.filter(({ weight }) => weight > 0).map(connectionName);
}
