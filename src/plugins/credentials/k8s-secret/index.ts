import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { Access } from '../../../clients/kubernetes/access.ts';
import { KubernetesClient } from '../../../clients/kubernetes/client.ts';
import { Pacer } from '../../../clients/kubernetes/pacer.ts';
import { accessSource, clusterName } from '../../../clients/kubernetes/place.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import { LaterManager } from '../../contracts/later-manager.ts';
import { definePlugin } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { K8sSecretManager } from './manager.ts';
import { loadPlan, namespacesOf, placeOf } from './plan.ts';
import { K8sSecretConfig } from './schema.ts';

/** Requests that a manager makes at once at most; it makes three per namespace and change. */
const rate = { perSecond: 20, burst: 40 };

/** Files kept in a Secret of a cluster, pushed when they change. */
export const K8sSecretCredManager = definePlugin({
  kind: 'credmanager',
  name: 'K8sSecretCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.k8s_secret_cred_manager', 'K8sSecretCredManager']],
  config: K8sSecretConfig,
  check: async (config, context) => {
    const loaded = await loadPlan(config, context);
    return loaded.ok ? loaded.warnings : loaded.problems;
  },
  targets: async (config, context) => {
    const loaded = await loadPlan(config, context);
    if (!loaded.ok) return [];
    const { plan, directory } = loaded;
    const cluster = clusterName(placeOf(plan), directory);
    return namespacesOf(plan).map((namespace) => ({
      kind: 'secret',
      cluster,
      namespace,
      name: plan.secret_name,
    }));
  },
  create: (config, context) => new LaterManager(() => makeManager(config, context)),
});

async function makeManager(config: K8sSecretConfig, context: Context): Promise<K8sSecretManager> {
  const { configDir, clock, files, random, factoryId } = context;
  const loaded = await loadPlan(config, context);
  // It was good when it was checked.
  if (!loaded.ok) throw new ThresherError('credential-wrong', sayProblems(loaded.problems));
  const { plan, directory } = loaded;
  const place = placeOf(plan);
  const access = new Access(accessSource(place, directory), { clock, files });
  const client = new KubernetesClient({
    access,
    clock,
    pacer: new Pacer(rate, clock, random),
    userAgent: `thresher/${factoryId}`,
    connections: 2,
  });
  return new K8sSecretManager({
    client,
    clock,
    cluster: clusterName(place, directory),
    namespaces: namespacesOf(plan),
    secret: plan.secret_name,
    fieldManager: fieldManagerOf(factoryId, config, configDir),
    files: [...new Set(plan.proxy_files.map((file) => resolve(directory, file)))],
    minLifetime: plan.minLifetime * 1000,
  });
}

/** Equal for the same section, whatever files it lists: the manager then removes keys that it no longer lists. */
function fieldManagerOf(
  factoryId: string,
  { inCertFile, certFile, proxy_files }: K8sSecretConfig,
  configDir: string,
): string {
  const file = inCertFile ?? certFile;
  const which = file === undefined ? JSON.stringify(proxy_files) : resolve(configDir, file);
  return `${factoryId}-${createHash('sha256').update(which).digest('hex').slice(0, 8)}`;
}

function sayProblems(problems: readonly DefinitionProblem[]): string {
  return problems
    .map(({ file, line, message }) => (file === undefined ? message : `${file}:${line ?? 0}: ${message}`))
    .join('; ');
}
