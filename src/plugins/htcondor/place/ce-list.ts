import { ceEndpoint } from '../../../clients/htcondor/ce-endpoint.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { ComputingElement, HTCondorSubmitterConfig } from '../schema.ts';
import type { ChosenCe } from '../template/placeholders.ts';

export interface CeList {
  readonly ces: readonly ChosenCe[];
  readonly problems: readonly DefinitionProblem[];
}

type CeOptions = Pick<
  HTCondorSubmitterConfig,
  | 'ceList'
  | 'ceEndpoint'
  | 'ceHostname'
  | 'ceQueueName'
  | 'ceARCGridType'
  | 'useCRICGridCE'
  | 'useAtlasGridCE'
>;

/** Whether CRIC names the CEs. The newer name wins. Source: Harvester's htcondor_submitter. */
export function asksForCric({
  useCRICGridCE,
  useAtlasGridCE,
}: Pick<CeOptions, 'useCRICGridCE' | 'useAtlasGridCE'>): boolean {
  return Boolean(useCRICGridCE ?? useAtlasGridCE);
}

/** The CEs of a queue; none where it submits to a pool. Pure. */
export function cesOf(config: CeOptions): CeList {
  const { ceList, ceEndpoint, ceHostname } = config;
  const problems: DefinitionProblem[] = [];
  if (ceList.length > 0) {
    if (ceEndpoint !== undefined || ceHostname !== undefined) {
      const pointer = ceEndpoint === undefined ? '/ceHostname' : '/ceEndpoint';
      const message = asksForCric(config)
        ? `${pointer.slice(1)} has no effect beside the CEs of CRIC, as in Harvester: remove it, or set useCRICGridCE to false`
        : `${pointer.slice(1)} has no effect beside ceList: remove one of them`;
      problems.push({ pointer, severity: 'warning', code: 'template-risky', message });
    }
    const active = ceList.filter(({ ce_state }) => ce_state.toUpperCase() === 'ACTIVE');
    if (active.length === 0) {
      const message = 'none of the ceList has ce_state ACTIVE, so nothing can be submitted';
      problems.push({ pointer: '/ceList', code: 'ce-list-missing', message });
    }
    return { ces: withoutDoubles(active.map((one) => fromCric(one, config))), problems };
  }
  const hosts = listOf(ceHostname);
  const endpoints = listOf(ceEndpoint);
  if (Array.isArray(ceEndpoint) && endpoints.length !== hosts.length && hosts.length > 0) {
    const message = `ceEndpoint has ${endpoints.length} entries and ceHostname ${hosts.length}; there must be one for each`;
    return { ces: [], problems: [{ pointer: '/ceEndpoint', code: 'wrong-type', message }] };
  }
  const length = Math.max(hosts.length, endpoints.length);
  const ces = Array.from({ length }, (_, index): ChosenCe => {
    // Taken as they are written: here Harvester does not look into them either.
    const endpoint = (Array.isArray(ceEndpoint) ? endpoints[index] : endpoints[0]) ?? '';
    return {
      endpoint,
      hostname: hosts[index] ?? hosts[0] ?? hostOf(endpoint),
      flavour: '',
      jobmanager: '',
      version: '',
      queueName: config.ceQueueName ?? '',
      gridType: config.ceARCGridType,
    };
  });
  return { ces, problems };
}

/** The name of a CE in marks, counts and rows: a queue may name its CEs by `ceHostname` alone. */
export function ceName({ endpoint, hostname }: Pick<ChosenCe, 'endpoint' | 'hostname'>): string {
  return endpoint || hostname;
}

/** An entry as Harvester reads it from CRIC: no protocol, a port, and for ARC the way it is spoken to. */
function fromCric(element: ComputingElement, { ceARCGridType, ceQueueName }: CeOptions): ChosenCe {
  const { ce_flavour: flavour, ce_jobmanager: jobmanager, ce_version: version } = element;
  const gridType = flavour === 'arc-ce' ? ceARCGridType : '';
  const { endpoint, host } = ceEndpoint(element.ce_endpoint, flavour, gridType === 'nordugrid');
  return {
    endpoint,
    hostname: element.ce_hostname ?? host,
    flavour,
    jobmanager,
    version,
    gridType,
    queueName: element.ce_queue_name || (ceQueueName ?? ''),
  };
}

/** The last of several entries with one endpoint counts, but for an entry whose queue is only `default`. */
function withoutDoubles(ces: readonly ChosenCe[]): ChosenCe[] {
  const known = new Map<string, ChosenCe>();
  for (const ce of ces) {
    if (known.has(ce.endpoint) && ce.queueName.toLowerCase() === 'default') continue;
    known.set(ce.endpoint, ce);
  }
  return [...known.values()];
}

function hostOf(endpoint: string): string {
  return endpoint.replace(/^\w+:\/\//, '').replace(/[:/].*/s, '');
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}
