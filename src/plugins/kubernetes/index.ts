import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readAccess } from '../../clients/kubernetes/access.ts';
import { filesOf } from '../../clients/kubernetes/credentials.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Context } from '../contracts/context.ts';
import { type CheckContext, definePlugin, type DefinitionProblem } from '../contracts/definition.ts';
import { accessSource, connectionName, hubOf } from './hub.ts';
import { K8sMonitor } from './monitor.ts';
import { badPendingRules } from './pending-rules.ts';
import { ProxySecrets } from './proxy-secrets.ts';
import { Rights } from './rights.ts';
import { K8sMonitorConfig, K8sSubmitterConfig, K8sSweeperConfig, namespaceOf, type Where } from './schema.ts';
import { K8sSubmitter, templateOptions } from './submitter.ts';
import { K8sSweeper } from './sweeper.ts';
import { loadTemplate } from './template.ts';

const connections = (config: Where, context: CheckContext) => [connectionName(config, context)];

export const kubernetesPlugins = [
  definePlugin({
    kind: 'submitter',
    name: 'K8sSubmitter',
    module: 'thresher/kubernetes',
    aliases: [['pandaharvester.harvestersubmitter.k8s_submitter', 'K8sSubmitter']],
    config: K8sSubmitterConfig,
    connections,
    check: (config, context) => [...checkWhere(config, context), ...checkTemplateFile(config, context)],
    create: (config, context) => {
      const hub = hubOf(config, context);
      const rights = context.share(
        `${connectionName(config, context)} rights`,
        () => new Rights(hub, context.clock),
      );
      return new K8sSubmitter({ hub, rights, proxies: proxiesOf(config, context), config, context });
    },
  }),
  definePlugin({
    kind: 'monitor',
    name: 'K8sMonitor',
    module: 'thresher/kubernetes',
    aliases: [['pandaharvester.harvestermonitor.k8s_monitor', 'K8sMonitor']],
    config: K8sMonitorConfig,
    connections,
    check: (config, context) => [...checkWhere(config, context), ...badPendingRules(config.pendingRules)],
    create: (config, context) => {
      const hub = hubOf(config, context);
      const queues = queueOptions(config, context);
      queues.set(context.queue, config);
      const options = (queue: string | undefined) => queues.get(queue ?? '') ?? config;
      return new K8sMonitor({ hub, context, options });
    },
  }),
  definePlugin({
    kind: 'sweeper',
    name: 'K8sSweeper',
    module: 'thresher/kubernetes',
    aliases: [['pandaharvester.harvestersweeper.k8s_sweeper', 'K8sSweeper']],
    config: K8sSweeperConfig,
    connections,
    check: checkWhere,
    create: (config, context) => {
      const hub = hubOf(config, context);
      const queues = queueOptions(config, context);
      // A monitor of another kind may follow the queue: then only the end of a worker is of interest.
      const options = (queue: string | undefined) =>
        queues.get(queue ?? '') ?? { podQueueTimeLimit: Infinity };
      return new K8sSweeper({ hub, proxies: proxiesOf(config, context), config, context, options });
    },
  }),
];

/** What the monitor's section of each queue says: the first monitor of a connection follows the workers of all its queues. */
function queueOptions(config: Where, context: Context): Map<string, K8sMonitorConfig> {
  return context.share(
    `${connectionName(config, context)} queues`,
    () => new Map<string, K8sMonitorConfig>(),
  );
}

function proxiesOf(config: Where, context: Context): ProxySecrets {
  const hub = hubOf(config, context);
  return context.share(
    `${connectionName(config, context)} proxies`,
    () => new ProxySecrets(hub, context.clock),
  );
}

/** What a namespace may be called. Source: RFC 1123, as Kubernetes' validation has it. */
const namespacePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

function checkWhere(config: Where, context: CheckContext): DefinitionProblem[] {
  const problems: DefinitionProblem[] = [];
  const namespace = namespaceOf(config);
  if (!namespacePattern.test(namespace)) {
    const pointer = namespace === config.k8s_namespace ? '/k8s_namespace' : '/k8s.namespace';
    const message = `${JSON.stringify(namespace)} cannot be a namespace: at most 63 small letters, digits and inner dashes`;
    problems.push({ pointer, code: 'wrong-type', message });
  }
  try {
    const access = readAccess(accessSource(config, context));
    for (const file of filesOf(access).filter((file) => !existsSync(file))) {
      // Only a warning: what writes a token may start after the daemon, and until then the queue waits with the reason.
      const message = `${access.source} names ${file}, which is not there: write that file, or name the right one`;
      problems.push({ pointer: '/k8s_config_file', severity: 'warning', code: 'file-unreadable', message });
    }
  } catch (error) {
    const code =
      error instanceof ThresherError && error.code === 'kubeconfig-wrong' ? 'syntax' : 'file-unreadable';
    problems.push({ pointer: '/k8s_config_file', code, message: messageOf(error) });
  }
  return problems;
}

function checkTemplateFile(config: K8sSubmitterConfig, context: CheckContext): DefinitionProblem[] {
  const file = resolve(context.configDir, config.k8s_yaml_file);
  const options = { ...templateOptions(config), namespace: namespaceOf(config) };
  const loaded = loadTemplate(file, options);
  const found = loaded.ok ? loaded.warnings : loaded.problems;
  return found.map((problem) =>
    problem.code === 'file-unreadable'
      ? { pointer: '/k8s_yaml_file', code: problem.code, message: `${file}: ${problem.message}` }
      : problem,
  );
}
