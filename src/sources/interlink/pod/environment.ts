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

/** What a job still takes: bytes of what the variables of a Pod add to its texts, which can name one as often as they like, or of its files; or dollars. */
export interface Room {
  left: number;
}

/** The texts of a Pod become longer than a job takes. */
export class TooLong extends RangeError {}

export type Expand = (text: string) => string;

/** Dollars in all texts of a Pod, each of which is looked at, two in a row as one: whole scripts have some thousands. */
export const mostDollars = 100_000;

/**
 * `$(NAME)` becomes the variable's value, `$$` a dollar; an unknown name stays. Source: Kubernetes' third_party/forked/golang/expansion.
 * @param room that all texts of the Pod share
 * @param dollars that all texts of the Pod may still have
 */
export function expander(variables: ReadonlyMap<string, string>, room: Room, dollars: Room): Expand {
  return (text) => {
    const lastEnd = text.lastIndexOf(')');
    let [made, from] = ['', 0];
    for (let at = text.indexOf('$'); at >= 0; at = text.indexOf('$', from)) {
      if (--dollars.left < 0) throw new TooLong();
      made += text.slice(from, at);
      const end = text[at + 1] === '(' && at < lastEnd ? text.indexOf(')', at) + 1 : at + 2;
      const whole = text.slice(at, end);
      const value = whole === '$$' ? '$' : variables.get(whole.slice(2, -1));
      const isName = whole.startsWith('$(') && whole.endsWith(')');
      if (whole === '$$' || (isName && value !== undefined)) {
        made += value ?? '';
        room.left -= value?.length ?? 0;
        if (room.left < 0) throw new TooLong();
        from = end;
      } else {
        made += isName ? whole : '$';
        from = isName ? end : at + 1;
      }
    }
    return made + text.slice(from);
  };
}
