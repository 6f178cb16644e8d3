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

/** CRIC's file of the cacher, as one reading of the queue file takes it. */
export interface CachedQueueData {
  /** Absent where the settings name none, and, with a problem, where it never came or is damaged. */
  readonly queueData?: QueueData;
  readonly problems: readonly Problem[];
}

/** Harvester's `queues_config_file`: a queue file from elsewhere, below the local one. */
export interface CachedQueueFile {
  /** Absent as CRIC's is. A damaged one has its problems itself. */
  readonly queueFile?: CachedFile;
  readonly problems: readonly Problem[];
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
  /** Options that count before those of the queue file, as in Harvester. */
  readonly above: JsonObject;
  /** Values of the entry that are wrong or are not applied. Each pointer is into the entry. */
  readonly problems: readonly Problem[];
}
