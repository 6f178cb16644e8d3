import { readSubmitCommands } from '../../../clients/htcondor/submit-commands.ts';
import type { Request } from '../../../plugins/contracts/index.ts';
import { payloadBounds, payloadProblems } from '../../../worker/payload-check.ts';
import type { Payload, PayloadFile } from '../../../worker/payload.ts';
import type { HtcJob, HtcJobSpec, Runtime, SecretData, SpecProblem } from '../resource.ts';
import { jobScripts } from './scripts.ts';
import { sizesOf } from './sizes.ts';
import { type EventKey, tokenOf } from './token.ts';

/** Facts beside the resource that its jobs are made of. */
export interface PlanContext {
  /** The Secrets of the resource's namespace by name. One that is not there is absent. */
  readonly secrets: ReadonlyMap<string, SecretData>;
  /** Directories that an image gets where a machine has them, such as /cvmfs. */
  readonly binds: readonly string[];
  /** How an image is run where the resource does not say. */
  readonly runtime: Runtime;
  /** Absent: jobs send no events. */
  readonly events?: { readonly url: string; readonly key: EventKey };
}

/** One attempt at a job. */
export interface JobNumber {
  /** Of the origin. */
  readonly index: number;
  /** Argument of the script, from 0. */
  readonly number: number;
}

/** How the jobs of a resource are run, or why none can be. */
export type JobPlan =
  | { readonly ok: true; requestFor(job: JobNumber): Pick<Request, 'payload' | 'requirements'> }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** How a job runs on its machine: parts that all jobs of a resource share are made once. */
export function planJobs(job: HtcJob, context: PlanContext): JobPlan {
  const { metadata, spec } = job;
  const image = imageOf(spec.script.image, spec.runtime ?? context.runtime);
  const command = commandOf(spec.script.command);
  const sizes = sizesOf(spec.requests);
  const options = readSubmitCommands(spec.htcopts ?? '');
  const secrets = secretFiles(job, context.secrets);
  const found = [
    ...imageProblems(spec.script.image),
    ...(command.length > 0 ? [] : [problem('/spec/script/command', 'the command is empty; write a program')]),
    ...variableProblems(spec),
    ...sizes.problems,
    ...options.problems.map(({ message }) => problem('/spec/htcopts', message)),
    ...secrets.problems,
  ];
  const { uid, name } = metadata;
  const { events } = context;
  const scripts = jobScripts();
  const variables = (spec.env ?? []).map((one) => `${one.name}=${one.value}`);
  const shared: readonly PayloadFile[] = [
    { name: 'run.sh', mode: 0o755, content: scripts.run },
    { name: 'script.sh', mode: 0o755, content: Buffer.from(spec.script.source).toString('base64') },
    ...(events === undefined ? [] : [{ name: 'send-event.sh', mode: 0o755, content: scripts.sendEvent }]),
    ...secrets.files,
  ];
  const submit = { ...sizes.commands, ...options.commands };
  const runtime = spec.runtime ?? context.runtime;
  const payloadFor = ({ index, number }: JobNumber): Payload => ({
    // For templates that name it: HTCondor's container universe runs the whole worker in it.
    values: { image: spec.script.image },
    files: [
      ...shared,
      ...(events === undefined ? [] : [eventFile(job, index, tokenOf(events.key, { uid, index }))]),
    ],
    argv: [
      ...['./run.sh', runtime, image, String(number), String(variables.length)],
      ...[String(context.binds.length), ...context.binds, ...command],
    ],
    env: {
      JOB_NAME: name,
      ...Object.fromEntries(variables.map((variable, at) => [`HTCJOB_VARIABLE_${at}`, variable])),
      ...(events !== undefined && { HTCJOB_EVENTS_URL: events.url, HTCJOB_EVENT_ID: `${uid}.${index}` }),
    },
    ...(Object.keys(submit).length > 0 && { submit }),
  });
  if (found.length === 0) found.push(...payloadMistakes(payloadFor({ index: 0, number: 0 })));
  if (found.length > 0) return { ok: false, problems: found };
  return {
    ok: true,
    requestFor: (one) => ({ payload: payloadFor(one), requirements: sizes.requirements }),
  };
}

/** The beginning of the event's JSON, to which the job adds its exit status. */
function eventFile({ metadata }: HtcJob, index: number, token: string): PayloadFile {
  const { name, namespace, uid } = metadata;
  const text = JSON.stringify({ name, namespace, uid, index, token }).slice(0, -1);
  return { name: 'event', mode: 0o600, secret: true, content: Buffer.from(text).toString('base64') };
}

/** A list is a program with its arguments, and a text is split at blanks. */
function commandOf(command: HtcJobSpec['script']['command']): readonly string[] {
  return typeof command === 'string' ? command.split(/\s+/).filter((word) => word !== '') : command;
}

/** The image as apptainer names it: a path, an address, or the name of an image in a registry of Docker. */
function imageOf(image: string, runtime: Runtime): string {
  if (runtime === 'none' || runtime === 'container') return image;
  return image.includes('://') || /^\.{0,2}\//.test(image) ? image : `docker://${image}`;
}

function imageProblems(image: string): SpecProblem[] {
  if (/^[A-Za-z0-9_./][^\s\u0000-\u001f\u007f]*$/.test(image)) return [];
  const message = `the image is ${JSON.stringify(image)}; it must be a name, an address or a path without blanks, which begins with a letter, a digit, "_", "." or "/"`;
  return [problem('/spec/script/image', message)];
}

/** Those that would change how the image is run. */
const ownVariables = /^(APPTAINER|SINGULARITY|THRESHER_|HTCJOB_|_CONDOR_)|^(JOB_NAME|TEMP_DIR|_)$/i;

function variableProblems({ env = [] }: HtcJobSpec): SpecProblem[] {
  const bytes = env.reduce((sum, { name, value }) => sum + Buffer.byteLength(name + value), 0);
  if (bytes > payloadBounds.wordBytes)
    return [
      problem('/spec/env', `the variables have ${bytes} bytes; ${payloadBounds.wordBytes} are allowed`),
    ];
  const first = new Set<string>();
  return env.flatMap(({ name, value }, index) => {
    const at = `/spec/env/${index}`;
    const shown = JSON.stringify(name);
    if (!/^[A-Za-z_]\w*$/.test(name))
      return [
        problem(
          at,
          `${shown} is no name of a variable; it must be letters, digits and "_", and begin with no digit`,
        ),
      ];
    if (ownVariables.test(name))
      return [problem(at, `thresher or the runtime sets ${shown} itself; choose another name`)];
    if (first.has(name)) return [problem(at, `${shown} is there twice; keep one of them`)];
    first.add(name);
    return value.includes('\0') ? [problem(at, `the value of ${shown} has a NUL character`)] : [];
  });
}

function secretFiles(
  { metadata, spec }: HtcJob,
  known: PlanContext['secrets'],
): { readonly files: readonly PayloadFile[]; readonly problems: readonly SpecProblem[] } {
  const files: PayloadFile[] = [];
  const problems: SpecProblem[] = [];
  for (const [index, { name, keys, optional = false }] of (spec.secrets ?? []).entries()) {
    const at = `/spec/secrets/${index}`;
    const data = known.get(name);
    if (data === undefined) {
      const message = `there is no Secret ${JSON.stringify(name)} in the namespace ${metadata.namespace}: create it, or set "optional"`;
      if (!optional) problems.push(problem(at, message));
      continue;
    }
    for (const key of keys ?? Object.keys(data)) {
      const content = Object.hasOwn(data, key) ? data[key] : undefined;
      const message = `the Secret ${JSON.stringify(name)} has no key ${JSON.stringify(key)}; it has ${Object.keys(data).join(', ')}`;
      if (content !== undefined)
        files.push({ name: `secrets/${name}/${key}`, mode: 0o600, secret: true, content });
      else if (!optional) problems.push(problem(at, message));
    }
  }
  return { files, problems };
}

/** Mistakes that no backend could run, such as a source that is too long. */
function payloadMistakes(payload: Payload): SpecProblem[] {
  return payloadProblems(payload).map(({ at, message }) => problem(placeOf(at), message));
}

function placeOf(pointer: string): string {
  if (pointer.startsWith('/argv')) return '/spec/script/command';
  if (pointer.startsWith('/env')) return '/spec/env';
  if (pointer.startsWith('/submit')) return '/spec/htcopts';
  return pointer.startsWith('/values') ? '/spec/script/image' : '/spec/script/source';
}

function problem(at: string, message: string): SpecProblem {
  return { at, message };
}
