import Type, { type Static } from 'typebox';

const name = Type.String({ minLength: 1 });

/** Harvester: `K8sSecretCredManager` of `pandaharvester.harvestercredmanager.k8s_secret_cred_manager`. */
export const K8sSecretConfig = Type.Object({
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
  proxy_files: Type.Array(name, {
    minItems: 1,
    description:
      'Files that are kept in the Secret, each under its own name. Relative paths count from the queue file.',
  }),
  minLifetime: Type.Number({
    default: 600,
    minimum: 0,
    description: 'A file that ends sooner is not pushed: the last one stays, s.',
  }),
});
export type K8sSecretConfig = Static<typeof K8sSecretConfig>;
