/** A file that a worker gets. */
export interface PayloadFile {
  /** Path below the payload's directory: relative, with `/` between its parts, none of them `.` or `..`. */
  readonly name: string;
  /** Permission bits, such as 0o755. */
  readonly mode: number;
  /** Base64: JSON has no bytes. */
  readonly content: string;
  /**
   * Only the worker may read it: it gets mode 0600 or less, and never appears in a log, an argument, an environment, an error
   * or a backup.
   */
  readonly secret?: boolean;
}

/**
 * The work that a source gives to a worker. Each part is optional: a template that names none of it runs as it would for any
 * pilot.
 *
 * - `values` fill `${payload.KEY}` in the queue's template. A worker without a value that the template names is rejected for good.
 * - `files` lie in the directory that the worker's environment calls `THRESHER_PAYLOAD_DIR`, each with exactly its bytes and its
 *   mode. The worker writes elsewhere: some backends mount the directory read-only.
 * - `argv` takes the place of the template's command and its arguments. Its first element is a program, looked up in PATH, or
 *   a path; the worker starts in the payload's directory, so `./run.sh` is a file of the payload. `THRESHER_PAYLOAD_DIR` names
 *   the directory also where there are no files.
 * - `env` is added to the template's environment and wins over it.
 * - `submit` has commands for HTCondor's submit description, `request_cpus` or `+MaxRuntime`, which win over those of the template.
 *   Other backends cannot hand them on.
 * - `output: true` lets the worker leave one file, at the path that `THRESHER_OUTPUT` names. The backend brings it back and keeps it
 *   until the source took it. With `false` nothing comes back that the template does not list. On HTCondor alone. `output: 'template'`
 *   says that the source needs what the template brings back: HTCondor keeps the job until that has come, for 10 days at most.
 *
 * - `image: true`: the whole worker runs in the image `values.image`, or on Kubernetes in that of the template. A template of a bare machine refuses
 *   the worker.
 *
 * No shell reads any of it: each value reaches the worker as it is. A secret belongs in a file. `payload-check.ts` has the bounds.
 */
export interface Payload {
  readonly values?: Readonly<Record<string, string>>;
  readonly files?: readonly PayloadFile[];
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly submit?: Readonly<Record<string, string>>;
  readonly output?: boolean | 'template';
  readonly image?: boolean;
}

/** The parts that a worker gets on every backend. */
export const commonParts = ['values', 'files', 'argv', 'env', 'image'] as const;
/** The parts of a payload. A submitter's definition names those that its workers can get. */
export const payloadParts = [...commonParts, 'submit', 'output'] as const;
export type PayloadPart = (typeof payloadParts)[number];

/** The parts that a payload has: an empty one counts as none. */
export function partsOf(payload: Payload): readonly PayloadPart[] {
  return payloadParts.filter((part) => {
    if (part === 'output' || part === 'image') return payload[part] === true;
    // Of a list of 50,000 words no list of their keys is made.
    const value: object = payload[part] ?? {};
    return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0;
  });
}
