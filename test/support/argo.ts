import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { HtcJobScript } from '../../src/clients/htcjob/resource.ts';
import { examples, type HtcJobObject } from './htcjobs.ts';

/** A step of a Workflow that makes a resource and waits for it. */
export interface ResourceStep {
  readonly manifest: HtcJobObject;
  readonly successCondition: string;
  readonly failureCondition: string;
}

interface Workflow {
  readonly spec: {
    readonly templates: readonly {
      readonly name: string;
      readonly resource?: Omit<ResourceStep, 'manifest'> & { readonly manifest: string };
    }[];
  };
}

/** A step of an example, with parts of its script changed. */
export function resourceStep(file: string, name: string, script: Partial<HtcJobScript>): ResourceStep {
  const { spec } = parse(readFileSync(join(examples, `${file}.yaml`), 'utf8')) as Workflow;
  const resource = spec.templates.find((template) => template.name === name)?.resource;
  if (resource === undefined) throw new Error(`${file}.yaml has no resource ${name}`);
  const manifest = parse(resource.manifest) as HtcJobObject;
  const changed = { ...manifest.spec, script: { ...manifest.spec.script, ...script } };
  return { ...resource, manifest: { ...manifest, spec: changed } };
}

/**
 * Judges a resource as Argo does: a step fails when one failure condition holds, and succeeds when all success conditions hold.
 * Source: Argo Workflows' executor, which reads the conditions as selectors of labels whose keys are paths in the object.
 */
export function stateOf(step: ResourceStep, object: object | undefined): 'succeeded' | 'failed' | 'waits' {
  if (object === undefined) throw new Error('the resource was deleted, by which a step fails');
  if (conditionsOf(step.failureCondition).some((condition) => holds(condition, object))) return 'failed';
  const isDone = conditionsOf(step.successCondition).every((condition) => holds(condition, object));
  return isDone ? 'succeeded' : 'waits';
}

function conditionsOf(text: string): readonly string[] {
  return text.split(',').map((condition) => condition.trim());
}

/** A selector compares texts, and with `<` and `>` whole numbers; a key that is not there holds for none of these. */
function holds(condition: string, object: object): boolean {
  const [, key = '', operator = '', wanted = ''] = /^([\w.]+)\s*(==|=|<|>)\s*(\S+)$/.exec(condition) ?? [];
  if (key === '') throw new Error(`no condition that this reads: ${condition}`);
  const value = key
    .split('.')
    .reduce<unknown>((at, part) => (at as Readonly<Record<string, unknown>> | undefined)?.[part], object);
  if (typeof value !== 'string' && typeof value !== 'number') return false;
  if (operator === '<') return Number(value) < Number(wanted);
  if (operator === '>') return Number(value) > Number(wanted);
  return String(value) === wanted;
}
