import type { JsonObject } from '../../util/json.ts';
import type { Located, Problem } from '../../util/located.ts';

/** The queues of CRIC (schedconfig), as one file of the cacher has them. */
export interface QueueData {
  readonly file: string;
  /** By the name of the PanDA queue (`panda_resource`). */
  readonly entries: ReadonlyMap<string, JsonObject>;
  /** The line of each entry in the file. */
  readonly lines?: ReadonlyMap<string, number>;
  /** Where the file was fetched. */
  readonly url?: string;
}

/** What one reading of the queue file takes from the cacher's files. */
export interface CachedData {
  readonly queueData?: QueueData;
  /** Harvester's `queues_config_file`: a queue file from elsewhere, below the local one. */
  readonly queueFile?: CachedFile;
  /** What is wrong with the files, and those that were never fetched. */
  readonly problems: readonly Problem[];
  /** Whether the settings name queues of CRIC, and none were ever fetched. */
  readonly lacksQueueData: boolean;
}

/** A JSON file of the cacher. */
export interface CachedFile extends Located {
  /** Where it was fetched. */
  readonly url: string;
}

/** A layer of a queue's options that CRIC says: below what the queue file says itself, above every default. */
export interface CricLayer {
  /** Options as the queue file could have them, by section. */
  readonly values: JsonObject;
  /** What of the entry is wrong, or is not applied. Its pointer is into the entry. */
  readonly problems: readonly Problem[];
}
