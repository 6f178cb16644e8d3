import { readSubmitCommands } from '../../../clients/htcondor/submit-commands.ts';
import { withoutEnd } from '../../../util/without-end.ts';
import { ThresherError } from '../../../worker/errors.ts';
import { ofShells, payloadBounds, payloadProblems, quoted } from '../../../worker/payload-check.ts';
import type { Payload, PayloadFile } from '../../../worker/payload.ts';
import type { JobMaker, JobToMake } from '../job-maker.ts';
import {
  type EnvVariable,
  type HtcJobSpec,
  type Runtime,
  type SecretReference,
  type SpecProblem,
  wordsOf,
} from '../../../clients/htcjob/resource.ts';
import { sizeProblems } from '../needs.ts';
import { outputProblems } from '../output/place.ts';
import type { JobKey } from '../../job-key.ts';
import { tokenOf } from './token.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The scripts as they ship with thresher: beside the sources as beside what was built of them. */
const directory = join(import.meta.dirname, '../../../../templates/htcjob');

let read: { readonly run: PayloadFile; readonly sendEvent: PayloadFile } | undefined;

/** The programs of every job: the same objects each time, so that they are checked once. */
function jobScripts(): { readonly run: PayloadFile; readonly sendEvent: PayloadFile } {
  const file = (name: string): PayloadFile => {
    return { name, mode: 0o755, content: readFileSync(join(directory, name)).toString('base64') };
  };
  read ??= { run: file('run.sh'), sendEvent: file('send-event.sh') };
  return read;
}

/** Facts beside the resource that its jobs are made of. */
export interface MakerContext {
  /** Directories that an image gets where a machine has them, such as /cvmfs. */
  readonly binds: readonly string[];
  /** How an image is run where the resource does not say. */
  readonly runtime: Runtime;
  /** Which a resource may choose beside `runtime`. Default: those in which this runner calls the image. */
  readonly runtimes?: readonly Runtime[];
  /** Directories with images that a resource may name by their paths. Default: none. */
  readonly imagePaths?: readonly string[];
  /** Names in `htcopts` beside those that every job may have. */
  readonly submitCommands?: readonly string[];
  /** Undefined: jobs send no events. */
  readonly events: { readonly url: string; readonly key: JobKey } | undefined;
  /** Largest output of a job, bytes; undefined: outputs are kept nowhere. */
  readonly outputBytes?: number | undefined;
}

type Resource = JobToMake['resource'];

/** The parts that all jobs of a resource have in common. */
interface Shared {
  readonly image: string;
  /** Where on the machine an image that is a path must be; "-" for others. */
  readonly place: string;
  readonly command: readonly string[];
  /** "NAME=VALUE" each, by names of their own. */
  readonly variables: Readonly<Record<string, string>>;
  readonly variableCount: number;
  readonly files: readonly PayloadFile[];
  readonly submit: Payload['submit'];
}

/** Makes jobs that run their command in the image of the resource. */
export class ImageJobs implements JobMaker {
  readonly #context: MakerContext;
  /** The jobs of one call are made one after the other, and a source may have 900 kB. */
  readonly #shared = new WeakMap<Resource, Shared>();

  constructor(context: MakerContext) {
    this.#context = context;
  }

  problems(spec: HtcJobSpec): readonly SpecProblem[] {
    const { script, htcopts = '', env = [], runtime = this.#context.runtime } = spec;
    const found = [
      ...this.#runtimeProblems(runtime),
      ...imageProblems(script.image, runtime, this.#context.imagePaths ?? []),
      ...commandProblems(script.command),
      ...variableProblems(env),
      ...secretProblems(spec.secrets),
      ...sizeProblems(spec.requests),
      ...outputProblems(spec, this.#context.outputBytes !== undefined),
      ...readSubmitCommands(htcopts, this.#context.submitCommands).problems.map(({ message }) =>
        problem('/spec/htcopts', message),
      ),
    ];
    if (found.length > 0) return found.slice(0, mostProblems);
    const metadata = { name: 'name', namespace: 'namespace', uid: 'uid', resourceVersion: '1' };
    const resource = { metadata, spec: { ...spec, secrets: [] } };
    const payload = this.payload({ resource, number: 0, index: 0, secrets: new Map() });
    return payloadProblems(payload).map(({ at, message }) => problem(placeOf(at), message));
  }

  #runtimeProblems(wanted: Runtime): readonly SpecProblem[] {
    const { runtime, runtimes = ['apptainer', 'singularity'] } = this.#context;
    const allowed = [...new Set([runtime, ...runtimes])];
    if (allowed.includes(wanted)) return [];
    const message = `the runtime is ${wanted}; the administrator allows ${allowed.join(', ')} (runtimes of sources.htcjob)`;
    return [problem('/spec/runtime', message)];
  }

  /** @throws ThresherError `htcjob-secret` for a Secret or a key that is not there */
  payload({ resource, number, index, secrets }: JobToMake): Payload {
    const { binds, events, outputBytes = 0, runtime: usual } = this.#context;
    const { metadata, spec } = resource;
    const { uid, name } = metadata;
    const shared = this.#shared.get(resource) ?? this.#sharedOf(resource, secrets);
    this.#shared.set(resource, shared);
    const { image, place, command, variables, variableCount, files, submit } = shared;
    return {
      // For templates that name it: HTCondor's container universe runs the whole worker in it.
      values: { image: spec.script.image },
      files: events === undefined ? files : [...files, eventFile(resource, index, events.key)],
      // Of a command of 50,000 words this is the quick way.
      argv: ['./run.sh', spec.runtime ?? usual, image, place, String(number)].concat(
        [String(variableCount), String(binds.length)],
        binds,
        command,
      ),
      env: {
        JOB_NAME: name,
        ...variables,
        ...(events !== undefined && { HTCJOB_EVENTS_URL: events.url, HTCJOB_EVENT_ID: `${uid}.${index}` }),
        // The runner counts blocks of the disk.
        ...(spec.output !== undefined && { HTCJOB_OUTPUT_BLOCKS: String(Math.ceil(outputBytes / 512)) }),
      },
      ...(submit !== undefined && { submit }),
      output: spec.output !== undefined,
      // Where HTCondor makes no container of it, it would run on the bare machine.
      ...((spec.runtime ?? usual) === 'container' && { image: true }),
    };
  }

  #sharedOf(resource: Resource, secrets: JobToMake['secrets']): Shared {
    const { runtime: usual, events, submitCommands, imagePaths } = this.#context;
    const { script, runtime = usual, env = [], htcopts = '', requests } = resource.spec;
    const scripts = jobScripts();
    const { commands, problems } = readSubmitCommands(htcopts, submitCommands);
    // Of one whose jobs may have been submitted, and which an earlier version or other settings took.
    const refused = [
      ...this.#runtimeProblems(runtime),
      ...imageProblems(script.image, runtime, imagePaths ?? []),
      ...problems.map(({ message }) => problem('/spec/htcopts', message)),
    ];
    const [first] = refused;
    if (first !== undefined) throw new ThresherError('payload-wrong', `${first.at}: ${first.message}`);
    const gpus = Math.ceil(requests?.gpus ?? 0);
    const submit = {
      // No other backend has them in the needs of a worker.
      ...(gpus > 0 && { request_gpus: String(gpus) }),
      ...commands,
    };
    return {
      image: imageOf(script.image, runtime),
      place: placeOfImage(script.image, imagePaths) ?? '-',
      command: wordsOf(script),
      variables: Object.fromEntries(
        env.map(({ name, value }, at) => [`HTCJOB_VARIABLE_${at}`, `${name}=${value}`]),
      ),
      variableCount: env.length,
      files: [
        scripts.run,
        { name: 'script.sh', mode: 0o755, content: Buffer.from(script.source).toString('base64') },
        ...(events === undefined ? [] : [scripts.sendEvent]),
        ...outputFiles(resource.spec.output?.files),
        ...secretFiles(resource, secrets),
      ],
      submit: Object.keys(submit).length > 0 ? submit : undefined,
    };
  }
}

/** Names of the files that the runner packs, one on each line. */
function outputFiles(names: readonly string[] = []): readonly PayloadFile[] {
  if (names.length === 0) return [];
  const text = names.map((name) => `${name}\n`).join('');
  return [{ name: 'output-files', mode: 0o644, content: Buffer.from(text).toString('base64') }];
}

/** The beginning of the event's JSON, to which the job adds its exit status. */
function eventFile({ metadata }: Resource, index: number, key: JobKey): PayloadFile {
  const { name, namespace, uid } = metadata;
  const token = tokenOf(key, { uid, index });
  const text = JSON.stringify({ name, namespace, uid, index, token }).slice(0, -1);
  return { name: 'event', mode: 0o600, secret: true, content: Buffer.from(text).toString('base64') };
}

/** Characters of a text, or words of a list: Linux takes as many bytes in one argument, and a payload in all. */
const longestCommand = 100_000;
/** Mistakes that are told of one HTCJob. */
const mostProblems = 20;

/** The schema lets any value through: a CRD cannot say "a text or a list of texts". */
function commandProblems(command: unknown): readonly SpecProblem[] {
  const at = '/spec/script/command';
  const isTexts = Array.isArray(command) && command.every((word) => typeof word === 'string');
  if (typeof command !== 'string' && !isTexts)
    return [
      problem(
        at,
        `the command is ${((JSON.stringify(command) as string | undefined) ?? 'nothing').slice(0, 200)}; it must be a text, or a list of texts`,
      ),
    ];
  if (command.length > longestCommand)
    return [problem(at, `the command has more than ${longestCommand} characters, or words`)];
  return wordsOf({ command }).length > 0 ? [] : [problem(at, 'the command is empty; write a program')];
}

/** The image as apptainer names it: a path, an address, or the name of an image in a registry of Docker. */
function imageOf(image: string, runtime: Runtime): string {
  if (runtime === 'none' || runtime === 'container') return image;
  return image.includes('://') || /^\.{0,2}\//.test(image) ? image : `docker://${image}`;
}

/** Where images come from that are no paths. Others, such as `instance://`, are no images of a registry. */
const schemes: readonly string[] = ['docker', 'oras', 'library', 'shub', 'https', 'http'];

function imageProblems(image: string, runtime: Runtime, imagePaths: readonly string[]): SpecProblem[] {
  const at = '/spec/script/image';
  const wrong = (message: string) => [problem(at, `the image is ${quoted(image)}; ${message}`)];
  // HTCondor puts the image of a container into a list of files, which a comma divides.
  if (!/^[A-Za-z0-9_./][^\s,\u0000-\u001f\u007f]*$/.test(image))
    return wrong(
      'it must be a name, an address or a path without blanks and commas, which begins with a letter, a digit, "_", "." or "/"',
    );
  if (runtime === 'none') return [];
  const [scheme = '', ...rest] = image.split('://');
  if (rest.length > 1) return wrong('an address has "://" once');
  if (rest.length > 0)
    return schemes.includes(scheme) ? [] : wrong(`an address must begin with one of ${schemes.join(', ')}`);
  const isPath = /^\.{0,2}\//.test(image);
  // A template may name it without "docker://" before it, and then HTCondor takes it for a file of the access point.
  if (!isPath) return runtime !== 'container' || isPlain(image) ? [] : wrong('a name has no ".." in it');
  // Beside the script, where the template of the queue may have brought it. What HTCondor has for itself there, credentials too, begins with a dot.
  if (runtime !== 'container' && /^\.\/[^.]/.test(image) && isPlain(image.slice(2))) return [];
  if (isPlain(withoutEnd(image, '/').slice(1)) && placeOfImage(image, imagePaths) !== undefined) return [];
  return wrong(
    `a path must be below ${imagePaths.join(', ') || 'no directory'} (imagePaths of sources.htcjob)`,
  );
}

/** Without `..`, `.` and empty parts. */
function isPlain(path: string): boolean {
  return path.split('/').every((part) => !['', '.', '..'].includes(part));
}

function placeOfImage(image: string, imagePaths: readonly string[] = []): string | undefined {
  const path = withoutEnd(image, '/');
  return imagePaths.find((directory) => path.startsWith(`${withoutEnd(directory, '/')}/`));
}

/** Those that would change how the image is run. */
const ownVariables = /^(APPTAINER|SINGULARITY|THRESHER_|HTCJOB_|_CONDOR_)|^(JOB_NAME|TEMP_DIR)$/i;

function variableProblems(env: readonly EnvVariable[]): SpecProblem[] {
  const bytes = env.reduce((sum, { name, value }) => sum + Buffer.byteLength(name + value), 0);
  if (bytes > payloadBounds.wordBytes)
    return [
      problem('/spec/env', `the variables have ${bytes} bytes; ${payloadBounds.wordBytes} are allowed`),
    ];
  const first = new Set<string>();
  return env.flatMap(({ name, value }, index) => {
    const at = `/spec/env/${index}`;
    const shown = quoted(name);
    if (!/^[A-Za-z_]\w*$/.test(name))
      return [
        problem(
          at,
          `${shown} is no name of a variable; it must be letters, digits and "_", and begin with no digit`,
        ),
      ];
    if (ownVariables.test(name))
      return [problem(at, `thresher or the runtime sets ${shown} itself; choose another name`)];
    if (ofShells.has(name)) return [problem(at, `a shell sets ${shown} itself; set it in the script`)];
    if (first.has(name)) return [problem(at, `${shown} is there twice; keep one of them`)];
    first.add(name);
    return value.includes('\0') ? [problem(at, `the value of ${shown} has a NUL character`)] : [];
  });
}

/** The file of a key is there once: a few bytes would ask for one large Secret very many times. */
function secretProblems(secrets: readonly SecretReference[] = []): readonly SpecProblem[] {
  const twice = (all: readonly string[]) => all.find((one, at) => all.indexOf(one) < at);
  const name = twice(secrets.map((secret) => secret.name));
  return [
    ...(name === undefined
      ? []
      : [problem('/spec/secrets', `the Secret ${quoted(name)} is there twice; keep one of them`)]),
    ...secrets.flatMap((secret, index) => {
      const key = twice(secret.keys ?? []);
      const at = `/spec/secrets/${index}/keys`;
      return key === undefined
        ? []
        : [problem(at, `the key ${quoted(key)} is there twice; keep one of them`)];
    }),
  ];
}

function secretFiles({ metadata, spec }: Resource, known: JobToMake['secrets']): readonly PayloadFile[] {
  return (spec.secrets ?? []).flatMap(({ name, keys, optional = false }) => {
    const data = known.get(name);
    const missing = (message: string) => {
      if (!optional) throw new ThresherError('htcjob-secret', message);
      return [];
    };
    if (data === undefined)
      return missing(`there is no Secret ${quoted(name)} in the namespace ${metadata.namespace}`);
    const has = Object.keys(data).join(', ') || 'none';
    return (keys ?? Object.keys(data)).flatMap((key): PayloadFile[] => {
      const content = Object.hasOwn(data, key) ? data[key] : undefined;
      if (content !== undefined)
        return [{ name: `secrets/${name}/${key}`, mode: 0o600, secret: true, content }];
      return missing(`the Secret ${quoted(name)} has no key ${quoted(key)}; its keys: ${has.slice(0, 1000)}`);
    });
  });
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
