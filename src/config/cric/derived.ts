import type { JsonObject } from '../../util/json.ts';
import { mostOfJob } from '../../worker/worker.ts';
import { cesOf, namespaceIn, specialWords } from './elements.ts';
import { inCatchall, isUnified, paramsOf, slotCores } from './entry.ts';
import { isUnsaid, shown } from './forms.ts';
import { plusAttributes } from './plus-attributes.ts';
import type { QueueFacts } from './queue-facts.ts';
import type { Report } from './report.ts';

export interface Instance {
  /** The id of this instance, where it is known. */
  readonly harvesterId: string | undefined;
}

/** Options that a rule makes of an entry: of the queue itself, of its submitter, and of all three sections of its backend. */
export interface Derived {
  readonly queue?: JsonObject;
  readonly submitter?: JsonObject;
  readonly backend?: JsonObject;
}

/** A rule that needs more than one field, or more than its value. */
export interface Rule {
  /** As the reference page names its fields. */
  readonly fields: string;
  /** The options that it gives. */
  readonly options: readonly string[];
  readonly note: string;
  derive(entry: JsonObject, facts: QueueFacts, report: Report, instance: Instance): Derived;
}

const none: Derived = {};

/** Options without which a queue of a smaller worker would get the whole of the slot. */
const shares: Rule = {
  fields: '`capability` `ucore`, `catchall` `useMaxRam`',
  options: ['unifiedQueue', 'diskByCores', 'useMaxRam', 'wholeSlots'],
  note: 'Workers of a queue that is not unified take the whole of its slot. A unified queue has workers of all resource types: the disk of a smaller one is its part by cores on Kubernetes, the whole on HTCondor. `useMaxRam` gives each its part of all memory.',
  derive(entry, { reaches }) {
    if (!isUnified(entry)) return { submitter: { wholeSlots: true } };
    return {
      submitter: {
        ...(reaches.has('htcondor') && { unifiedQueue: true }),
        ...(reaches.has('kubernetes') && { diskByCores: true }),
        ...(inCatchall(entry, /useMaxRam/) && { useMaxRam: true }),
      },
    };
  },
};

const coresPerNode: Rule = {
  fields: '`corecount`',
  options: ['nCorePerNode'],
  note: 'HTCondor with `useCRIC`. 0 and -1 in the queue file mean it, too. A number above 0 there counts for the placeholders `nCorePerNode` and `nNode`, as in Harvester, and for no worker: the notice `cric-value-differs` names it where it is another one.',
  derive(entry, { reaches, submitter }, report) {
    const cores = reaches.has('htcondor') ? slotCores(entry) : undefined;
    if (cores === undefined) return none;
    const { nCorePerNode: own } = submitter;
    if (typeof own === 'number' && own > 0 && own !== cores)
      report.differs(
        ['corecount'],
        `a worker has its cores by CRIC, where a slot has ${cores}, as in Harvester; nCorePerNode of the queue file, ${own}, counts for the placeholders nCorePerNode and nNode alone: remove it there if a node has the cores of the slot`,
      );
    return { submitter: { nCorePerNode: cores } };
  },
};

const gpu: Rule = {
  fields: '`resource_type` `gpu`',
  options: ['requestGpus'],
  note: 'HTCondor with `useCRIC`: one GPU.',
  derive: ({ resource_type: type }, { reaches }) =>
    reaches.has('htcondor') && type === 'gpu' ? { submitter: { requestGpus: 1 } } : none,
};

const attributes: Rule = {
  fields: '`params`: `jdl.plusattr.NAME`',
  options: ['customSubmitAttributes'],
  note: "HTCondor with `useCRIC`. A queue file's own `customSubmitAttributes` count instead of all of them.",
  derive(entry, { reaches }, report) {
    const found = reaches.has('htcondor') ? plusAttributes(entry, report) : {};
    return Object.keys(found).length === 0 ? none : { submitter: { customSubmitAttributes: found } };
  },
};

const elements: Rule = {
  fields: '`queues[]`',
  options: ['ceList'],
  note: 'HTCondor with `useCRICGridCE`: the entries with a `ce_endpoint` and a `ce_flavour` of `htcondor-ce`, `arc-ce` or `cream-ce`; those with `ce_state` `ACTIVE` get workers. `(queue=NAME)` in `special_par` names the queue of all of them.',
  derive(entry, { gridCes }, report) {
    if (!gridCes) return none;
    const ceList = cesOf(entry, report);
    if (ceList.length === 0)
      report.missing(
        ['queues'],
        'CRIC names no CE of the queue that HTCondor can speak to (queues[] with ce_endpoint and a ce_flavour of htcondor-ce, arc-ce or cream-ce)',
      );
    return { submitter: { ceList } };
  },
};

const special: Rule = {
  fields: '`special_par`: `(xcount=N)`, `(maxWallTime=S)`',
  options: ['nCore', 'maxWalltime'],
  note: 'HTCondor with `useCRICGridCE`.',
  derive(entry, { gridCes }, report) {
    if (!gridCes) return none;
    const { xcount, maxWallTime } = specialWords(entry);
    const submitter: Record<string, unknown> = {};
    for (const [option, word, most] of [
      ['nCore', xcount, mostOfJob.cpus],
      ['maxWalltime', maxWallTime, 999_999_999],
    ] as const) {
      if (word === undefined) continue;
      if (/^[1-9]\d{0,8}$/.test(word) && Number(word) <= most) submitter[option] = Number(word);
      else
        report.leftOut(
          ['special_par'],
          `special_par has ${shown(word)} for ${option}`,
          `an integer from 1 to ${most}`,
        );
    }
    if (isUnified(entry) && typeof submitter.nCore === 'number')
      report.differs(
        ['special_par'],
        `a slot of this unified queue has ${submitter.nCore} cores by xcount of special_par, and each worker its part of them by its resource type; in Harvester each worker has ${submitter.nCore}: remove xcount in CRIC, or write corecount there, if slots have another size`,
      );
    return { submitter };
  },
};

const namespace: Rule = {
  fields: '`queues[0]`: `ce_queue_name`, `params`: `k8s.namespace`',
  options: ['k8s.namespace'],
  note: 'Kubernetes. The first counts before the second. `k8s_namespace` of the queue file counts before both; Harvester does not read it.',
  derive(entry, { reaches, submitter }, report) {
    const found = reaches.has('kubernetes') ? namespaceIn(entry, report) : undefined;
    if (found === undefined) return none;
    const { k8s_namespace: written } = submitter;
    if (typeof written === 'string' && written !== '' && written !== found.name)
      report.differs(
        found.path,
        `CRIC's namespace is ${found.name}, which Harvester takes; k8s_namespace of the queue file is ${written}, and counts`,
      );
    return { backend: { 'k8s.namespace': found.name } };
  },
};

/** What Harvester requests of the cores and the memory of a worker where CRIC does not say it, %. Source: its info_utils_k8s. */
const usualShares = { cpu: 90, memory: 100 };

const requested: Rule = {
  fields:
    '`params`: `k8s.resources.requests.cpu_scheduling_ratio`, `k8s.resources.requests.memory_scheduling_ratio`',
  options: ['cpuAdjustRatio'],
  note: 'Kubernetes. 90 where CRIC does not say it, as in Harvester. `cpuAdjustRatio` and `memoryAdjustRatio` of the queue file count before what CRIC says; Harvester does not read them.',
  derive(entry, { reaches, submitter }, report) {
    if (!reaches.has('kubernetes')) return none;
    // What has a wrong form is left out.
    const shareIn = (resource: keyof typeof usualShares) => {
      const said = paramsOf(entry)[`k8s.resources.requests.${resource}_scheduling_ratio`];
      return typeof said === 'number' && said > 0 ? said : undefined;
    };
    for (const [resource, option] of [
      ['cpu', 'cpuAdjustRatio'],
      ['memory', 'memoryAdjustRatio'],
    ] as const) {
      const others = shareIn(resource) ?? usualShares[resource];
      const { [option]: own } = submitter;
      if (typeof own !== 'number' || own === others) continue;
      report.differs(
        ['params', `k8s.resources.requests.${resource}_scheduling_ratio`],
        `Harvester requests ${shown(others)} % of the ${resource} of a worker here; ${option} of the queue file is ${own}, and counts`,
      );
    }
    return shareIn('cpu') === undefined ? { submitter: { cpuAdjustRatio: usualShares.cpu } } : none;
  },
};

const status: Rule = {
  fields: '`status`, `pilot_manager`, `harvester`',
  options: ['cricStatus'],
  note: '`offline`, `standby` and `maintenance` close the queue, whatever its `queueStatus`; every other status lets it run. So does another `pilot_manager` than `Harvester`, or another `harvester` than our `master.harvester_id`: `elsewhere`.',
  derive(entry, _facts, report, { harvesterId }) {
    const { pilot_manager: manager, harvester, status: said } = entry;
    const isOthers =
      (!isUnsaid(manager) && manager !== 'Harvester') ||
      (harvesterId !== undefined && !isUnsaid(harvester) && harvester !== harvesterId);
    if (isOthers) return { queue: { cricStatus: 'elsewhere' } };
    if (isUnsaid(said)) return none;
    if (typeof said === 'string') return { queue: { cricStatus: said.toLowerCase() } };
    report.leftOut(['status'], `status is ${shown(said)}`, 'a text');
    return none;
  },
};

/** All of them. Source: Harvester's info_utils, info_utils_k8s, simple_worker_maker and htcondor_submitter. */
export const rules: readonly Rule[] = [
  status,
  shares,
  coresPerNode,
  gpu,
  attributes,
  elements,
  special,
  namespace,
  requested,
];
