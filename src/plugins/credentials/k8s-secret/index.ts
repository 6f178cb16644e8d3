import { basename, resolve } from 'node:path';
import { Access, readAccess } from '../../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../../clients/kubernetes/client.ts';
import { Pacer } from '../../../clients/kubernetes/pacer.ts';
import { accessSource, clusterName } from '../../../clients/kubernetes/place.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import { definePlugin } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { K8sSecretManager } from './manager.ts';
import { K8sSecretConfig } from './schema.ts';

/** Requests that a manager makes at once at most; it makes three per namespace and change. */
const rate = { perSecond: 20, burst: 40 };

/** Harvester's examples have an empty kubeconfig and an empty namespace for "none". */
function placeOf({ k8s_config_file: file, k8s_context: context }: K8sSecretConfig) {
  return { ...(file && { k8s_config_file: file }), ...(context !== undefined && { k8s_context: context }) };
}

function namespacesOf({ k8s_namespace }: K8sSecretConfig): string[] {
  return [...new Set([k8s_namespace].flat().map((name) => name || 'default'))];
}

/** Files kept in a Secret of a cluster, pushed when they change. */
export const K8sSecretCredManager = definePlugin({
  kind: 'credmanager',
  name: 'K8sSecretCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.k8s_secret_cred_manager', 'K8sSecretCredManager']],
  config: K8sSecretConfig,
  connections: () => [],
  check: (config, { configDir }) => {
    const problems: DefinitionProblem[] = [];
    for (const namespace of namespacesOf(config)) {
      if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) continue;
      const message = `${JSON.stringify(namespace)} cannot be a namespace: at most 63 small letters, digits and inner dashes`;
      problems.push({ pointer: '/k8s_namespace', code: 'wrong-type', message });
    }
    const keys = config.proxy_files.map((file) => basename(file));
    for (const [index, key] of keys.entries()) {
      const pointer = `/proxy_files/${index}`;
      if (keys.indexOf(key) !== index) {
        const message = `two files have the name ${key}, under which each is kept in the Secret: give one another name`;
        problems.push({ pointer, code: 'wrong-type', message });
      } else if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
        const message = `${JSON.stringify(key)} cannot be a key of a Secret: letters, digits, "-", "_" and "." only`;
        problems.push({ pointer, code: 'wrong-type', message });
      }
    }
    try {
      readAccess(accessSource(placeOf(config), configDir));
    } catch (error) {
      const isWrong = error instanceof ThresherError && error.code === 'kubeconfig-wrong';
      const code = isWrong ? 'syntax' : 'file-unreadable';
      problems.push({ pointer: '/k8s_config_file', code, message: messageOf(error) });
    }
    return problems;
  },
  create: (config, { configDir, clock, random, factoryId }) => {
    const place = placeOf(config);
    const access = new Access(accessSource(place, configDir), clock);
    const client = new KubernetesClient({
      ...{ access, clock, pacer: new Pacer(rate, clock, random), userAgent: `thresher/${factoryId}` },
      connections: 2,
    });
    return new K8sSecretManager({
      ...{ client, clock, cluster: clusterName(place, configDir), namespaces: namespacesOf(config) },
      secret: config.secret_name,
      files: [...new Set(config.proxy_files.map((file) => resolve(configDir, file)))],
      minLifetime: config.minLifetime * 1000,
    });
  },
});
