import { type PoolFile, secretFiles, type Security } from './pool-files.ts';
import type { PoolObject } from './pool-objects.ts';

interface Form {
  readonly file: keyof typeof secretFiles;
  /** End of the Secret's name. */
  readonly end: string;
  /** Under which the file stands in it. The names of files in Pods. */
  readonly key: string;
}

const forms: Readonly<Record<Security, readonly Form[]>> = {
  tokens: [
    { file: 'key', end: 'pool-signing-key', key: 'POOL' },
    { file: 'scheddToken', end: 'schedd-token', key: 'token' },
    { file: 'workerToken', end: 'worker-token', key: 'token' },
  ],
  // As `kubectl create secret generic NAME-pool-password --from-file=password` makes it.
  password: [{ file: 'password', end: 'pool-password', key: 'password' }],
};

/** The Secrets of a pool by its files. The administrator's token is in none: it is for people. */
export function secretsOf(
  { security, files }: { readonly security: Security; readonly files: readonly PoolFile[] },
  { name, namespace }: { readonly name: string; readonly namespace?: string },
): PoolObject[] {
  return forms[security].map(({ file, end, key }) => {
    const content = files.find(({ path }) => path === secretFiles[file].path)?.content ?? new Uint8Array();
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: `${name}-${end}`,
        ...(namespace !== undefined && { namespace }),
        labels: { 'app.kubernetes.io/name': 'htcondor-pool', 'app.kubernetes.io/instance': name },
      },
      type: 'Opaque',
      data: { [key]: Buffer.from(content).toString('base64') },
    };
  });
}
