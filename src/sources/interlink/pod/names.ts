import type { Pod } from '../../../clients/interlink/wire.ts';
import { type PodProblem, problem, shown } from './problem.ts';

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
/** An API server makes UUIDs; a static Pod's is 32 digits. */
const uid = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?$/;

/** Names of containers become names of files. */
export const isContainerName = (name: string) => label.test(name);
export const isPodUid = (text: string) => uid.test(text);

/** Mistakes in the names by which a Pod is known. A daemon asks before any of them touches a path. */
export function identityProblems({ metadata }: Pick<Pod, 'metadata'>): readonly PodProblem[] {
  const found: PodProblem[] = [];
  const of = (key: 'name' | 'namespace' | 'uid', fits: RegExp, right: string) => {
    const text = metadata[key];
    const at = `/pod/metadata/${key}`;
    if (text === undefined || text === '') found.push(problem(at, `the Pod has no ${key}`));
    else if (!fits.test(text) || text.includes('..'))
      found.push(problem(at, `the ${key} ${shown(text)} is no ${key} of Kubernetes; it must be ${right}`));
  };
  of('name', subdomain, 'lower case letters, digits, "-" and "."');
  of('namespace', label, 'at most 63 lower case letters, digits and "-"');
  of('uid', uid, 'letters, digits and "-"');
  return found;
}

/** Mistakes in all names of a Pod. */
export function nameProblems(pod: Pick<Pod, 'metadata' | 'spec'>): readonly PodProblem[] {
  return [...identityProblems(pod), ...containerNameProblems(pod)];
}

/** Mistakes in the names of the containers. */
function containerNameProblems({ spec }: Pick<Pod, 'spec'>): readonly PodProblem[] {
  const seen = new Set<string>();
  const lists = [
    ['initContainers', spec.initContainers ?? []],
    ['containers', spec.containers],
  ] as const;
  return lists.flatMap(([key, containers]) =>
    containers.flatMap(({ name }, index) => {
      const at = `/pod/spec/${key}/${index}/name`;
      if (!isContainerName(name))
        return [
          problem(
            at,
            `${shown(name)} is no name of a container; it must be at most 63 lower case letters, digits and "-"`,
          ),
        ];
      if (seen.has(name)) return [problem(at, `two containers have the name ${shown(name)}`)];
      seen.add(name);
      return [];
    }),
  );
}
