import { posix } from 'node:path';
import type { KubernetesTemplate } from './template.ts';

interface Items {
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

/** A volume as far as Secrets go. Source: the API's `Volume`, `SecretVolumeSource`, `ProjectedVolumeSource`. */
interface Volume {
  readonly name: string;
  readonly secret?: Items & { readonly secretName?: string };
  readonly projected?: {
    readonly sources?: readonly { readonly secret?: Items & { readonly name?: string } }[];
  };
}

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly subPath?: string;
}

/** Which key of which Secret the pilot finds at `path`; undefined where the template mounts none there. */
export function secretAt(
  { job, pilot }: Pick<KubernetesTemplate, 'job' | 'pilot'>,
  path: string,
): { readonly secret: string; readonly key: string } | undefined {
  const { containers, volumes = [] } = job.spec.template.spec;
  const mounts = containers.find(({ name }) => name === pilot)?.volumeMounts ?? [];
  for (const { name, mountPath, subPath = '' } of mounts as readonly Mount[]) {
    const below = posix.relative(mountPath, path);
    // With `subPath` one file of the volume is what is mounted.
    const within = posix.join(subPath, below);
    if (below.startsWith('..') || within === '.' || within === '') continue;
    const volume = (volumes as readonly Volume[]).find((one) => one.name === name);
    for (const { secret, items } of secretsOf(volume)) {
      const item = items?.find((one) => one.path === within);
      if (items !== undefined && item === undefined) continue;
      return { secret, key: item?.key ?? within };
    }
  }
  return undefined;
}

function secretsOf(volume: Volume | undefined): (Items & { readonly secret: string })[] {
  const { secret, projected } = volume ?? {};
  const own = secret === undefined ? [] : [{ ...secret, name: secret.secretName }];
  const several = projected?.sources?.flatMap((source) => source.secret ?? []) ?? [];
  return [...own, ...several].flatMap(({ name, items }) =>
    name === undefined ? [] : [{ secret: name, ...(items && { items }) }],
  );
}
