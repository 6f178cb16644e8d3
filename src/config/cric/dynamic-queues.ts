import type { JsonObject } from '../../util/json.ts';
import type { QueueData } from './queue-data.ts';

/** A queue that CRIC gives to this instance. */
export interface DynamicQueue {
  readonly name: string;
  /** The template that it is to take; undefined where CRIC says none and the settings have no default. */
  readonly template: string | undefined;
  /** Why that one, for a message. */
  readonly why: string;
}

/** Source: Harvester's `PandaQueuesDict.get_all_queue_names`. */
export function isOurs(entry: JsonObject, harvesterId: string): boolean {
  return entry['pilot_manager'] === 'Harvester' && entry['harvester'] === harvesterId;
}

/** A queue whose demand comes from the server, for all resource types. Source: Harvester's `is_ups_queue`. */
export function isUps(entry: JsonObject): boolean {
  return entry['capability'] === 'ucore' && entry['workflow'] === 'pull_ups';
}

export function dynamicQueues(
  { entries }: QueueData,
  harvesterId: string,
  defaultTemplate: string | undefined,
): DynamicQueue[] {
  return [...entries].flatMap(([name, entry]) =>
    isOurs(entry, harvesterId) ? [{ name, ...templateOf(entry, defaultTemplate) }] : [],
  );
}

/** Source: Harvester's queue_config_mapper. A unified queue uses the templates of production. */
function templateOf(entry: JsonObject, defaultTemplate: string | undefined): Omit<DynamicQueue, 'name'> {
  const { harvester_template: named, type, workflow } = entry;
  if (isText(named)) return { template: named, why: 'harvester_template of CRIC' };
  if (isText(type) && isText(workflow))
    return {
      template: `${type === 'unified' ? 'production' : type}.${workflow}`,
      why: `type "${type}" and workflow "${workflow}" of CRIC`,
    };
  return {
    template: defaultTemplate,
    why: 'qconf.defaultTemplateQueueName, since CRIC has no type or no workflow',
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
