/** `jobConfig` of the body of /create: the configuration of interLink for its builder of job scripts. Unset parts are empty. */
import type { Findings } from './problem.ts';

/** Options of apptainer for the switches of `ApptainerOptions` that are on. The runner always does the like of those that have none. */
const switches: Readonly<Record<string, readonly string[]>> = {
  fakeroot: ['--fakeroot'],
  noInit: ['--no-init'],
  noHome: ['--no-home'],
  noPrivs: ['--no-privs'],
  nvidiaSupport: ['--nv'],
  unsquash: ['--unsquash'],
  containall: [],
  cleanenv: [],
};

/** Options of apptainer for all containers of a Pod. A program or a directory of the machine is the operator's to name, in the settings. */
export function optionsOf(jobConfig: unknown, runtime: string, { warnings }: Findings): readonly string[] {
  const { ApptainerOptions, Volumes, SingularityHubProxy } = record(jobConfig);
  const options = record(ApptainerOptions);
  const isForeign = (key: string, value: unknown) => {
    if (isEmpty(value) || Object.hasOwn(switches, key)) return false;
    return key !== 'executable' || value !== runtime;
  };
  const left = [
    ...Object.entries(options).flatMap(([key, value]) =>
      isForeign(key, value) ? [`ApptainerOptions.${key}`] : [],
    ),
    ...Object.entries(record(Volumes)).flatMap(([key, value]) => (isEmpty(value) ? [] : [`Volumes.${key}`])),
    ...(Object.values(record(SingularityHubProxy)).every(isEmpty) ? [] : ['SingularityHubProxy']),
  ];
  if (left.length > 0)
    warnings.push(
      `${left.join(', ')} of interLink's jobConfig ${left.length === 1 ? 'has' : 'have'} no effect: the settings of thresher name the program and the directories`,
    );
  return Object.entries(switches).flatMap(([key, words]) => (options[key] === true ? words : []));
}

function isEmpty(value: unknown): boolean {
  return (
    [undefined, null, '', 0, false].some((one) => one === value) ||
    (Array.isArray(value) && value.length === 0)
  );
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
