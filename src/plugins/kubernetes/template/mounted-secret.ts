import { posix } from 'node:path';
import type { KubernetesTemplate } from './template.ts';

/** A volume as far as Secrets go. Source: the API's `Volume`, `SecretVolumeSource`. */
interface Volume {
  readonly name: string;
  readonly secret?: {
    readonly secretName?: string;
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
}

/** Which key of which Secret the pilot finds at `path`; undefined where the template mounts none there. */
export function secretAt(
  { job, pilot }: Pick<KubernetesTemplate, 'job' | 'pilot'>,
  path: string,
): { readonly secret: string; readonly key: string } | undefined {
  const { containers, volumes = [] } = job.spec.template.spec;
  const mounts = containers.find(({ name }) => name === pilot)?.volumeMounts ?? [];
  for (const { name, mountPath } of mounts) {
    const { secret } = (volumes as readonly Volume[]).find((volume) => volume.name === name) ?? {};
    const within = posix.relative(mountPath, path);
    if (secret?.secretName === undefined || within === '' || within.startsWith('..')) continue;
    const key = secret.items?.find((item) => item.path === within)?.key ?? within;
    return { secret: secret.secretName, key };
  }
  return undefined;
}
