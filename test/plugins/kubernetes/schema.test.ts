import { expect } from 'chai';
import type { TSchema } from 'typebox';
import {
  K8sMonitorConfig,
  K8sSubmitterConfig,
  K8sSweeperConfig,
} from '../../../src/plugins/kubernetes/schema.ts';
import { knownOptions } from '../../../src/config/harvester/plugin-options.ts';
import { check } from '../../../src/util/schema.ts';

const keysOf = (schema: unknown) => Object.keys((schema as { properties: object }).properties);
const wrong = (schema: TSchema, value: object) => {
  const checked = check(schema, { k8s_yaml_file: 'a.yaml', ...value });
  return checked.ok ? [] : checked.problems.map(({ pointer, message }) => `${pointer} ${message}`);
};

describe('the options of the Kubernetes plugins', () => {
  it("include those of the wiki's example", () => {
    const seed = {
      k8s_yaml_file: '/a.yaml',
      k8s_config_file: '/c',
      k8s_namespace: '',
      proxySecretPath: '/proxy/a',
    };
    const submitter = { ...seed, x509UserProxy: '/p', cpuAdjustRatio: 90, memoryAdjustRatio: 100 };
    expect(wrong(K8sSubmitterConfig, submitter)).to.deep.equal([]);
    expect(keysOf(K8sSubmitterConfig)).to.include.members(Object.keys(submitter));
  });

  it("include what Harvester's plugins of today read", () => {
    const general = knownOptions('HTCondorSubmitter') ?? [];
    const missing = (plugin: string, schema: unknown) =>
      (knownOptions(plugin) ?? []).filter(
        (name) => !keysOf(schema).includes(name) && !general.includes(name),
      );
    // Read by Harvester, and used for nothing.
    expect(missing('K8sSubmitter', K8sSubmitterConfig)).to.deep.equal(['proxySecretPathAnalysis']);
    expect(missing('K8sMonitor', K8sMonitorConfig)).to.deep.equal([]);
    expect(missing('K8sSweeper', K8sSweeperConfig)).to.deep.equal([]);
  });

  it('each say what they mean', () => {
    for (const schema of [K8sSubmitterConfig, K8sMonitorConfig, K8sSweeperConfig]) {
      const { properties } = schema as unknown as { properties: Record<string, { description?: string }> };
      const silent = Object.entries(properties).filter(
        ([, { description = '' }]) => !/\.$/.test(description),
      );
      expect(silent.map(([key]) => key)).to.deep.equal([]);
    }
  });

  for (const [option, value, message] of [
    ['cpuAdjustRatio', '90', 'cpuAdjustRatio is "90"; it must be a number: write 90 without quotes'],
    ['cpuAdjustRatio', 0, 'cpuAdjustRatio is 0; it must be > 0'],
    ['nProcesses', 0, 'nProcesses is 0; it must be >= 1'],
    ['nProcesses', 1000, 'nProcesses is 1000; it must be <= 256'],
    ['ttlSecondsAfterFinished', 60, 'ttlSecondsAfterFinished is 60; it must be >= 3600'],
    ['k8s.volumes.pilot_dir_mount', 'pilot', 'k8s.volumes.pilot_dir_mount is "pilot"; it must match ^/'],
    [
      'k8s.annotations.safe_to_evict',
      'false',
      'k8s.annotations.safe_to_evict is "false"; it must be true or false',
    ],
  ] as const) {
    it(`refuse ${option} ${JSON.stringify(value)}`, () => {
      expect(wrong(K8sSubmitterConfig, { [option]: value })).to.deep.equal([`/${option} ${message}`]);
    });
  }

  it('of the monitor refuse a pending rule with a wrong action or a slip of the pen', () => {
    expect(wrong(K8sMonitorConfig, { pendingRules: [{ reason: 'A', then: 'kill' }] })).to.have.length(1);
    expect(
      wrong(K8sMonitorConfig, { pendingRules: [{ reason: 'A', then: 'fail', grace: 1 }] }),
    ).to.have.length(1);
    expect(wrong(K8sMonitorConfig, { pendingRules: [{ reason: 'A', then: 'fail' }] })).to.deep.equal([]);
  });

  it('need a template', () => {
    const checked = check(K8sSubmitterConfig, {});
    expect(checked.ok ? [] : checked.problems.map(({ message }) => message)).to.deep.equal([
      '"k8s_yaml_file" is missing here',
    ]);
  });
});
