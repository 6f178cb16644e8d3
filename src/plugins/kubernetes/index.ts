import { clusterName } from '../../clients/kubernetes/place.ts';
import { commonParts } from '../../worker/payload.ts';
import { defineBackend } from '../contracts/backend.ts';
import type { CheckContext } from '../contracts/definition.ts';
import { checkMonitor, checkSubmitter, checkWhere } from './check.ts';
import { connectionName, K8sConnection } from './connection.ts';
import { K8sMonitorConfig, K8sSubmitterConfig, K8sSweeperConfig, type Where } from './schema.ts';

const connections = (config: Where, context: CheckContext) => [connectionName(config, context)];

export const kubernetesBackend = defineBackend({
  name: 'K8s',
  module: 'thresher/kubernetes',
  submitter: {
    aliases: [['pandaharvester.harvestersubmitter.k8s_submitter', 'K8sSubmitter']],
    payload: commonParts,
    config: K8sSubmitterConfig,
    connections,
    common: (config, { configDir }) => [clusterName(config, configDir)],
    check: checkSubmitter,
  },
  monitor: {
    aliases: [['pandaharvester.harvestermonitor.k8s_monitor', 'K8sMonitor']],
    config: K8sMonitorConfig,
    connections,
    check: checkMonitor,
  },
  sweeper: {
    aliases: [['pandaharvester.harvestersweeper.k8s_sweeper', 'K8sSweeper']],
    config: K8sSweeperConfig,
    connections,
    check: checkWhere,
  },
  connect: (place, daemon) => new K8sConnection(place, daemon),
});
