import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

const name = Type.String({ minLength: 1 });
const file = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));

const place = {
  k8s_config_file: Type.Optional(
    Type.String({
      description:
        'Kubeconfig. Relative paths count from the queue file. Default, also where it is empty: the service account of the Pod that thresher runs in.',
    }),
  ),
  k8s_context: Type.Optional(
    Type.String({ minLength: 1, description: 'Context of the kubeconfig. Default: its current one.' }),
  ),
  k8s_namespace: Type.Union([Type.String(), Type.Array(name, { minItems: 1 })], {
    default: 'default',
    description: 'Namespace of the Secret, or several. Empty: `default`.',
  }),
  secret_name: Type.String({
    default: 'proxy-secret',
    pattern: '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$',
    description: 'Name of the Secret.',
  }),
};
const files = Type.Array(name, {
  minItems: 1,
  description:
    'Files that the manager keeps in the Secret, each under its own name. Relative paths count from the queue file.',
});
const lifetime = Type.Number({
  default: 600,
  minimum: 0,
  description: 'The manager does not push a file that ends within this many seconds; the last one stays.',
});

/** The files to keep and their Secrets: keys of the section, or of the JSON file that it names. */
export const K8sSecretPlan = Type.Object({ ...place, proxy_files: files, minLifetime: lifetime });
export type K8sSecretPlan = Static<typeof K8sSecretPlan>;

/** Harvester: `K8sSecretCredManager` of `pandaharvester.harvestercredmanager.k8s_secret_cred_manager`. */
export const K8sSecretConfig = Type.Object({
  certFile: file(
    'JSON file that has these options instead: `k8s_namespace`, `k8s_config_file`, `proxy_files`, `secret_name`. Relative paths in it count from it.',
  ),
  inCertFile: file('The same, under its newer name, which counts if both are given.'),
  ...place,
  proxy_files: Type.Optional(files),
  minLifetime: lifetime,
});
export type K8sSecretConfig = Static<typeof K8sSecretConfig>;
