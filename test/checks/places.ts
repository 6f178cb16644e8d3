import { existsSync } from 'node:fs';
import type { Files } from './copied-tree.ts';

/** Directories of every system, whose content its packages and the scripts decide. */
const standard = 'bin boot dev etc lib lib64 proc run sbin sys tmp usr var'.split(' ');
/** Directories of every system where people put things by hand, beside what they make directly below `/`. */
const handMade = 'home media mnt opt root srv usr/local'.split(' ');

/** Places that tests name as text, with all below where they end in a slash: nothing is read or run there. */
const named: Readonly<Record<string, string>> = {
  '/cvmfs': 'mounted where real templates run',
  '/data/': 'access points, and the ports of an API',
  '/nowhere/': 'a place that is not there',
  '/opt': 'the beginning of a command with a placeholder',
  '/opt/a.sh': 'a program of a submit description',
  '/opt/b.sh': 'another one',
  '/opt/pilot.sh': 'a program of a submit description',
  '/opt/CERN/': 'a command of a template',
  '/opt/condor_test/': 'a template of a real queue file',
  '/opt/harvester/': 'an executable of a real submit file',
  '/opt/panda/': 'where Harvester may be installed',
  '/root': 'the home of a user in a test of settings',
  '/root/etc/panda/': 'where that user may have settings',
  '/srv/': 'the state and the queue file of a test of settings',
  '/work': 'the directory of a connection',
  '/work/17': 'the directory of a worker',
};
/** Part of every system although it lies in a place for things made by hand. */
const conventional = ['/usr/local/bin', '/usr/local/sbin'];

const isNamed = (path: string): boolean =>
  Object.keys(named).some((place) => path === place || (place.endsWith('/') && `${path}/`.startsWith(place)));

const isBelow = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`);

/** Whether a path leads where only hands put things. A directory directly below `/` counts when this machine has it. */
function isHandMade(path: string, exists: (path: string) => boolean): boolean {
  if (conventional.some((place) => isBelow(path, place))) return false;
  if (handMade.some((place) => isBelow(path, `/${place}`))) return true;
  const [first = ''] = path.slice(1).split('/');
  return !standard.includes(first) && exists(`/${first}`);
}

/** Absolute paths in a text, also below a variable's default: not what follows a name, as in `src/opt` or `$HOME/opt`. */
const absolutePath = /(?<![\w.~)}\]*?$@<>/]|\w-)\/[A-Za-z][\w.+-]*(?:\/[\w.+-]+)*/g;

/** By file and line, the paths outside of the project, its caches and the directories of every system. */
export function handMadePlaces(files: Files, exists: (path: string) => boolean = existsSync): string[] {
  return Object.entries(files).flatMap(([file, text]) =>
    text.split('\n').flatMap((line, at) =>
      [...line.matchAll(absolutePath)]
        .map(([path]) => path)
        .filter((path) => isHandMade(path, exists) && !isNamed(path))
        .map((path) => `${file}:${at + 1}: ${path}`),
    ),
  );
}
