import type { JsonObject } from '../../util/json.ts';
import type { CricLayer } from './queue-data.ts';

/** The queue that an entry of CRIC is for, and where the entry stands. */
export interface CricQueue {
  readonly name: string;
  /** Its options as the queue file and its template have them, merged: they name its backend. */
  readonly values: JsonObject;
  /** The file of the entry, for problems. */
  readonly file: string;
  /** The id of this instance: a queue that CRIC gives to another one is closed. Absent: the entry's id is not looked at. */
  readonly harvesterId?: string;
}

/** The options that an entry of CRIC stands for. Pure. */
export function cricLayer(entry: JsonObject, queue: CricQueue): CricLayer {
  void entry;
  void queue;
  return { values: {}, problems: [] };
}
