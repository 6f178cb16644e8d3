import type { Container } from '../../../clients/interlink/wire.ts';
import { isText, lineOf } from './lines.ts';
import { type Findings, problem, shown } from './problem.ts';

/** Kubernetes takes every name without "=" that can be printed. */
const variableName = /^[\x21-\x3c\x3e-\x7e]+$/;

/** The variables of a container; of two with one name the last counts, as in Kubernetes. */
export function variablesOf(container: Container, at: string, { problems, warnings }: Findings) {
  const variables = new Map<string, string>();
  for (const [index, { name, value, valueFrom }] of (container.env ?? []).entries()) {
    const place = `${at}/env/${index}`;
    if (!variableName.test(name)) problems.push(problem(place, `${shown(name)} is no name of a variable`));
    else if (!isText(value ?? ''))
      problems.push(problem(place, `the value of ${shown(name)} has a NUL or half of a character`));
    else {
      if (valueFrom !== undefined && valueFrom !== null && value === undefined)
        warnings.push(
          `interLink did not resolve the variable ${name} of container ${container.name}: it is empty`,
        );
      variables.set(name, value ?? '');
    }
  }
  if ((container.envFrom ?? []).length > 0)
    warnings.push(`interLink did not resolve envFrom of container ${container.name}: it is left out`);
  return variables;
}

/** Text of the container's own file of variables. */
export function environmentText(variables: ReadonlyMap<string, string>): string {
  return [...variables].map(([name, value]) => `${lineOf('env', `${name}=${value}`)}\n`).join('');
}

/** `$(NAME)` becomes the variable's value, `$$` a dollar; an unknown name stays. Source: Kubernetes' third_party/forked/golang/expansion. */
export function expanded(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$(\$|\(([^)]*)\))/g, (whole, kind: string, name: string | undefined) =>
    kind === '$' ? '$' : (variables.get(name ?? '') ?? whole),
  );
}
