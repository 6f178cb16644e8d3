import { realpathSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { ThresherError } from '../../../worker/errors.ts';
import type { Problem } from '../../../util/located.ts';
import { type Machine, pandaHome } from '../machine.ts';

/** The path that a path stands for; undefined where there is nothing. */
export type RealPath = (path: string) => string | undefined;

export const ownSettings = '/etc/thresher/thresher.yaml';

export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/**
 * The settings file where the command line names none: thresher's own, else Harvester's where Harvester itself looks.
 * @throws ThresherError `settings-missing` with all places; `settings-ambiguous` where Harvester would put several together.
 */
export function findSettings(machine: Machine, real: RealPath = realPath): string {
  if (real(ownSettings) !== undefined) return ownSettings;
  const home = pandaHome(machine);
  const places = [
    ...['/etc/panda', '/usr/etc/panda', join(machine.home, 'etc/panda')],
    ...(home === undefined ? [] : [join(home, 'etc/panda'), join(home, 'usr/etc/panda')]),
  ].map((directory) => join(directory, 'panda_harvester.cfg'));
  const there = new Map(
    places.flatMap((place) => {
      const target = real(place);
      return target === undefined ? [] : [[target, place] as const];
    }),
  );
  const [found, ...others] = there.values();
  if (found === undefined) {
    const looked = [...new Set([ownSettings, ...places])].join(', ');
    throw new ThresherError(
      'settings-missing',
      `there is no settings file; looked for ${looked}; name it with --config`,
    );
  }
  if (others.length > 0) {
    const files = [found, ...others].join(' and ');
    throw new ThresherError(
      'settings-ambiguous',
      `there are ${files}; Harvester puts them together, thresher reads one file: name it with --config`,
    );
  }
  return found;
}

/**
 * The path of the queue file of a `panda_harvester.cfg`: beside it, else in Harvester's own directories.
 * Source: Harvester 0.7.5, queue_config_mapper: below PANDA_HOME, else in /etc/panda.
 */
export function findQueueFile(
  configFile: string,
  directory: string,
  machine: Machine,
  real: RealPath = realPath,
): { file: string; problem?: Pick<Problem, 'severity' | 'code' | 'message'> } {
  const beside = resolve(directory, configFile);
  if (isAbsolute(configFile)) return { file: beside };
  const home = pandaHome(machine);
  const theirs = [...(home === undefined ? [] : [resolve(home, 'etc/panda')]), '/etc/panda'].map((place) =>
    resolve(place, configFile),
  );
  const harvesters = theirs.find((file) => real(file) !== undefined);
  const is = `configFile is ${JSON.stringify(configFile)}`;
  if (real(beside) !== undefined) {
    if (harvesters === undefined || real(harvesters) === real(beside)) return { file: beside };
    const message = `${is}, and thresher reads ${beside}, where Harvester reads ${harvesters}; write the path in full`;
    return { file: beside, problem: { severity: 'warning', code: 'queue-file-place', message } };
  }
  if (harvesters === undefined) {
    const looked = [...new Set([beside, ...theirs])].join(', ');
    const message = `${is}, and there is no such file; looked for ${looked}`;
    return { file: beside, problem: { severity: 'warning', code: 'file-unreadable', message } };
  }
  const message = `${is}: it is not in ${directory}, so ${harvesters} is read, as by Harvester`;
  return { file: harvesters, problem: { severity: 'notice', code: 'queue-file-place', message } };
}
