import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { entriesOf } from '../../../src/agents/submission/entries.ts';
import { requirementsOf } from '../../../src/agents/submission/worker-maker.ts';
import type { ResourceType } from '../../../src/clients/panda/api.ts';
import type { QueueConfig } from '../../../src/config/queues/queues.ts';
import type { HTCondorSubmitterConfig } from '../../../src/plugins/htcondor/schema.ts';
import { sizesOf } from '../../../src/plugins/htcondor/template/placeholders.ts';
import { shapeOf } from '../../../src/sources/panda/shape.ts';
import { isObject, type JsonObject } from '../../../src/util/json.ts';
import type { Requirements } from '../../../src/worker/worker.ts';
import { judgeWithCric } from '../../support/cric-site.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

type Sizes = Readonly<Record<string, number | string | null>>;
interface Case {
  readonly queue: string;
  readonly entry: JsonObject;
  /** By resource type. `ANY`: of a queue without orders. `pilotDisk` is the disk on Kubernetes, MiB. */
  readonly workers: Readonly<Record<string, Sizes>>;
  /** Values of placeholders, by resource type, for queues with these `options`. */
  readonly submitted: readonly {
    readonly options: readonly number[];
    readonly workers: Readonly<Record<string, readonly number[]>>;
  }[];
}
interface Recorded {
  /** Names of the options that count, of a queue itself and of its submitter. */
  readonly read: Readonly<Record<'queue' | 'submitter', readonly string[]>>;
  readonly kinds: readonly string[];
  readonly placeholders: readonly string[];
  readonly options: readonly JsonObject[];
  readonly cases: readonly Case[];
}

const root = resolve(import.meta.dirname, '../../..');
const fixtures = join(root, 'test/fixtures');
const read = (path: string) => JSON.parse(readFileSync(join(fixtures, path), 'utf8')) as unknown;
const recorded = read('harvester/worker-sizes.json') as Recorded;
const types = read('cric/resource_types.json') as readonly ResourceType[];

/** One size of a worker, of Harvester and of thresher. */
interface Row {
  readonly entry: JsonObject;
  readonly options: JsonObject;
  /** The resource type, or `ANY`. */
  readonly kind: string;
  readonly size: string;
  readonly theirs: number;
  readonly ours: number;
  /** Harvester's sizes of the queue's workers, by resource type. */
  readonly workers: Case['workers'];
}

/** Sizes that differ on purpose. */
interface Difference {
  /** A sentence of docs/from-harvester.md. */
  readonly said: string;
  readonly has: (row: Row) => boolean;
  /** thresher's size. Undefined: it follows from others. */
  readonly ours?: (row: Row) => number | undefined;
}

const isUnified = ({ entry }: Row) => entry.capability === 'ucore';
const isCondor = ({ options }: Row) => options.backend === 'HTCondorSubmitter';
/** CRIC names the CEs of the queue. Harvester reads `special_par` for no other. */
const hasGridCes = ({ useCRICGridCE, useAtlasGridCE }: JsonObject) =>
  Boolean(useCRICGridCE ?? useAtlasGridCE);
const asksForCric = ({ useCRIC, useAtlasAGIS, ...others }: JsonObject) =>
  Boolean(useCRIC ?? useAtlasAGIS) || hasGridCes(others);
const isListed = (kind: string) => types.some(({ resource_name: name }) => name === kind);
/** Fields of CRIC that a size comes from. */
const fieldOf: Readonly<Record<string, string>> = {
  minRamCount: 'maxrss',
  maxDiskCount: 'maxwdir',
  requestDisk: 'maxwdir',
  maxWalltime: 'maxtime',
  requestWalltime: 'maxtime',
};
/** Harvester's size of a worker of another resource type. */
const likeA =
  (other: (row: Row) => string) =>
  (row: Row): number | undefined => {
    const size = row.workers[other(row)]?.[row.size];
    return typeof size === 'number' ? size : undefined;
  };
const wrongNode = (row: Row) => ['nCorePerNode', 'nNode'].includes(row.size) && isCondor(row);

const differences: readonly Difference[] = [
  {
    said: 'thresher does not ask for a size that the entry lacks: Harvester asks for 1 MB of memory and of disk, and for 1 s.',
    has: ({ entry, size, theirs }) => fieldOf[size] !== undefined && !entry[fieldOf[size]] && theirs > 0,
    ours: ({ size }) => (size === 'requestDisk' ? 1 : 0),
  },
  {
    said: 'Where CRIC does not say the cores, the cores of the queue file count: Harvester takes one core.',
    has: ({ entry: { corecount }, options: { nCore, nCorePerNode } }) =>
      !corecount && [nCore, nCorePerNode].some((cores) => Number(cores) > 0),
    ours: (row) => {
      const { nCore, nCorePerNode } = row.options;
      if (row.size !== 'nCore') return undefined;
      const isOne = isUnified(row) && row.kind.startsWith('SCORE');
      return isOne ? 1 : [nCore, nCorePerNode].map(Number).find((cores) => cores > 0);
    },
  },
  {
    said: 'Without orders thresher gives each worker of a unified queue the whole slot, since its pilot may fetch a job of any size: Harvester gives the worker one core and the memory of `SCORE`, or with `useMaxRam` the whole slot, too.',
    has: (row) => row.kind === 'ANY' && isUnified(row),
    ours: likeA(() => 'MCORE_HIMEM'),
  },
  {
    said: 'thresher reads the cores of a resource type that the server does not list from its name: one core for `SCORE...`, else the whole slot, with as much memory as the site has for these cores. On a unified queue Harvester takes such a type for `SCORE`, and with `useMaxRam` gives it the whole slot.',
    has: (row) => row.kind !== 'ANY' && !isListed(row.kind) && isUnified(row),
    ours: likeA(({ kind }) => (kind.startsWith('SCORE') ? 'SCORE_HIMEM' : 'MCORE_HIMEM')),
  },
  {
    said: 'On a unified queue without `maxrss` thresher asks for the memory of the resource type: Harvester asks for none.',
    has: (row) =>
      isUnified(row) && row.entry.maxrss === null && ['minRamCount', 'requestRam'].includes(row.size),
    ours: ({ size, kind }) => (size === 'minRamCount' ? { SCORE: 2000, MCORE: 16_000 }[kind] : undefined),
  },
  {
    said: 'On a unified queue `(xcount=N)` of `special_par` is the slot, and each worker takes its part of the slot: Harvester gives N cores to each worker, and the memory that it has by `corecount`.',
    has: (row) => isUnified(row) && hasGridCes(row.options) && row.entry.special_par !== undefined,
  },
  {
    said: 'Without `corecount` thresher requests the whole `maxwdir` for a pilot on Kubernetes: Harvester requests no disk.',
    has: ({ entry, size }) => size === 'pilotDisk' && !entry.corecount,
    ours: ({ entry }) => Number(entry.maxwdir ?? 0),
  },
  {
    said: 'An `nCorePerNode` of -1 leaves the node to CRIC, as 0 does: Harvester writes -1 and a negative number of nodes into the submit description.',
    has: (row) => row.options.nCorePerNode === -1 && wrongNode(row),
    ours: ({ entry, size }) => (size === 'nCorePerNode' ? Number(entry.corecount) || 1 : 1),
  },
  {
    said: 'On an HTCondor queue that does not ask for CRIC (`useCRIC`) a node has the cores of the worker: Harvester takes one core for a node.',
    has: (row) => wrongNode(row) && !asksForCric(row.options) && row.options.nCorePerNode === undefined,
    ours: ({ size, ours }) => (size === 'nNode' ? 1 : ours),
  },
];

const ce = { ce_endpoint: 'ce.site:9619', ce_flavour: 'htcondor-ce', ce_state: 'ACTIVE' };

function backendOf({ backend, runMode, ...submitter }: JsonObject): JsonObject {
  const isCondor = backend === 'HTCondorSubmitter';
  const [prefix, module] = isCondor ? ['HTCondor', 'thresher/htcondor'] : ['K8s', 'thresher/kubernetes'];
  const place = isCondor ? {} : { k8s_config_file: 'kubeconfig' };
  const files = isCondor ? { templateFile: 'pilot.sdf' } : { k8s_yaml_file: 'job.yaml' };
  return {
    mapType: 'NoJob',
    maxWorkers: 10,
    ...(runMode !== undefined && { runMode }),
    submitter: { name: `${prefix}Submitter`, module, ...place, ...files, ...submitter },
    monitor: { name: `${prefix}Monitor`, module, ...place },
    sweeper: { name: `${prefix}Sweeper`, module, ...place },
  };
}

/** The options that count of each queue of a file that runs on HTCondor or Kubernetes. */
function optionsOf(path: string): JsonObject[] {
  const queues = read(path) as Readonly<Record<string, JsonObject>>;
  const sectionOf = (queue: JsonObject, name: string) => (isObject(queue[name]) ? queue[name] : {});
  return Object.values(queues).flatMap((own) => {
    const template = queues[String(own.templateQueueName)] ?? {};
    const queue = { ...template, ...own };
    const submitter = { ...sectionOf(template, 'submitter'), ...sectionOf(own, 'submitter') };
    const options = { ...queue, ...sectionOf(queue, 'common'), ...submitter };
    if (!['HTCondorSubmitter', 'K8sSubmitter'].includes(String(options.name))) return [];
    const names = [...recorded.read.queue, ...recorded.read.submitter].filter((name) => name in options);
    return [{ backend: options.name, ...Object.fromEntries(names.map((name) => [name, options[name]])) }];
  });
}

/** Needs of a worker that the server orders, or of a queue without orders. */
function needsOf(config: QueueConfig, kind: string): Requirements {
  const slot = requirementsOf(config);
  const { wholeSlots } = config.worker;
  const site = { coreCount: slot.nCore, maxRss: slot.minRamCount, wholeSlots };
  const requirements = kind === 'ANY' ? {} : shapeOf(kind, types, site);
  const request = { origin: { uid: 'order', index: 0 }, requirements };
  const [entry] = entriesOf('panda', [request], slot, config.worker);
  if (entry === undefined) throw new Error('there is no entry of the request');
  return entry.requirements;
}

const numberOf = (size: Sizes[string] | undefined) => (typeof size === 'number' ? size : 0);

describe('the sizes of workers by CRIC, beside those of Harvester', () => {
  const rows: Row[] = [];

  before(async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'pilot.sdf'), 'executable = /bin/true\nqueue 1\n');
    copyFileSync(join(fixtures, 'kubernetes/job_cern.yaml'), join(directory, 'job.yaml'));
    const kubeconfig = {
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: { token: 't' } }],
    };
    writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(kubeconfig));
    const queues = Object.fromEntries(recorded.options.map((one, at) => [`Q${at}`, backendOf(one)]));
    for (const { entry, workers, submitted } of recorded.cases) {
      const entries = Object.fromEntries(
        Object.keys(queues).map((name) => [name, { ...entry, queues: [ce] }]),
      );
      const verdicts = await judgeWithCric(directory, queues, entries);
      for (const [at, options] of recorded.options.entries()) {
        const verdict = verdicts[`Q${at}`];
        if (verdict?.config === undefined) throw new Error(JSON.stringify(verdict?.problems));
        const { config } = verdict;
        for (const [kind, theirs] of Object.entries(workers)) {
          const requirements = needsOf(config, kind);
          const add = (size: string, said: Sizes[string] | undefined, ours: number) =>
            rows.push({ entry, options, kind, size, theirs: numberOf(said), ours, workers });
          // Harvester applies `special_par` to the submit description, thresher to the worker.
          const isSpecial = entry.special_par !== undefined && hasGridCes(options);
          if (!isSpecial)
            for (const size of ['nCore', 'minRamCount', 'maxWalltime'] as const)
              add(size, theirs[size], requirements[size]);
          if (options.backend === 'K8sSubmitter') {
            add('pilotDisk', theirs.pilotDisk, requirements.maxDiskCount);
            continue;
          }
          add('maxDiskCount', theirs.maxDiskCount, requirements.maxDiskCount);
          // A worker that differs already has another description, too.
          if (entry.capability === 'ucore' && !isListed(kind)) continue;
          const submitter = config.plugins.submitter?.config as HTCondorSubmitterConfig;
          const values = sizesOf(workerOf(1, { requirements }), submitter);
          const form = submitted.find(({ options: those }) => those.includes(at));
          for (const [index, name] of recorded.placeholders.entries())
            add(name, form?.workers[kind]?.[index], values[name as keyof typeof values] as number);
        }
      }
    }
  });

  it('are compared for the options of every queue file of the fixtures', () => {
    const paths = globSync('{sites,harvester}/*panda_queueconfig*.json', { cwd: fixtures });
    expect(paths).to.not.have.length(0);
    for (const options of paths.flatMap(optionsOf)) expect(recorded.options).to.deep.include(options);
  });

  const shown = ({ entry, options, kind, size, theirs, ours }: Row) =>
    `${size} of ${kind}: ${ours}, Harvester's is ${theirs}; ${JSON.stringify({ entry, options })}`;

  it('are the same, or a sentence of docs/from-harvester.md says why not', () => {
    const wrong = rows.filter((row) => row.ours !== row.theirs && !differences.some(({ has }) => has(row)));
    expect(wrong.slice(0, 20).map(shown), `${wrong.length} of ${rows.length}`).to.deep.equal([]);
  });

  for (const { said, has, ours } of differences)
    it(`differ as docs/from-harvester.md says: ${said}`, () => {
      const own = rows.filter(
        (row) => has(row) && differences.filter((other) => other.has(row)).length === 1,
      );
      expect(own.filter((row) => row.ours !== row.theirs)).to.not.have.length(0);
      const others = own.filter((row) => (ours?.(row) ?? row.ours) !== row.ours);
      expect(others.slice(0, 20).map(shown)).to.deep.equal([]);
      expect(readFileSync(join(root, 'docs/from-harvester.md'), 'utf8').replaceAll(/\s+/g, ' ')).to.include(
        said,
      );
    });
});
