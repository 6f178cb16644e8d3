import { type Located, parseYaml } from '../../../util/located.ts';
import { readLocated } from '../../../util/located-file.ts';
import type { OperatorFiles } from '../../../util/operator-files.ts';
import { check } from '../../../util/schema.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { payloadKeysIn } from '../../contracts/placeholders.ts';
import { textsIn } from './payload.ts';
import { checkTemplate, pilotOf, pointerOf, type TemplateOptions } from './template-checks.ts';
import { type ContainerShape, JobShape } from './template-shape.ts';

/** A Job as its operator wrote it. `fill` makes a worker's Job of it. */
export interface KubernetesTemplate {
  readonly file: string;
  readonly job: JobShape;
  /** Name of the pilot's container. */
  readonly pilot: string;
  /** The keys of payload values that it needs of each worker. */
  readonly payloadKeys: ReadonlySet<string>;
  /** Line of a place in the file: "/spec/template/spec". */
  readonly lineOf: (pointer: string) => number;
}

export type LoadedTemplate =
  | {
      readonly ok: true;
      readonly template: KubernetesTemplate;
      readonly warnings: readonly DefinitionProblem[];
    }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };

/** Reads and checks a template; every mistake that can be seen without the API server is found here. */
export async function loadTemplate(
  files: OperatorFiles,
  file: string,
  options: TemplateOptions = {},
): Promise<LoadedTemplate> {
  return judge(await readLocated(files, file, 'template', parse), options);
}

export function parseTemplate(text: string, file: string, options: TemplateOptions = {}): LoadedTemplate {
  return judge(parse(text, file), options);
}

function parse(text: string, file: string): Located {
  const located = parseYaml(text, file, 'kubernetes');
  // Only at the beginning of a value or a line; within a text such braces are a command's own business.
  const line = text.split('\n').findIndex((one) => /^\s*(?:(?:- +)?[\w./-]+: *)?\{\{/.test(one)) + 1;
  if (line === 0) return located;
  const message = 'this is a template of Helm, and thresher reads a Job: render it first (helm template)';
  const problem = { file, pointer: '', line, severity: 'error', code: 'syntax', message } as const;
  return { ...located, value: undefined, problems: [problem] };
}

function judge(located: Located, options: TemplateOptions): LoadedTemplate {
  const { file } = located;
  if (located.problems.length > 0) {
    const problems = located.problems.map(({ pointer, line, code, message }) => ({
      pointer,
      file,
      line,
      message: severalDocuments.test(message) ? oneDocument : message,
      code: code === 'file-unreadable' ? code : ('syntax' as const),
    }));
    return { ok: false, problems };
  }
  const place = (pointer: string) => ({ pointer, file, line: located.lineOf(pointer) });
  // A key without a value counts as not written, as for the API server.
  const value = withoutNulls(located.value);
  const kind = kindOf(value);
  if (kind !== 'Job of batch/v1') {
    const message = `it is ${kind === '' ? 'empty' : `a ${kind}`}; the template of a worker must be a Job of batch/v1`;
    return { ok: false, problems: [{ ...place('/kind'), code: 'template-wrong', message }] };
  }
  const shaped = check(JobShape, value);
  if (!shaped.ok) {
    const problems = shaped.problems.map(({ pointer, message }) => ({
      ...place(pointer),
      code: 'template-wrong' as const,
      message: `in the Job ${message}`,
    }));
    return { ok: false, problems };
  }
  const found = checkTemplate(shaped.value, options).map((finding): DefinitionProblem => {
    const { message, code = 'template-wrong' } = finding;
    const severity = code === 'template-risky' ? 'warning' : 'error';
    return { ...place(pointerOf(finding)), code, message, severity };
  });
  const ofSeverity = (wanted: string) => found.filter(({ severity }) => severity === wanted);
  const errors = ofSeverity('error');
  if (errors.length > 0) return { ok: false, problems: [...errors, ...ofSeverity('warning')] };
  const pilot = pilotOf(shaped.value, options);
  const job = options.onlyPilotContainer
    ? withContainers(shaped.value, ({ name }) => name === pilot)
    : shaped.value;
  return {
    ok: true,
    template: {
      file,
      job,
      pilot,
      payloadKeys: payloadKeysIn(textsIn(job)),
      lineOf: (at: string) => located.lineOf(at),
    },
    warnings: ofSeverity('warning'),
  };
}

function withContainers(job: JobShape, isKept: (container: ContainerShape) => boolean): JobShape {
  const { template } = job.spec;
  const spec = { ...template.spec, containers: template.spec.containers.filter(isKept) };
  return { ...job, spec: { ...job.spec, template: { ...template, spec } } };
}

const severalDocuments = /multiple documents/;
const oneDocument =
  'there are several YAML documents; keep the Job alone in this file, and bring the others (volume claims, classes) to the cluster with kubectl';

/** "Pod of v1", for a message; "" for nothing. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object' || Array.isArray(value)) return 'list or a plain value';
  if (Object.keys(value).length === 0) return '';
  const { kind = 'thing without kind', apiVersion = '?' } = value as Record<string, unknown>;
  return `${typeof kind === 'string' ? kind : JSON.stringify(kind)} of ${typeof apiVersion === 'string' ? apiVersion : JSON.stringify(apiVersion)}`;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => [key, withoutNulls(inner)]),
  );
}
