import type { PoolShape } from './pool-objects.ts';

/** Volumes of the mode with tokens. */
const replaced = new Set(['signing-key', 'token']);
const name = 'pool-password';
const secretName = 'htcondor-pool-password';

/** Changes an object as the overlay `pool-password` does: one password in place of tokens. A test compares both. */
export function inPasswordMode({ spec }: PoolShape): void {
  const pod = spec?.template?.spec;
  if (pod === undefined) return;
  for (const container of pod.containers) {
    container.env = [{ name: 'USE_POOL_PASSWORD', value: 'yes' }, ...(container.env ?? [])];
    container.volumeMounts = [
      { name, mountPath: '/etc/condor/pool_password', readOnly: true },
      ...(container.volumeMounts ?? []).filter((mount) => !replaced.has(mount.name)),
    ];
  }
  const others = (pod.volumes ?? []).filter((volume) => !replaced.has(volume.name));
  pod.volumes = [{ name, secret: { secretName, defaultMode: 0o440 } }, ...others];
}
