import { expect } from 'chai';
import type { TSchema } from 'typebox';
import { knownOptions } from '../../../src/config/harvester/plugin-options.ts';
import {
  HTCondorMonitorConfig,
  HTCondorSubmitterConfig,
  HTCondorSweeperConfig,
} from '../../../src/plugins/htcondor/schema.ts';
import { check } from '../../../src/util/schema.ts';

const keysOf = (schema: unknown) => Object.keys((schema as { properties: object }).properties);
const wrong = (schema: TSchema, value: object) => {
  const checked = check(schema, value);
  return checked.ok ? [] : checked.problems.map(({ pointer, message }) => `${pointer} ${message}`);
};
const schemas = {
  HTCondorSubmitter: HTCondorSubmitterConfig,
  HTCondorMonitor: HTCondorMonitorConfig,
  HTCondorSweeper: HTCondorSweeperConfig,
};

describe('the options of the HTCondor plugins', () => {
  it("include what Harvester's plugins of today read", () => {
    const general = knownOptions('K8sSweeper') ?? [];
    // Read of every submitter's section by other parts than the plugin.
    const everySubmitter = [
      'noPilotsWhenNoActiveJobs',
      'nCore',
      'minRamCount',
      'maxDiskCount',
      'maxWalltime',
    ];
    for (const [plugin, schema] of Object.entries(schemas)) {
      const missing = (knownOptions(plugin) ?? []).filter(
        (name) => ![...keysOf(schema), ...general, ...everySubmitter].includes(name),
      );
      expect(missing, plugin).to.deep.equal([]);
    }
  });

  it('each say what they mean', () => {
    for (const schema of Object.values(schemas)) {
      const { properties } = schema as unknown as { properties: Record<string, { description?: string }> };
      const silent = Object.entries(properties).filter(
        ([, { description = '' }]) => !/\.$/.test(description),
      );
      expect(silent.map(([key]) => key)).to.deep.equal([]);
    }
  });

  it('may all be left out', () => {
    for (const schema of Object.values(schemas)) expect(wrong(schema, {})).to.deep.equal([]);
  });

  for (const [option, value, message] of [
    ['useSpool', 'yes', 'useSpool is "yes"; it must be true or false'],
    ['condorSchedd', [], 'condorSchedd is []; it must be one of a string, a list [ ... ]'],
    ['minBulkToRandomizedSchedd', 0, 'minBulkToRandomizedSchedd is 0; it must be >= 1'],
    ['submitMode', 'pull', 'submitMode is "pull"; it must be one of "PULL", "PUSH"'],
    ['requestGpus', '1', 'requestGpus is "1"; it must be an integer: write 1 without quotes'],
    ['ce_fairshare_percent', 120, 'ce_fairshare_percent is 120; it must be <= 100'],
  ] as const) {
    it(`refuse ${option} ${JSON.stringify(value)}`, () => {
      expect(wrong(HTCondorSubmitterConfig, { [option]: value })).to.deep.equal([`/${option} ${message}`]);
    });
  }

  for (const [value, message] of [
    [-1, 'queueTimeLimit is -1; it must be >= 0'],
    ['3600', 'queueTimeLimit is "3600"; it must be an integer: write 3600 without quotes'],
  ] as const)
    it(`refuse queueTimeLimit ${JSON.stringify(value)} of a monitor`, () => {
      expect(wrong(HTCondorMonitorConfig, { queueTimeLimit: value })).to.deep.equal([
        `/queueTimeLimit ${message}`,
      ]);
    });

  it('refuse an attribute whose name is none', () => {
    expect(wrong(HTCondorSubmitterConfig, { customSubmitAttributes: { 'a b': '1' } })).to.not.deep.equal([]);
  });
});
