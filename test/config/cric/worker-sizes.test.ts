import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { partOfSlot } from '../../../src/agents/submission/entries.ts';
import { requirementsOf } from '../../../src/agents/submission/worker-maker.ts';
import type { ResourceType } from '../../../src/clients/panda/api.ts';
import type { QueueConfig } from '../../../src/config/queues/queues.ts';
import { shapeOf } from '../../../src/sources/panda/shape.ts';
import type { JsonObject } from '../../../src/util/json.ts';
import { judgeWithCric } from '../../support/cric-site.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

interface Sizes {
  readonly nCore: number;
  /** MB; 1 or null where CRIC does not say it. */
  readonly minRamCount: number;
  readonly maxDiskCount: number | null;
  readonly maxWalltime: number | null;
}
interface Case {
  readonly queue: string;
  readonly entry: JsonObject;
  /** By resource type; `ANY`: of a queue without orders. */
  readonly workers: Readonly<Record<string, Sizes>>;
}

const fixtures = resolve(import.meta.dirname, '../../fixtures');
const read = (path: string) => JSON.parse(readFileSync(join(fixtures, path), 'utf8')) as unknown;
const { cases } = read('harvester/worker-sizes.json') as { cases: readonly Case[] };
const types = read('cric/resource_types.json') as readonly ResourceType[];

/** What Harvester has and thresher does not, on purpose. */
const differences: Readonly<Record<string, (kind: string) => Partial<Sizes>>> = {
  // The type's own memory, and not none.
  'unified without memory': (kind) => ({ minRamCount: { SCORE: 2000, MCORE: 16_000 }[kind] ?? 0 }),
};

describe('the size of a worker by CRIC, beside that of Harvester', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
    writeFileSync(join(directory, 'pilot.sdf'), 'executable = /bin/true\nqueue 1\n');
  });

  async function configOf(entry: JsonObject, submitter: JsonObject = {}): Promise<QueueConfig> {
    const Q = {
      mapType: 'NoJob',
      maxWorkers: 10,
      submitter: {
        name: 'HTCondorSubmitter',
        module: 'thresher/htcondor',
        templateFile: 'pilot.sdf',
        useCRIC: true,
        ...submitter,
      },
      monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
      sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
    };
    const verdict = (await judgeWithCric(directory, { Q }, { Q: entry })).Q;
    if (verdict?.config === undefined) throw new Error(JSON.stringify(verdict?.problems));
    return verdict.config;
  }

  function sizesOf(config: QueueConfig, kind: string): Sizes {
    const slot = requirementsOf(config);
    const { wholeSlots } = config.worker;
    const site = { coreCount: slot.nCore, maxRss: slot.minRamCount, wholeSlots };
    const needs = kind === 'ANY' ? slot : { ...slot, ...shapeOf(kind, types, site) };
    const { nCore, minRamCount, maxDiskCount, maxWalltime } = partOfSlot(needs, slot, config.worker);
    return { nCore, minRamCount, maxDiskCount, maxWalltime };
  }

  for (const { queue, entry, workers } of cases)
    it(`is the same on a queue: ${queue}`, async () => {
      const isUnified = entry.capability === 'ucore';
      const own = differences[queue] ?? (() => ({}));
      for (const submitter of [{}, { nCore: -1, nCorePerNode: 1 }, { nCore: 2, nCorePerNode: 2 }]) {
        if (!entry.corecount && 'nCore' in submitter) continue;
        const config = await configOf(entry, submitter);
        for (const [kind, { nCore, minRamCount, ...rest }] of Object.entries(workers)) {
          // Harvester gives a unified queue without orders workers of one core, thresher those of a whole slot.
          if (kind === 'ANY' && isUnified) continue;
          const is = sizesOf(config, kind);
          const said = (name: string, size: number | null) => (entry[name] ? (size ?? 0) : 0);
          expect(is, `${kind} ${JSON.stringify(submitter)}`).to.deep.equal({
            nCore,
            minRamCount: said('maxrss', minRamCount),
            maxDiskCount: said('maxwdir', rest.maxDiskCount),
            maxWalltime: said('maxtime', rest.maxWalltime),
            ...own(kind),
          });
        }
      }
    });
});
