/**
 * Widths of the server's columns, characters. A longer text fails the call, and with it the rest of its batch.
 * Source: panda-database, `pg_PANDA_TABLE.sql`, tables HARVESTER_WORKERS, HARVESTER_DIALOGS, HARVESTER_METRICS, HARVESTER_INSTANCES.
 */
export const widths = {
  worker: {
    status: 80,
    batchID: 80,
    nodeID: 80,
    queueName: 80,
    nativeStatus: 80,
    diagMessage: 500,
    stdOut: 250,
    stdErr: 250,
    batchLog: 250,
    jdl: 250,
    computingSite: 128,
    computingElement: 128,
    submissionHost: 128,
    harvesterHost: 128,
    jobType: 52,
    resourceType: 56,
  },
  dialog: { moduleName: 100, identifier: 100, messageLevel: 10, diagMessage: 500 },
  metric: { text: 4000 },
  heartbeat: { sw_version: 50, commit_stamp: 100 },
  harvesterId: 50,
} as const;

/** Shows that a text goes on. */
const more = '...';
const encoder = new TextEncoder();
/** Characters of one byte, without NUL. */
const plain = /^[\u0001-\u007f]*$/;

/**
 * A text that a column of this width takes. Databases count characters or bytes, so it is cut by both: by code points, and by
 * bytes of UTF-8. No character is cut in two, and NUL, which PostgreSQL refuses, becomes a blank.
 */
export function fit(text: string, width: number): string {
  // Nearly all texts are so, and thousands of them come at once.
  if (text.length <= width && plain.test(text)) return text;
  const clean = text.replaceAll(/\u0000/g, ' ').toWellFormed();
  if (clean.length <= width && encoder.encode(clean).length <= width) return clean;
  const room = width - more.length;
  let bytes = 0;
  let kept = '';
  for (const character of clean) {
    bytes += encoder.encode(character).length;
    if (bytes > room) break;
    kept += character;
  }
  return `${kept}${more}`;
}

/** A record whose texts fit; other values, and texts without a width, stay as they are. */
export function fitAll<Fields extends object>(
  fields: Fields,
  columns: Readonly<Record<string, number>>,
): Fields {
  const entries = Object.entries(fields).map(([name, value]: [string, unknown]) => {
    const width = columns[name];
    return [name, typeof value === 'string' && width !== undefined ? fit(value, width) : value];
  });
  return Object.fromEntries(entries) as Fields;
}
